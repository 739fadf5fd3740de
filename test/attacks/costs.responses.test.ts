import { describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();
const small = useShop({}, { graphqlMaxResponseBytes: 1_000 });
const uncompiled = useShop({}, { graphqlMaxResponseBytes: 1_000, compiledOperations: false });

const rejection = {
  message: 'The response has more than 1000 bytes',
  extensions: { code: 'QUERY_TOO_COMPLEX' },
};

describe('P8 the size of a response', () => {
  test('P8 a body counts as five objects', async () => {
    const query = '{ blog(first: 10) { nodes { title body } } }';
    const { body } = await shop.rest('POST', '/graphql', {
      json: { query, extensions: { cost: true } },
      as: await shop.makeUser(),
    });
    expect(body.extensions.cost.requested).toBe(1 + 10 * (1 + 5));
  });

  test.each([
    ['by a compiled operation or the response cache', small],
    ['by Apollo Server', uncompiled],
  ])(
    'P8 a response of up to the maximum size is sent, a longer one is rejected: %s',
    async (_how, limited) => {
      for (let count = 0; count < 8; count++) await limited.makeProduct({ name: 'é'.repeat(100) });
      const query = (first: number) =>
        limited.graphql(`{ products(first: ${first}) { nodes { name } } }`);
      for (let again = 0; again < 3; again++) {
        expect((await query(4)).body.data.products.nodes).toHaveLength(4);
        const { status, body, text } = await query(5);
        expect([status, body]).toEqual([400, { errors: [rejection] }]);
        expect(Buffer.byteLength(text)).toBeLessThan(1_000);
      }
    },
  );
});
