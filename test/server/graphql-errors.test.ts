import { describe, expect, test } from '../support/jest.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

describe('GraphQL contract, Errors', () => {
  test.each(['4006381333932', 'x; y', '" at "input.name"; Expected', '', 4_006_381_333_931])(
    'extensions.fields lists a rejected barcode and price: %j',
    async (barcode) => {
      const as = await shop.makeUser({ scopes: ['products:write'] });
      const { body } = await shop.graphql(
        'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }',
        { input: { name: 'Lamp', barcode, price: '1.999' } },
        { as },
      );
      expect(body.errors.map(({ extensions }: { extensions: object }) => extensions)).toEqual([
        {
          code: 'BAD_USER_INPUT',
          fields: ['barcode', 'price'].map((field) => ({ field, message: expect.any(String) })),
        },
      ]);
    },
  );
});

describe('GraphQL contract, An internal error shows an id that is in the log, and nothing else', () => {
  test.each([
    ['in a field of Query', 'product', '{ products { totalCount } }'],
    ['in a list inside a list', 'item', '{ users { nodes { items { totalCount } } } }'],
    ['in a mutation', 'item', 'mutation { addItem(itemId: "lamp") { itemId } }'],
  ])('%s', async (_name, table, query) => {
    const user = await shop.makeUser();
    const answer = await without(table, () => shop.graphql(query, {}, { as: user }));
    expect(codes(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(answer.body.data).toBeNull();
    expectMasked(answer);
  });
});

/** The response while the table has another name. */
async function without(table: string, send: () => Promise<Answer>): Promise<Answer> {
  await shop.sql(`alter table "${table}" rename to "${table}_away"`);
  try {
    return await send();
  } finally {
    await shop.sql(`alter table "${table}_away" rename to "${table}"`);
  }
}

function expectMasked({ text }: Answer): void {
  const [id = 'no id'] = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/.exec(text) ?? [];
  expect(
    shop.logged.filter((line) => line.includes(id) && line.includes('does not exist')),
  ).toHaveLength(1);
  expect(text).not.toMatch(/does not exist|relation|select|insert|stack|\bat |\.[jt]s\b|42P01/i);
}
