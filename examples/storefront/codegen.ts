import type { CodegenConfig } from '@graphql-codegen/cli';

const config: CodegenConfig = {
  schema: '../../schema.graphql',
  documents: ['src/**/*.{ts,tsx}', '!src/gql/**'],
  generates: {
    'src/gql/': {
      preset: 'client',
      // It is no hook, and is not to be taken for one.
      presetConfig: { fragmentMasking: { unmaskFunctionName: 'readFragment' } },
      config: {
        useTypeImports: true,
        enumType: 'string-literal',
        strictScalars: true,
        scalars: {
          DateTime: 'string',
          Decimal: 'string',
          EAN13: 'string',
          // As text no digit is lost on the way.
          Price: { input: 'string', output: 'number' },
        },
      },
    },
  },
};

export default config;
