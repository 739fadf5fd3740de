// Writes src/gql of the storefront: the types of the GraphQL documents in src.
import { globSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { preset } from '@graphql-codegen/client-preset';
import { codegen } from '@graphql-codegen/core';
import { gqlPluckFromCodeString } from '@graphql-tools/graphql-tag-pluck';
import { buildSchema, parse } from 'graphql';

process.chdir(join(import.meta.dirname, '../../examples/storefront'));
const OUT = 'src/gql/';
const config = {
  useTypeImports: true,
  enumType: 'string-literal',
  strictScalars: true,
  scalars: {
    DateTime: 'string',
    Decimal: 'string',
    EAN13: 'string',
    // Text preserves all digits.
    Price: { input: 'string', output: 'number' },
  },
};

const schema = await readFile('../../schema.graphql', 'utf8');
const files = globSync('src/**/*.{ts,tsx}', { exclude: [`${OUT}**`] }).toSorted();
const documents = (
  await Promise.all(
    files.map(async (location) => {
      const sources = await gqlPluckFromCodeString(location, await readFile(location, 'utf8'), {
        skipIndent: true,
      });
      return sources.map(({ body }) => ({ location, document: parse(body), rawSDL: body }));
    }),
  )
).flat();

const parts = await preset.buildGeneratesSection({
  baseOutputDir: OUT,
  schema: parse(schema),
  schemaAst: buildSchema(schema),
  documents,
  config,
  // The default name looks like a hook.
  presetConfig: { fragmentMasking: { unmaskFunctionName: 'readFragment' } },
  plugins: [],
  pluginMap: {},
  documentTransforms: [],
});
await mkdir(OUT, { recursive: true });
await Promise.all(parts.map(async (part) => writeFile(part.filename, await codegen(part))));
