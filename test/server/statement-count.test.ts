import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();
const closed = new Shop({ GRAPHQL_EXPLORER: 'false' });
beforeAll(() => closed.start());
afterAll(() => closed.stop());

async function extensionsOf(at: Shop, query: string, options: object = {}): Promise<unknown> {
  const json = { query, extensions: { statements: true } };
  return (await at.rest('POST', '/graphql', { json, ...options })).body.extensions;
}

test('the number of database statements of an operation is returned on request', async () => {
  const { pk } = await shop.makeProduct();
  expect(await extensionsOf(shop, '{ __typename }')).toEqual({ statements: 0 });
  expect(await extensionsOf(shop, `{ product(pk: ${pk}) { name } }`)).toEqual({ statements: 1 });
  expect((await shop.graphql(`{ product(pk: ${pk}) { name } }`)).body).not.toHaveProperty(
    'extensions',
  );
});

test('operations at the same time are counted one by one', async () => {
  const { pk } = await shop.makeProduct();
  const [none, one] = await Promise.all([
    extensionsOf(shop, '{ __typename }'),
    extensionsOf(shop, `{ product(pk: ${pk}) { name } }`),
    shop.graphql('{ products(first: 7) { nodes { pk name } } }'),
  ]);
  expect([none, one]).toEqual([{ statements: 0 }, { statements: 1 }]);
});

test('the statements of a transaction are counted', async () => {
  const alice = await shop.makeUser({ username: 'alice' });
  const counted = await extensionsOf(shop, 'mutation { addItem(itemId: "x") { itemId } }', {
    as: alice,
  });
  expect(counted).toEqual({ statements: expect.any(Number) });
  expect((counted as { statements: number }).statements).toBeGreaterThan(0);
});

test.each(['alice', 'nobody'])(
  'the number of statements of a login as %s, which would show whether the user exists, is not returned',
  async (username) => {
    await shop.makeUser({ username: 'alice' });
    const login = `login(username: "${username}", password: "wrong") { accessToken }`;
    for (const query of [
      `mutation { ${login} }`,
      `mutation { ...Login } fragment Login on Mutation { ${login} }`,
      `mutation { removeItem(itemId: "x") { itemId } ${login} }`,
    ])
      expect(await extensionsOf(shop, query)).toBeUndefined();
  },
);

test('without the explorers, the number of statements is not returned', async () => {
  expect(await extensionsOf(closed, '{ __typename }')).toBeUndefined();
});
