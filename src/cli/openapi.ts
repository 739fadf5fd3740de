import 'reflect-metadata';
import { features } from '../features.ts';
import { readConfig } from '../kit/config.ts';
import { openapiText } from '../server/openapi/openapi.ts';

// Prints openapi.json, which is committed and which a test holds against the code: npm run -s openapi > openapi.json
process.stdout.write(
  openapiText(
    readConfig({}, () => ''),
    features,
  ),
);
