import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

// Each endpoint is compared with its GraphQL equivalent in equivalents.test.ts.

const PRODUCT = 'pk name barcode price';
const CREATE = `mutation ($input: ProductInput!) { createProduct(input: $input) { ${PRODUCT} } }`;

const shop = useShop();

test.each(['999', '-1', '1.0', 'x', '99999999999999999999'])(
  'Decisions, pk: %s, which no product has, is 404 in REST and null in GraphQL',
  async (pk) => {
    await shop.makeProduct();
    const rest = await shop.rest('GET', `/api/v1/shop/product/${pk}`);
    const graphql = await shop.graphql(`query ($pk: ID!) { product(pk: $pk) { ${PRODUCT} } }`, {
      pk,
    });
    expect([rest.status, rest.body]).toEqual([404, { detail: 'No such product' }]);
    expect([graphql.status, graphql.body]).toEqual([200, { data: { product: null } }]);
  },
);

test('Decisions, one domain behind two APIs: a created name is trimmed, and a price may be text', async () => {
  const as = await shop.makeUser({ scopes: ['products:write'] });
  const [one, two] = [shop.newBarcode(), shop.newBarcode()];
  const input = { name: '  Pen  ', price: '12.50' };
  const json = { ...input, barcode: one };
  const rest = await shop.rest('POST', '/api/v1/shop/product/', { as, json });
  const graphql = await shop.graphql(CREATE, { input: { ...input, barcode: two } }, { as });
  expect(rest.body).toEqual({ pk: 1, name: 'Pen', barcode: one, price: 12.5 });
  expect(graphql.body.data.createProduct).toEqual({ ...rest.body, pk: '2', barcode: two });
});

test('each page by number has the nodes, count and neighbours of the page by cursor', async () => {
  await shop.makeProducts(25);
  const PAGE = `query ($after: String) { products(first: 10, after: $after) {
    nodes { ${PRODUCT} } totalCount pageInfo { hasNextPage hasPreviousPage endCursor } } }`;
  let after: string | null = null;
  for (const [page, size] of [10, 10, 5].entries()) {
    const rest = (await shop.rest('GET', `/api/v2/shop/products?page=${page + 1}`)).body;
    const { body }: Answer = await shop.graphql(PAGE, { after });
    const { products } = body.data;
    expect(rest.items).toHaveLength(size);
    expect(products).toEqual({
      nodes: rest.items.map((item: { pk: number }) => ({ ...item, pk: String(item.pk) })),
      totalCount: rest.count,
      pageInfo: {
        hasNextPage: rest.next !== null,
        hasPreviousPage: rest.previous !== null,
        endCursor: products.pageInfo.endCursor,
      },
    });
    after = products.pageInfo.endCursor;
  }
});

test.each<[string, ('users:read' | 'blog:write')[]]>([
  ['without users:read, to which only the own email is visible', ['blog:write']],
  ['with users:read, to which every email is visible', ['users:read']],
])('the list of users is the same in both APIs for a caller %s', async (_caller, scopes) => {
  await shop.makeUser({ fullName: 'Ann Example' });
  await shop.makeUser({ disabled: true, email: null });
  const as = await shop.makeUser({ scopes });
  const rest = await shop.rest('GET', '/api/users', { as });
  const { body } = await shop.graphql(
    '{ users { nodes { username email full_name: fullName disabled } totalCount } }',
    {},
    { as },
  );
  expect(rest.body.items.map(({ email }: { email: unknown }) => email !== null)).toEqual([
    scopes.includes('users:read'),
    false,
    true,
  ]);
  expect(body.data.users).toEqual({ nodes: rest.body.items, totalCount: rest.body.count });
});

test('products and users beyond 32 bits are created, read, paged, changed and deleted in both APIs', async () => {
  const FIRST = 3_000_000_000;
  const pks = [FIRST, FIRST + 1, FIRST + 2];
  await shop.sql(`alter sequence product_pk_seq restart with ${FIRST}`);
  await shop.sql(`alter sequence user_pk_seq restart with ${FIRST}`);
  try {
    await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
    const { body: token } = await shop.rest('POST', '/token', {
      form: { username: 'ada', password: PASSWORD },
    });
    const as = { token: token.access_token as string };
    const send = async (query: string, variables = {}) =>
      (await shop.graphql(query, variables, as)).body.data;
    for (const barcode of ['4006381333931', '0012345678905', '5901234123457']) {
      const json = { name: 'Lamp', barcode, price: 1 };
      const created = await shop.rest('POST', '/api/v1/shop/product/', { ...as, json });
      expect(created.status).toBe(201);
    }
    const list = await shop.rest('GET', '/api/v1/shop/products');
    expect(list.body.map(({ pk }: { pk: number }) => pk)).toEqual(pks);
    const PAGE =
      'query ($after: String) { products(first: 1, after: $after) { nodes { pk } pageInfo { endCursor } } }';
    let after: string | null = null;
    for (const pk of pks) {
      const { products } = await send(PAGE, { after });
      expect(products.nodes).toEqual([{ pk: String(pk) }]);
      after = products.pageInfo.endCursor;
    }
    const page = await shop.rest('GET', '/api/v2/shop/products?limit=1&offset=2');
    expect(page.body).toMatchObject({ items: [{ pk: FIRST + 2 }], count: 3 });
    expect((await shop.rest('GET', `/api/v1/shop/product/${FIRST}`)).body.pk).toBe(FIRST);
    expect(
      await send(`mutation { updateProduct(pk: "${FIRST}", input: { price: 2 }) { pk price } }`),
    ).toEqual({ updateProduct: { pk: String(FIRST), price: 2 } });
    expect(await send(`mutation { deleteProduct(pk: "${FIRST + 1}") { pk } }`)).toEqual({
      deleteProduct: { pk: String(FIRST + 1) },
    });
    expect(await send('{ products { totalCount } me { username } }')).toEqual({
      products: { totalCount: 2 },
      me: { username: 'ada' },
    });
  } finally {
    await shop.sql('alter sequence product_pk_seq restart; alter sequence user_pk_seq restart');
  }
});
