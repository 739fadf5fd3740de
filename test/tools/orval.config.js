/** Generates functions that call fetch. The address of the server comes from the document. */
export default {
  shop: {
    input: './openapi.json',
    output: {
      target: './generated/orval.ts',
      client: 'fetch',
      baseUrl: { getBaseUrlFromSpecification: true },
    },
  },
};
