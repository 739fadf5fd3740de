import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const PRODUCT = 'pk name barcode price';
const CREATE = `mutation ($input: ProductInput!) { createProduct(input: $input) { ${PRODUCT} } }`;

const shop = useShop();

describe('Decisions, one domain behind two APIs: the catalogue', () => {
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

  test.each([7, 25])(
    'the whole list is the connection walked by cursor, %i at a time',
    async (first) => {
      await shop.makeProducts(25);
      const rest = await shop.rest('GET', '/api/v1/shop/products');
      expect(rest.body).toHaveLength(25);
      expect(await walk(first)).toEqual(rest.body);
    },
  );

  test('each page by number has the nodes, count and neighbours of the page by cursor', async () => {
    await shop.makeProducts(25);
    let after: string | null = null;
    for (const [page, size] of [1, 2, 3].map((number) => [number, number === 3 ? 5 : 10])) {
      const rest = await shop.rest('GET', `/api/v2/shop/products?page=${page}`);
      const products = await pageOf(10, after);
      expect(rest.body.items).toHaveLength(Number(size));
      expect(products.nodes.map(asRest)).toEqual(rest.body.items);
      expect(products.totalCount).toBe(rest.body.count);
      expect(products.pageInfo.hasNextPage).toBe(rest.body.next !== null);
      expect(products.pageInfo.hasPreviousPage).toBe(rest.body.previous !== null);
      after = products.pageInfo.endCursor;
    }
  });
});

describe('primary keys of 64 bits', () => {
  const FIRST = 3_000_000_000;

  test('products and users beyond 32 bits are created, read, paged, changed and deleted in both APIs', async () => {
    await shop.sql(`alter sequence product_pk_seq restart with ${FIRST}`);
    await shop.sql(`alter sequence user_pk_seq restart with ${FIRST}`);
    try {
      await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
      const { body: token } = await shop.rest('POST', '/token', {
        form: { username: 'ada', password: PASSWORD },
      });
      const as = { token: token.access_token as string };
      for (const barcode of ['4006381333931', '0012345678905', '5901234123457']) {
        const json = { name: 'Lamp', barcode, price: 1 };
        const created = await shop.rest('POST', '/api/v1/shop/product/', { ...as, json });
        expect(created.status).toBe(201);
      }
      const pks = [FIRST, FIRST + 1, FIRST + 2];
      const list = await shop.rest('GET', '/api/v1/shop/products');
      expect(list.body.map(({ pk }: { pk: number }) => pk)).toEqual(pks);
      expect(await walk(1)).toEqual(list.body);
      const page = await shop.rest('GET', '/api/v2/shop/products?limit=1&offset=2');
      expect(page.body).toMatchObject({ items: [{ pk: FIRST + 2 }], count: 3 });
      expect((await shop.rest('GET', `/api/v1/shop/product/${FIRST}`)).body.pk).toBe(FIRST);
      const { body: changed } = await shop.graphql(
        `mutation { updateProduct(pk: "${FIRST}", input: { price: 2 }) { pk price } }`,
        {},
        as,
      );
      expect(changed).toEqual({ data: { updateProduct: { pk: String(FIRST), price: 2 } } });
      const { body: deleted } = await shop.graphql(
        `mutation { deleteProduct(pk: "${FIRST + 1}") { pk } }`,
        {},
        as,
      );
      expect(deleted).toEqual({ data: { deleteProduct: { pk: String(FIRST + 1) } } });
      expect(
        (await shop.graphql('{ products { totalCount } me { username } }', {}, as)).body,
      ).toEqual({
        data: { products: { totalCount: 2 }, me: { username: 'ada' } },
      });
    } finally {
      await shop.sql('alter sequence product_pk_seq restart; alter sequence user_pk_seq restart');
    }
  });
});

