import 'reflect-metadata';
import { features } from '../features.ts';
import { readConfig } from '../core/config.ts';
import { openapiText } from '../rest/openapi/openapi.ts';

// Prints openapi.json, which is committed and which a test holds against the code: npm run -s openapi > openapi.json
process.stdout.write(
  openapiText(
    readConfig({}, () => ''),
    features,
  ),
);
