import 'reflect-metadata';
import { features } from '../features.ts';
import { readConfig } from '../core/config.ts';
import { openapiText } from '../rest/openapi.ts';

// Prints openapi.json. A test compares the committed file with this output:
// npm run -s openapi > openapi.json
process.stdout.write(
  openapiText(
    readConfig({}, () => ''),
    features,
  ),
);
