import 'reflect-metadata';
import { makeSchema, schemaText } from '../graphql/schema.ts';

// Prints schema.graphql, which is committed and which a test holds against the code: npm run -s schema > schema.graphql
process.stdout.write(schemaText(await makeSchema()));