describe('Decisions, one domain behind two APIs: users', () => {
  const ALL = '{ users(first: 100) { nodes { username email fullName disabled } totalCount } }';

  test.each<[string, ('users:read' | 'blog:write')[]]>([
    ['without users:read, to which only the own email is visible', ['blog:write']],
    ['with users:read, to which every email is visible', ['users:read']],
  ])('the list is the same in both APIs for a caller %s', async (_caller, scopes) => {
    await shop.makeUser({ fullName: 'Ann Example' });
    await shop.makeUser({ disabled: true, email: null });
    const caller = await shop.makeUser({ scopes });
    const rest = await shop.rest('GET', '/api/users', { as: caller });
    const { users } = (await shop.graphql(ALL, {}, { as: caller })).body.data;
    expect(rest.body.items.map(({ email }: { email: unknown }) => email !== null)).toEqual([
      scopes.includes('users:read'),
      false,
      true,
    ]);
    expect(users.nodes.map(userAsRest)).toEqual(rest.body.items);
    expect(users.totalCount).toBe(rest.body.count);
  });

  test("the signed-in user's items are the same in both APIs", async () => {
    const user = await shop.makeUser();
    await shop.makeItem(await shop.makeUser());
    for (const name of ['b', 'a', 'c']) await shop.makeItem(user, name);
    const rest = await shop.rest('GET', '/users/me/items/', { as: user });
    const graphql = await shop.graphql(
      '{ me { items { nodes { itemId owner { username } } totalCount } } }',
      {},
      { as: user },
    );
    const { nodes, totalCount } = graphql.body.data.me.items;
    expect(rest.body.map(({ item_id }: { item_id: string }) => item_id)).toEqual(['b', 'a', 'c']);
    expect(
      nodes.map((item: ItemNode) => ({ item_id: item.itemId, owner: item.owner.username })),
    ).toEqual(rest.body);
    expect(totalCount).toBe(3);
  });

  test("the blog is the same in both APIs: published entries and the caller's own drafts, newest first, with each creator's email", async () => {
    const [caller, other] = [await shop.makeUser(), await shop.makeUser()];
    const at = (hour: number) => new Date(Date.UTC(2027, 0, 1, hour));
    await shop.makeEntry(caller, { title: 'own draft', published: false, createdAt: at(1) });
    await shop.makeEntry(other, { title: 'published', createdAt: at(3) });
    await shop.makeEntry(other, { title: 'draft of another', published: false, createdAt: at(4) });
    await shop.makeEntry(caller, { title: 'own', createdAt: at(2) });
    const rest = await shop.rest('GET', '/blog', { as: caller });
    const graphql = await shop.graphql(
      '{ blog { nodes { title body published creator { username email } } totalCount } }',
      {},
      { as: caller },
    );
    expect(rest.body.map(({ title }: { title: string }) => title)).toEqual([
      'published',
      'own',
      'own draft',
    ]);
    expect(rest.body[0].creator).toEqual({ username: other.username, email: other.email });
    expect(graphql.body.data.blog).toEqual({ nodes: rest.body, totalCount: 3 });
  });
});

describe('Decisions, one domain behind two APIs: creation', () => {
  const EMOJI = '👩‍👩‍👧';

  test.each<[string, object]>([
    ['a number', { name: 'Pen', price: 12.5 }],
    ['a price as text', { name: 'Pen', price: '12.50' }],
    ['a name to be trimmed', { name: '  Pen  ', price: 0 }],
    ['a name of 255 characters', { name: 'é'.repeat(255), price: 9_999_999_999.99 }],
    [
      'a name with signs of markup and SQL',
      { name: `<b>'; drop table product; --</b> ${EMOJI}`, price: '0' },
    ],
  ])('both APIs store the same: %s', async (_what, values) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const [one, two] = [shop.newBarcode(), shop.newBarcode()];
    const rest = await shop.rest('POST', '/api/v1/shop/product/', {
      as,
      json: { ...values, barcode: one },
    });
    const graphql = await shop.graphql(CREATE, { input: { ...values, barcode: two } }, { as });
    expect(rest.status).toBe(201);
    expect(rest.body.barcode).toBe(one);
    expect(asRest(graphql.body.data.createProduct)).toEqual({
      ...rest.body,
      pk: rest.body.pk + 1,
      barcode: two,
    });
    expect((await shop.rest('GET', '/api/v1/shop/products')).body).toEqual([
      rest.body,
      asRest(graphql.body.data.createProduct),
    ]);
  });

  test.each<[string, object, string[]]>([
    ['a name of 256 characters', { name: 'é'.repeat(256) }, ['name']],
    ['a barcode that is a number', { barcode: 4006381333931 }, ['barcode']],
    ['a price of three digits behind the point', { price: 19.999 }, ['price']],
    ['barcode and price at once', { barcode: '1', price: -1 }, ['barcode', 'price']],
  ])(
    '%s is bad input for both, with the same fields and messages',
    async (_what, values, fields) => {
      const as = await shop.makeUser({ scopes: ['products:write'] });
      const input = { name: 'Pen', barcode: '4006381333931', price: 1, ...values };
      const rest = await shop.rest('POST', '/api/v1/shop/product/', { as, json: input });
      const graphql = await shop.graphql(CREATE, { input }, { as });
      expect(fieldsInRest(rest).map(({ field }) => field)).toEqual(fields);
      expect(fieldsInGraphql(graphql)).toEqual(fieldsInRest(rest));
      expect(await shop.sql('select * from product')).toEqual([]);
    },
  );
});

