import 'reflect-metadata';
import { makeSchema, schemaText } from '../graphql/schema.ts';

// Prints schema.graphql. A test compares the committed file with this output:
// npm run -s schema > schema.graphql
process.stdout.write(schemaText(await makeSchema()));
