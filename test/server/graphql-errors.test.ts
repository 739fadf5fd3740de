import { expect, test } from '../support/jest.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

test.each([
  ['in a field of Query', 'product', '{ products { totalCount } }'],
  ['in a list inside a list', 'item', '{ users { nodes { items { totalCount } } } }'],
  ['in a mutation', 'item', 'mutation { addItem(itemId: "lamp") { itemId } }'],
])(
  'GraphQL contract, An internal error shows an id that is in the log, and nothing else: %s',
  async (_name, table, query) => {
    const as = await shop.makeUser();
    await shop.sql(`alter table "${table}" rename to "${table}_away"`);
    try {
      const answer = await shop.graphql(query, {}, { as });
      expect(codes(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
      expect(answer.body.data).toBeNull();
      expectMasked(answer);
    } finally {
      await shop.sql(`alter table "${table}_away" rename to "${table}"`);
    }
  },
);

function expectMasked({ text }: Answer): void {
  const [id = 'no id'] = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/.exec(text) ?? [];
  expect(
    shop.logged.filter((line) => line.includes(id) && line.includes('does not exist')),
  ).toHaveLength(1);
  expect(text).not.toMatch(/does not exist|relation|select|insert|stack|\bat |\.[jt]s\b|42P01/i);
}
