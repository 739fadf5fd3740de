import type { CodegenConfig } from '@graphql-codegen/cli';

const config: CodegenConfig = {
  schema: '../../schema.graphql',
  documents: ['src/**/*.{ts,tsx}', '!src/gql/**'],
  generates: {
    'src/gql/': {
      preset: 'client',
      // The default name looks like a hook.
      presetConfig: { fragmentMasking: { unmaskFunctionName: 'readFragment' } },
      config: {
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
      },
    },
  },
};

export default config;