describe('Decisions, one domain behind two APIs: rejections', () => {
  const NEW = { name: 'Pen', barcode: '4006381333931', price: 1 };
  const PAIRS: [
    string,
    (request: RequestOptions) => Promise<Answer>,
    string,
    (request: RequestOptions) => Promise<Answer>,
  ][] = [
    [
      'GET /api/users',
      (request) => shop.rest('GET', '/api/users', request),
      'users',
      (request) => shop.graphql('{ users { totalCount } }', {}, request),
    ],
    [
      'GET /blog',
      (request) => shop.rest('GET', '/blog', request),
      'blog',
      (request) => shop.graphql('{ blog { totalCount } }', {}, request),
    ],
    [
      'POST /api/v1/shop/product/',
      (request) => shop.rest('POST', '/api/v1/shop/product/', { ...request, json: NEW }),
      'createProduct',
      (request) => shop.graphql(CREATE, { input: NEW }, request),
    ],
  ];

  test.each(PAIRS)(
    'Decisions, who may write: without credentials %s is 401, and its field UNAUTHENTICATED',
    async (_endpoint, rest, field, graphql) => {
      const rejected = await rest({});
      expect([rejected.status, rejected.headers.get('WWW-Authenticate'), rejected.body]).toEqual([
        401,
        'Bearer',
        { detail: 'Not authenticated' },
      ]);
      expectFieldError(await graphql({}), field, 'Not authenticated', { code: 'UNAUTHENTICATED' });
      expect(await shop.sql('select * from product')).toEqual([]);
    },
  );

  test('Decisions, who may write: credentials without the scope are 403 and FORBIDDEN, and the scope is named', async () => {
    const as = await shop.makeUser({ scopes: ['users:read', 'blog:write'] });
    const rest = await shop.rest('POST', '/api/v1/shop/product/', { as, json: NEW });
    const graphql = await shop.graphql(CREATE, { input: NEW }, { as });
    expect(rest.status).toBe(403);
    expect(rest.body).toEqual({ detail: expect.stringContaining('products:write') });
    expectFieldError(graphql, 'createProduct', rest.body.detail, { code: 'FORBIDDEN' });
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test.each([
    ['updateProduct', 'mutation { updateProduct(pk: 999, input: { name: "Pen" }) { pk } }'],
    ['deleteProduct', 'mutation { deleteProduct(pk: 999) { pk } }'],
  ])('404 in REST is NOT_FOUND where a field cannot be null: %s', async (field, mutation) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const rest = await shop.rest('GET', '/api/v1/shop/product/999', { as });
    expect([rest.status, rest.body]).toEqual([404, { detail: 'No such product' }]);
    expectFieldError(await shop.graphql(mutation, {}, { as }), field, 'No such product', {
      code: 'NOT_FOUND',
    });
  });
});

interface ProductNode {
  pk: string;
}

interface UserNode {
  username: string;
  email: string | null;
  fullName: string | null;
  disabled: boolean;
}

interface ItemNode {
  itemId: string;
  owner: { username: string };
}

const PAGE = `query ($first: Int!, $after: String) {
  products(first: $first, after: $after) { nodes { ${PRODUCT} } totalCount pageInfo { hasNextPage hasPreviousPage endCursor } }
}`;

/** All products, page after page. */
async function walk(first: number): Promise<unknown[]> {
  const found: unknown[] = [];
  for (let after: string | null = null, more = true; more;) {
    const { nodes, pageInfo } = await pageOf(first, after);
    found.push(...nodes.map(asRest));
    after = pageInfo.endCursor;
    more = pageInfo.hasNextPage;
  }
  return found;
}

interface ProductPage {
  nodes: ProductNode[];
  totalCount: number;
  pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; endCursor: string | null };
}

async function pageOf(first: number, after: string | null): Promise<ProductPage> {
  return (await shop.graphql(PAGE, { first, after })).body.data.products;
}

function asRest({ pk, ...rest }: ProductNode) {
  return { pk: Number(pk), ...rest };
}

function userAsRest({ fullName, ...rest }: UserNode) {
  return { ...rest, full_name: fullName };
}

/** The request is served, and this field has an error. */
function expectFieldError(
  { status, body }: Answer,
  field: string,
  message: string,
  extensions: object,
): void {
  expect(status).toBe(200);
  expect(body).toEqual({
    data: null,
    errors: [{ message, path: [field], locations: expect.any(Array), extensions }],
  });
}

interface FieldError {
  field: string;
  message: string;
}

/** The fields that a 422 names, with their messages. */
function fieldsInRest({ status, body }: Answer): FieldError[] {
  if (status !== 422) throw new Error(`expected status 422, got ${status}`);
  return (body.detail as { loc: string[]; msg: string }[]).map(({ loc, msg }) => ({
    field: loc.slice(1).join('.'),
    message: msg,
  }));
}

/** The fields that the errors of code BAD_USER_INPUT name, with their messages. */
function fieldsInGraphql({ body }: Answer): FieldError[] {
  const errors = body.errors as { extensions: { code: string; fields: FieldError[] } }[];
  return errors
    .filter(({ extensions }) => extensions.code === 'BAD_USER_INPUT')
    .flatMap(({ extensions }) => extensions.fields);
}
