import { describe, expect, test } from '../support/jest.ts';
import type { Product } from '../../src/features/products/product.entity.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { walkFiveByTwos } from '../support/paging.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';
import { sized } from '../support/sized.ts';

const shop = useShop();

const ALL_FIELDS = 'id pk name barcode price createdAt updatedAt';
const LIST = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: ProductFilter, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    edges { cursor node { pk } }
    nodes { pk }
  }
}`;
const UPDATE = `mutation ($pk: ID!, $input: ProductPatch!) { updateProduct(pk: $pk, input: $input) { ${ALL_FIELDS} } }`;
const DELETE = `mutation ($pk: ID!) { deleteProduct(pk: $pk) { ${ALL_FIELDS} } }`;
const REJECTED = [badInput('after'), badInput('before')];
const NOT_A_PK = ['0', '-1', '7', 'x', '', '1.0', '1e0', '9007199254740992'];

describe('GraphQL contract, productByBarcode', () => {
  test('it returns the product with the barcode, with leading zeros', async () => {
    await shop.makeProduct();
    const product = await shop.makeProduct({ barcode: '0012345678905' });
    const answer = await shop.graphql(
      `{ productByBarcode(barcode: "0012345678905") { ${ALL_FIELDS} } }`,
    );
    expect(answer.body).toEqual({ data: { productByBarcode: shown(product) } });
  });

  test('it is null where no product has the barcode', async () => {
    await shop.makeProduct();
    const answer = await shop.graphql('{ productByBarcode(barcode: "0012345678905") { pk } }');
    expect(answer.body).toEqual({ data: { productByBarcode: null } });
  });
});

describe('GraphQL contract, ProductFilter', () => {
  test.each([
    ['search', 'shirt', ['1', '3']],
    ['search', 'SHIRT blue', ['1']],
    ['search', '  cotton   shirt ', ['1']],
    ['search', '0012345678905', ['2']],
    ['search', '001234567890', []],
    ['search', '%', ['4']],
    ['search', '_', ['5']],
    ['search', '\\', ['6']],
    ['search', '', ['1', '2', '3', '4', '5', '6']],
    ['nameContains', 'LUE ', ['1', '2']],
    ['nameContains', 'cotton shirt', ['1']],
    ['nameContains', 'shirt cotton', []],
    ['nameContains', '0% w', ['4']],
    ['nameContains', '_', ['5']],
    ['nameContains', '\\', ['6']],
    ['barcodeIn', ['0012345678905', '4006381333931', '4006381333900'], ['1', '2']],
    ['barcodeIn', [], []],
    ['priceMin', 20, ['2', '3', '5', '6']],
    ['priceMin', '20.01', ['3', '5', '6']],
    ['priceMax', 20, ['1', '2', '4']],
    ['priceMax', '19.99', ['1', '4']],
  ])('%s %j', async (condition, value, expected) => {
    await makeClothes();
    const { data } = (await shop.graphql(LIST, { filter: { [condition]: value } })).body;
    expect([pks(data), data.products.totalCount]).toEqual([expected, expected.length]);
  });

  test.each([
    ['createdSince', '2026-01-04T00:00:00Z', ['1']],
    ['createdSince', '2026-01-03T01:00:00.000+01:00', ['1', '3']],
    ['createdSince', '2026-01-03T00:00:00.001Z', ['1']],
    ['createdSince', '9999-12-31T23:59:59-23:59', []],
    ['createdSince', '0001-01-01T00:00:00+23:59', ['1', '2', '3', '4', '5']],
    ['updatedSince', '2026-01-04T00:00:00Z', ['1', '5']],
  ])('%s %s', async (condition, value, expected) => {
    await makeOrdered();
    const { data } = (await shop.graphql(LIST, { filter: { [condition]: value } })).body;
    expect([pks(data), data.products.totalCount]).toEqual([expected, expected.length]);
    const literal = (
      await shop.graphql(`{ products(filter: { ${condition}: "${value}" }) { nodes { pk } } }`)
    ).body;
    expect(pks(literal.data)).toEqual(expected);
  });

  test('a product has to meet every condition', async () => {
    await makeClothes();
    const filter = {
      search: 'shirt',
      nameContains: 'r',
      priceMin: 10,
      priceMax: 30,
      barcodeIn: ['4006381333931', '4006381333917'],
    };
    expect(pks((await shop.graphql(LIST, { filter })).body.data)).toEqual(['1', '3']);
    expect(
      pks((await shop.graphql(LIST, { filter: { ...filter, priceMin: '10.01' } })).body.data),
    ).toEqual(['3']);
  });

  test('a condition that is null has no effect', async () => {
    await shop.makeProduct();
    const filter = {
      search: null,
      nameContains: null,
      barcodeIn: null,
      priceMin: null,
      priceMax: null,
    };
    const answers = await Promise.all(
      [{ filter }, { filter: {} }, { filter: null, orderBy: null }].map((variables) =>
        shop.graphql(LIST, variables),
      ),
    );
    expect(answers.map(({ body }) => pks(body.data))).toEqual([['1'], ['1'], ['1']]);
  });

  test.each([
    ['search', 'with a NUL', 'a\0b'],
    ['search', 'with half a character', 'a\ud800'],
    ['nameContains', 'with a NUL', 'a\0b'],
    ['nameContains', 'with half a character', 'a\udc00'],
    ['barcodeIn', 'of 101', Array(101).fill('0012345678905')],
    ['search', 'of 40,000 words', 'a '.repeat(40_000)],
  ])('%s %s is BAD_USER_INPUT', async (condition, _name, value) => {
    const answer = await shop.graphql(LIST, { filter: { [condition]: value } });
    expect(answer.body.errors[0].extensions).toEqual(badInput(`filter.${condition}`));
  });

  test.each([
    ['barcodeIn', ['0012345678904']],
    ['priceMin', -1],
    ['priceMin', '1.999'],
    ['priceMax', 'NaN'],
    ['priceMax', 1e10],
    ['createdSince', '2026-01-04'],
    ['createdSince', '2026-02-30T00:00:00Z'],
    ['createdSince', '0000-01-01T00:00:00Z'],
    ['updatedSince', 'now'],
    ['updatedSince', 0],
  ])('%s %j is BAD_USER_INPUT', async (condition, value) => {
    const answer = await shop.graphql(LIST, { filter: { [condition]: value } });
    expect([answer.body.data, codes(answer)]).toEqual([null, ['BAD_USER_INPUT']]);
  });
});

// Products 1 to 5; 2 and 4 differ only in pk and barcode.
const ORDERS = [
  ['PK', ['1', '2', '3', '4', '5']],
  ['NAME', ['3', '2', '4', '5', '1']],
  ['PRICE', ['5', '2', '4', '1', '3']],
  ['CREATED_AT', ['5', '2', '4', '3', '1']],
  ['UPDATED_AT', ['2', '4', '3', '1', '5']],
] as const;
const DIRECTED = ORDERS.flatMap(([field, order]) => [
  { field, direction: 'ASC', expected: [...order] },
  { field, direction: 'DESC', expected: order.toReversed() },
]);

describe('GraphQL contract, ProductOrder', () => {
  test.each(DIRECTED)(
    '$field $direction, ties decided by pk: pages forward and back, to both ends, are the whole list',
    async ({ field, direction, expected }) => {
      await makeOrdered();
      const walked = await walkFiveByTwos(async (args) => {
        const { body } = await shop.graphql(LIST, { ...args, orderBy: { field, direction } });
        return (body.data as Listed).products;
      });
      const pages = [expected.slice(0, 2), expected.slice(2, 4), expected.slice(4)];
      expect(walked.map((products) => pks({ products }))).toEqual([...pages, pages[1], pages[0]]);
    },
  );
});

describe('GraphQL contract, Pages', () => {
  test('an empty list is a page without cursors', async () => {
    const answer = await shop.graphql(LIST);
    expect(answer.body.data.products).toEqual({
      totalCount: 0,
      pageInfo: { hasNextPage: false, hasPreviousPage: false, startCursor: null, endCursor: null },
      edges: [],
      nodes: [],
    });
  });

  test.each([
    [{ first: 2 }, ['1', '2'], true, false],
    [{ first: 2, after: 2 }, ['3', '4'], true, true],
    [{ first: 2, after: 3 }, ['4', '5'], false, true],
    [{ first: 5 }, ['1', '2', '3', '4', '5'], false, false],
    [{ first: 1, after: 5 }, [], false, true],
    [{ after: 3 }, ['4', '5'], false, true],
    [{ last: 2 }, ['4', '5'], false, true],
    [{ last: 2, before: 4 }, ['2', '3'], true, true],
    [{ last: 2, before: 3 }, ['1', '2'], true, false],
    [{ last: 5 }, ['1', '2', '3', '4', '5'], false, false],
    [{ last: 1, before: 1 }, [], true, false],
    [{ first: 1, after: 1, before: 4 }, ['2'], true, true],
    [{ last: 1, after: 1, before: 4 }, ['3'], true, true],
  ])(
    'of five, %j is the page %j with hasNextPage %j and hasPreviousPage %j',
    async (args, expected, hasNextPage, hasPreviousPage) => {
      await shop.makeProducts(5);
      const { data } = (await shop.graphql(LIST, await boundedBy(args))).body;
      expect(pks(data)).toEqual(expected);
      expect(data.products.pageInfo).toMatchObject({ hasNextPage, hasPreviousPage });
    },
  );

  test('a page has 20 by default, and at most 100', async () => {
    await shop.makeProducts(101);
    const answers = await Promise.all(
      [{}, { first: 100 }, { last: 100 }].map((size) => shop.graphql(LIST, size)),
    );
    const pages = answers.map(({ body }) => pks(body.data));
    expect(pages.map(({ length }) => length)).toEqual([20, 100, 100]);
    expect(pages.map(([first]) => first)).toEqual(['1', '1', '2']);
    expect(answers.map(({ body }) => body.data.products.totalCount)).toEqual([101, 101, 101]);
  });

  test.each([
    [{ first: 0 }, 'first'],
    [{ first: -1 }, 'first'],
    [{ first: 101 }, 'first'],
    [{ first: 2_147_483_647 }, 'first'],
    [{ last: 0 }, 'last'],
    [{ last: -1 }, 'last'],
    [{ last: 101 }, 'last'],
    [{ first: 1, last: 1 }, expect.stringMatching(/^(first|last)$/)],
  ])('%j is BAD_USER_INPUT', async (args, field) => {
    const answer = await shop.graphql(LIST, args);
    expect(answer.body.errors[0].extensions).toEqual(badInput(field));
  });
});

describe('GraphQL contract, Pages: cursors stay valid while rows are added and deleted around them', () => {
  test.each([
    ['pk <= 4', { first: 9, after: 4 }, ['5', '6'], false, true],
    ['pk >= 3', { first: 9, after: 3 }, [], false, true],
    ['pk >= 3', { last: 9, before: 3 }, ['1', '2'], true, false],
    ['pk <= 4', { last: 9, before: 4 }, [], true, false],
    ['pk between 2 and 4', { first: 9, after: 3 }, ['5', '6'], false, true],
    ['pk between 2 and 4', { last: 9, before: 3 }, ['1'], true, false],
  ])(
    'the row of the cursor is deleted among %s: %j is %j with hasNextPage %j and hasPreviousPage %j',
    async (gone, args, expected, hasNextPage, hasPreviousPage) => {
      await shop.makeProducts(6);
      const bounded = await boundedBy(args);
      await shop.sql(`delete from product where ${gone}`);
      const { data } = (await shop.graphql(LIST, bounded)).body;
      expect(pks(data)).toEqual(expected);
      expect(data.products.pageInfo).toMatchObject({ hasNextPage, hasPreviousPage });
    },
  );

  test('rows are added before and after the cursor: no row is repeated, no existing row is missing', async () => {
    for (const price of ['1.00', '3.00', '5.00', '7.00']) await shop.makeProduct({ price });
    const orderBy = { field: 'PRICE' };
    const first = (await shop.graphql(LIST, { first: 2, orderBy })).body.data;
    for (const price of ['0.50', '3.00', '2.00', '6.00']) await shop.makeProduct({ price });
    const second = (await shop.graphql(LIST, { after: first.products.pageInfo.endCursor, orderBy }))
      .body.data;
    const back = (
      await shop.graphql(LIST, { last: 9, before: first.products.pageInfo.startCursor, orderBy })
    ).body.data;
    expect([pks(first), pks(second), pks(back)]).toEqual([['1', '2'], ['6', '3', '8', '4'], ['5']]);
  });

  test('the row of the cursor is changed to another position', async () => {
    for (const name of ['a', 'b', 'c', 'd']) await shop.makeProduct({ name });
    const orderBy = { field: 'NAME' };
    const [, second] = await cursorsOf({ orderBy });
    await shop.sql(`update product set name = 'z' where name = 'b'`);
    expect(pks((await shop.graphql(LIST, { after: second, orderBy })).body.data)).toEqual([
      '3',
      '4',
      '2',
    ]);
  });
});

describe('GraphQL contract, Pages: an invalid cursor for this order and filter is BAD_USER_INPUT', () => {
  test.each([
    ['of another order', { orderBy: { field: 'NAME' } }, { orderBy: { field: 'PRICE' } }],
    [
      'of another order by the same kind of value',
      { orderBy: { field: 'CREATED_AT' } },
      { orderBy: { field: 'UPDATED_AT' } },
    ],
    [
      'of another direction',
      { orderBy: { field: 'NAME', direction: 'DESC' } },
      { orderBy: { field: 'NAME' } },
    ],
    ['of another filter', { filter: { search: 'product' } }, { filter: { search: 'prod' } }],
    ['with a filter, without one in the query', { filter: { search: 'product' } }, {}],
    ['without a filter, with one in the query', {}, { filter: { search: 'product' } }],
  ])('one %s', async (_name, issuedFor, usedFor) => {
    await shop.makeProducts(2);
    const [cursor] = await cursorsOf(issuedFor);
    expect(await rejectionsOf(cursor, usedFor)).toEqual(REJECTED);
  });

  test('one of another list', async () => {
    const user = await shop.makeUser();
    const answer = await shop.graphql('{ users { pageInfo { endCursor } } }', {}, { as: user });
    expect(await rejectionsOf(answer.body.data.users.pageInfo.endCursor, {})).toEqual(REJECTED);
  });

  test.each([
    ['PK', [['x'], [null], ['1'], [1.5], [0], [2 ** 53], [], [1, 1], [{ pk: 1 }]]],
    ['NAME', [['a\0', 1], ['a\ud800', 1], [1, 1], ['a', 'x'], ['a'], [['a'], 1]]],
    ['PRICE', ['NaN', 'Infinity', '-1', '1e5', '', 1, "1' or '1'='1"].map((price) => [price, 1])],
    ['CREATED_AT', badTimes().map((time) => [time, 1])],
    ['UPDATED_AT', [['2026-01-01T00:00:00.000Z', -1], ['2026-01-01T00:00:00.000Z']]],
  ])('one of %s, tampered to an impossible position', async (field, places) => {
    await shop.makeProduct();
    const orderBy = { field };
    const [cursor = ''] = await cursorsOf({ orderBy });
    const [mark] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as [string];
    const taken: [place: unknown[], outcome: string][] = [];
    for (const place of places) {
      const after = Buffer.from(JSON.stringify([mark, ...place])).toString('base64url');
      const outcome = codes(await shop.graphql(LIST, { after, orderBy }))[0] ?? 'a page';
      if (outcome !== 'BAD_USER_INPUT') taken.push([place, outcome]);
    }
    expect(taken).toEqual([]);
  });

  test('one with any one bit changed is rejected or has another position, and never an internal error', async () => {
    await shop.makeProduct({ createdAt: new Date('2026-02-28T20:59:59.999Z') });
    const orderBy = { field: 'CREATED_AT' };
    const [cursor = ''] = await cursorsOf({ orderBy });
    const outcomes = new Set<string>();
    for (const after of bitsFlipped(cursor))
      outcomes.add(codes(await shop.graphql(LIST, { after, orderBy }))[0] ?? 'a page');
    outcomes.delete('a page');
    expect([...outcomes]).toEqual(['BAD_USER_INPUT']);
  });
});

describe('GraphQL contract, createProduct', () => {
  test('Price: literals are accepted as numbers and as text', async () => {
    const query = (price: string) =>
      `mutation { createProduct(input: { name: "x", barcode: "${shop.newBarcode()}", price: ${price} }) { price } }`;
    const as = await writer();
    const answers = [
      await shop.graphql(query('7'), {}, { as }),
      await shop.graphql(query('7.5'), {}, { as }),
      await shop.graphql(query('"7.55"'), {}, { as }),
    ];
    expect(answers.map(({ body }) => body.data.createProduct.price)).toEqual([7, 7.5, 7.55]);
  });
});

describe('GraphQL contract, updateProduct', () => {
  test.each([
    ['name', ' Chair ', 'Chair'],
    ['barcode', '0012345678905', '0012345678905'],
    ['price', '0.5', 0.5],
  ])('it changes only the %s', async (field, value, expected) => {
    const product = await shop.makeProduct();
    shop.advanceClock(60_000);
    const before = shop.now();
    const answer = await update(await writer(), String(product.pk), { [field]: value });
    const { updatedAt } = answer.body.data.updateProduct;
    expect(answer.body.data.updateProduct).toEqual({
      ...shown(product),
      [field]: expected,
      updatedAt,
    });
    expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(before.getTime());
    expect((await shop.graphql(`{ product(pk: 1) { ${ALL_FIELDS} } }`)).body.data.product).toEqual(
      answer.body.data.updateProduct,
    );
  });

  test('a patch without a change does not change the time of the last change, and is no event', async () => {
    const product = await shop.makeProduct();
    const token = await writer();
    const changes = () => shop.sql('select count(*)::int from change');
    const before = await changes();
    shop.advanceClock(60_000);
    for (const patch of [{}, { name: product.name, price: product.price }]) {
      const answer = await update(token, String(product.pk), patch);
      expect(answer.body.data.updateProduct).toEqual(shown(product));
    }
    expect(await changes()).toEqual(before);
  });

  test('it accepts the current barcode of the product', async () => {
    const product = await shop.makeProduct();
    const answer = await update(await writer(), '1', { name: 'Chair', barcode: product.barcode });
    expect(answer.body.data.updateProduct).toMatchObject({
      name: 'Chair',
      barcode: product.barcode,
    });
  });

  test('the barcode of another product is CONFLICT, and nothing is changed', async () => {
    const [product, other] = [await shop.makeProduct(), await shop.makeProduct()];
    const answer = await update(await writer(), '1', { name: 'Chair', barcode: other.barcode });
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'CONFLICT',
      fields: [{ field: 'barcode', message: expect.any(String) }],
    });
    expect((await shop.graphql(`{ product(pk: 1) { ${ALL_FIELDS} } }`)).body.data.product).toEqual(
      shown(product),
    );
  });

  test.each([
    ['name', ''],
    ['name', 'x'.repeat(256)],
    ['name', 'a\nb'],
    ['name', null],
    ['barcode', '4006381333932'],
    ['price', -1],
    ['price', '1.999'],
  ])('the %s %j is BAD_USER_INPUT, and nothing is changed', async (field, value) => {
    const { name } = await shop.makeProduct();
    const answer = await update(await writer(), '1', { [field]: value });
    expect(answer.body.errors[0].extensions).toEqual(badInput(expect.stringContaining(field)));
    expect(await stored()).toMatchObject([{ name }]);
  });
});

describe('GraphQL contract, deleteProduct', () => {
  test('it deletes the product and returns it', async () => {
    const [product, other] = [await shop.makeProduct(), await shop.makeProduct()];
    const answer = await shop.graphql(DELETE, { pk: product.pk }, { as: await writer() });
    expect(answer.body).toEqual({ data: { deleteProduct: shown(product) } });
    expect(await stored()).toMatchObject([{ pk: other.pk }]);
  });
});

test.each([
  ['updateProduct', UPDATE],
  ['deleteProduct', DELETE],
])('GraphQL contract, %s: a pk that no product has is NOT_FOUND', async (_field, document) => {
  const { name } = await shop.makeProduct();
  const as = await writer();
  for (const pk of NOT_A_PK)
    expect(codes(await shop.graphql(document, { pk, input: { name: 'Chair' } }, { as }))).toEqual([
      'NOT_FOUND',
    ]);
  expect(await stored()).toMatchObject([{ name }]);
});

type Arguments = Record<string, unknown>;

interface Edge {
  cursor: string;
  node: { pk: string };
}

interface Listed {
  products: {
    totalCount: number;
    nodes: { pk: string }[];
    edges: Edge[];
    pageInfo: {
      hasNextPage: boolean;
      hasPreviousPage: boolean;
      startCursor: string;
      endCursor: string;
    };
  };
}

/** Returns the product as in the schema. */
function shown({ id, pk, name, barcode, price, createdAt, updatedAt }: Product) {
  return {
    id,
    pk: String(pk),
    name,
    barcode,
    price: Number(price),
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function pks({ products }: Listed): string[] {
  return products.nodes.map(({ pk }) => pk);
}

function badInput(field: unknown) {
  return { code: 'BAD_USER_INPUT', fields: [{ field, message: expect.any(String) }] };
}

async function cursorsOf(args: Arguments): Promise<string[]> {
  const { products } = (await shop.graphql(LIST, args)).body.data as Listed;
  return products.edges.map(({ cursor }) => cursor);
}

/** The arguments of a page, with product numbers replaced by cursors. */
async function boundedBy({
  after,
  before,
  ...sizes
}: {
  first?: number;
  last?: number;
  after?: number;
  before?: number;
}): Promise<Arguments> {
  const cursors = await cursorsOf({});
  return {
    ...sizes,
    ...(after && { after: cursors[after - 1] }),
    ...(before && { before: cursors[before - 1] }),
  };
}

function badTimes(): unknown[] {
  const days = [
    '2026-13-01',
    '2026-00-01',
    '2026-01-32',
    '2026-02-30',
    '2026-04-31',
    '2025-02-29',
    '0000-01-01',
    '+012026-01-01',
    '-002026-01-01',
  ];
  return [
    'now',
    'infinity',
    '',
    0,
    null,
    '2026-01-01T25:00:00.000Z',
    '2026-01-01',
    ...days.map((day) => `${day}T00:00:00.000Z`),
  ];
}

/** Yields the text in base64url with each of its bits changed, one at a time. */
function bitsFlipped(text: string): string[] {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const all = [...text].flatMap((sign, at) =>
    [1, 2, 4, 8, 16, 32].map(
      (bit) => text.slice(0, at) + alphabet[alphabet.indexOf(sign) ^ bit] + text.slice(at + 1),
    ),
  );
  // Coprime to 6, so that the sample has each of the six bits.
  return all.filter((_, index) => index % sized(1, 11) === 0);
}

/** Returns the errors for the cursor as the start and as the end of a page. */
async function rejectionsOf(cursor: string | undefined, args: Arguments): Promise<unknown[]> {
  const answers = [
    await shop.graphql(LIST, { ...args, after: cursor }),
    await shop.graphql(LIST, { ...args, last: 1, before: cursor }),
  ];
  return answers.map(({ body }) => body.errors?.[0].extensions);
}

async function makeClothes(): Promise<void> {
  await shop.makeProduct({ name: 'Blue Cotton Shirt', price: '10.00', barcode: '4006381333931' });
  await shop.makeProduct({ name: 'blue jeans', price: '20.00', barcode: '0012345678905' });
  await shop.makeProduct({ name: 'Red shirt', price: '30.00', barcode: '4006381333917' });
  await shop.makeProduct({ name: '100% wool', price: '9.99' });
  await shop.makeProduct({ name: 'snake_case', price: '100.00' });
  await shop.makeProduct({ name: 'back\\slash', price: '9999999999.99' });
}

async function makeOrdered(): Promise<void> {
  const day = (number: number) => new Date(Date.UTC(2026, 0, number));
  await shop.makeProduct({ name: 'cherry', price: '10.00', createdAt: day(4) });
  await shop.makeProduct({ name: 'Banana', price: '9.50', createdAt: day(2) });
  await shop.makeProduct({ name: 'apple', price: '100.00', createdAt: day(3) });
  await shop.makeProduct({ name: 'banana', price: '9.50', createdAt: day(2) });
  await shop.makeProduct({ name: 'Bananas', price: '0.99', createdAt: day(1) });
  await shop.sql(`update product set updated_at = '2026-01-05T00:00:00Z' where pk = 5`);
}

function writer(): Promise<User> {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

function update(as: User, pk: string, input: Arguments): Promise<Answer> {
  return shop.graphql(UPDATE, { pk, input }, { as });
}

function stored() {
  return shop.sql('select pk::int, name, barcode, price from product order by pk');
}
