import { expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { insertingMany } from '../support/many-products.ts';
import { PUBLIC_URL, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();
const under = useShop({ BASE_PATH: '/under' });
const small = useShop({ DEFAULT_PAGE_SIZE: '3' });

const PRODUCTS = '/api/v2/shop/products';
const USERS = '/api/users';
const LISTS = [PRODUCTS, USERS];
const NO_INTEGERS = ['', 'abc', "1'--", '1.5', '1e3', '0x10', '%2B1', '%D9%A1'];
/** Past the end of every list: the largest integer of each width, one more, and far more. */
const FAR = ['9223372036854775808', '9'.repeat(4_000)];
const NOT_AN_INTEGER = { type: 'int_parsing', msg: 'Input should be a valid integer' };
const TWICE = { type: expect.any(String), msg: expect.any(String) };
const BOTH = { type: 'value_error', loc: ['query'], msg: 'Give either page, or limit and offset' };
const below = (least: number) => ({
  type: 'greater_than_equal',
  msg: `Input should be greater than or equal to ${least}`,
});

test.each(['page=2', 'limit=7&offset=7', 'limit=7&offset=3'])(
  'Q1 from ?%s the links lead to both ends, each product once',
  async (query) => {
    await shop.makeProducts(25);
    const middle = (await get(`${PRODUCTS}?${query}`)).body;
    const after: number[] = [];
    for (let url = middle.next; url !== null;) {
      const { body } = await get(pathOf(url));
      after.push(...pks(body.items));
      url = body.next;
    }
    expect([...pks(middle.items), ...after]).toEqual(
      upTo(25).slice((pks(middle.items)[0] as number) - 1),
    );
    let start = middle;
    while (start.previous !== null) start = (await get(pathOf(start.previous))).body;
    expect(pks(start.items)[0]).toBe(1);
  },
);

const PARAMETERS = [
  ['Q2', 'page', 1],
  ['Q5', 'limit', 1],
  ['Q6', 'offset', 0],
] as const;

test.each<[id: string, query: string, ...detail: object[]]>([
  ...PARAMETERS.flatMap(([id, name, least]): [string, string, object][] => [
    ...NO_INTEGERS.map((text): [string, string, object] => [
      id,
      `${name}=${text}`,
      { ...NOT_AN_INTEGER, loc: ['query', name] },
    ]),
    ...[least - 1, '-9223372036854775809'].map((number): [string, string, object] => [
      id,
      `${name}=${number}`,
      { ...below(least), loc: ['query', name] },
    ]),
  ]),
  [
    'Q5',
    'limit=0&offset=',
    { ...below(1), loc: ['query', 'limit'] },
    { ...NOT_AN_INTEGER, loc: ['query', 'offset'] },
  ],
  ['Q2', 'page=1&page=2', { ...TWICE, loc: ['query', 'page'] }],
  ['Q2', 'page=1&p%61ge=2', { ...TWICE, loc: ['query', 'page'] }],
  ['Q5', 'limit=1&limit=2', { ...TWICE, loc: ['query', 'limit'] }],
  ['Q2', 'page=1&limit=5', BOTH],
])('%s ?%s is 422, which names each error', async (_id, query, ...detail) => {
  const as = await caller();
  for (const list of LISTS) {
    const { status, body } = await get(`${list}?${query}`, as);
    expect([list, status, body]).toEqual([list, 422, { detail }]);
  }
});

test.each(['4', ...FAR])(
  'Q2 page=%s is past the end: 200, no items, the true count, and a previous link',
  async (page) => {
    const as = await caller();
    await shop.makeProducts(25);
    const { status, body } = await get(`${PRODUCTS}?page=${page}`);
    expect([status, body]).toEqual([
      200,
      { items: [], count: 25, next: null, previous: `${PUBLIC_URL}${PRODUCTS}?page=3` },
    ]);
    const users = await get(`${USERS}?page=${page}`, as);
    expect([users.status, users.body]).toEqual([
      200,
      { items: [], count: 1, next: null, previous: `${PUBLIC_URL}${USERS}?page=1` },
    ]);
  },
);

test.each(['1001', ...FAR])('Q5 limit=%s counts as 1,000', async (limit) => {
  const as = await caller();
  await shop.sql(
    `insert into "user" (username) select 'extra ' || n from generate_series(1, 1004) as n`,
  );
  await shop.sql(insertingMany(1_005));
  for (const list of LISTS) {
    const { status, body } = await get(`${list}?limit=${limit}&offset=2`, as);
    expect([status, body.items.length, body.count]).toEqual([200, 1_000, 1_005]);
    expect(body.next).toBe(`${PUBLIC_URL}${list}?limit=1000&offset=1002`);
  }
});

test.each(FAR)(
  'Q6 offset=%s is past the end: 200, no items, the true count, and no database message',
  async (offset) => {
    const as = await caller();
    await shop.makeProducts(3);
    for (const [list, count] of [
      [PRODUCTS, 3],
      [USERS, 1],
    ] as const) {
      for (const query of [
        `offset=${offset}`,
        `limit=1000&offset=${offset}`,
        `limit=${offset}&offset=${offset}`,
      ]) {
        const { status, body, text } = await get(`${list}?${query}`, as);
        expect([status, body.items, body.count, body.next]).toEqual([200, [], count, null]);
        expect(text).not.toMatch(/bigint|integer|range|syntax|error/i);
      }
    }
    expect(
      shop.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 40),
    ).toEqual([]);
  },
);

test('Q9 links include BASE_PATH', async () => {
  await shop.makeProducts(11);
  const { body } = await under.rest('GET', `${PRODUCTS}?page=1`, {
    headers: { 'X-Forwarded-Prefix': '/evil' },
  });
  expect(body.next).toBe(`${PUBLIC_URL}/under${PRODUCTS}?page=2`);
});

test.each([`${PRODUCTS}?offset=0`, `${USERS}?offset=0`, USERS])(
  'DEFAULT_PAGE_SIZE is the size of a page: %s',
  async (path) => {
    const as = await caller();
    await shop.sql(`insert into "user" (username) values ('a'), ('b'), ('c'), ('d')`);
    await shop.makeProducts(5);
    expect((await small.rest('GET', path, { as })).body.items).toHaveLength(3);
  },
);

function caller(): Promise<User> {
  return shop.makeUser({ password: null });
}

function get(path: string, as?: User): Promise<Answer> {
  return shop.rest('GET', path, as && { as });
}

/** Returns the path of a link. */
function pathOf(link: string): string {
  expect(link.startsWith(`${PUBLIC_URL}/`)).toBe(true);
  return link.slice(PUBLIC_URL.length);
}

function pks(items: { pk: number }[]): number[] {
  return items.map(({ pk }) => pk);
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
