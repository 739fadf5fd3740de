import { expect, test } from '../support/jest.ts';
import type { Scope } from '../../src/core/scopes.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { insertingMany } from '../support/many-products.ts';
import { PUBLIC_URL, Shop, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCTS = '/api/v2/shop/products';
const USERS = '/api/users';
const LISTS = [PRODUCTS, USERS];
const NO_INTEGERS = ['', 'abc', "1'--", '1.5', '1e3', '0x10', '%2B1', '%D9%A1'];
/** Past the end of every list: the largest integer of each width, one more, and far more. */
const FAR = ['9223372036854775808', '9'.repeat(4_000)];
const NOT_AN_INTEGER = { type: 'int_parsing', msg: 'Input should be a valid integer' };

// Q1

test('Q1 25 products are pages of 10, 10 and 5 with the count and links to each other', async () => {
  await shop.makeProducts(25);
  const first = await get(`${PRODUCTS}?page=1`);
  const second = await get(pathOf(first.body.next));
  const third = await get(pathOf(second.body.next));
  const pages = [first, second, third].map(({ body }) => body);
  expect(pages.map(({ items, count }) => [items.length, count])).toEqual([
    [10, 25],
    [10, 25],
    [5, 25],
  ]);
  expect(pages.flatMap(({ items }) => pks(items))).toEqual(upTo(25));
  expect([first.body.previous, third.body.next]).toEqual([null, null]);
  for (const link of pages
    .flatMap(({ next, previous }) => [next, previous])
    .filter((url) => url !== null)) {
    expect(new URL(link as string).origin).toBe(PUBLIC_URL);
  }
  expect((await get(pathOf(third.body.previous))).body).toEqual(second.body);
  expect((await get(pathOf(second.body.previous))).body).toEqual(first.body);
});

test.each([
  ['page=2', 'page'],
  ['limit=7&offset=7', 'limit'],
  ['limit=7&offset=3', 'limit'],
])('Q1 from ?%s the links lead to both ends, each product once', async (query) => {
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
});

// Q2

test.each(NO_INTEGERS)('Q2 page=%s is 422', async (text) => {
  const as = await caller();
  for (const list of LISTS) {
    const { status, body } = await get(`${list}?page=${text}`, as);
    expect([status, body]).toEqual([
      422,
      { detail: [{ ...NOT_AN_INTEGER, loc: ['query', 'page'] }] },
    ]);
  }
});

test.each(['0', '-1', '-9223372036854775809'])('Q2 page=%s is below 1, and 422', async (text) => {
  const as = await caller();
  for (const list of LISTS) expect((await get(`${list}?page=${text}`, as)).status).toBe(422);
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

test.each(['page=1&page=2', 'page=1&limit=5', 'limit=1&limit=2', 'page=1&p%61ge=2'])(
  'Q2 ?%s repeats a parameter or mixes both styles, and is 422',
  async (query) => {
    const as = await caller();
    for (const list of LISTS) expect((await get(`${list}?${query}`, as)).status).toBe(422);
  },
);

// Q5

test.each([...NO_INTEGERS, '0', '-1'])('Q5 limit=%s is 422', async (text) => {
  const as = await caller();
  for (const list of LISTS) {
    const { status, body } = await get(`${list}?limit=${text}`, as);
    expect([status, body.detail[0].loc]).toEqual([422, ['query', 'limit']]);
    expect((await get(`${list}?limit=${text}&offset=0`, as)).status).toBe(422);
  }
});

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

// Q6

test.each([...NO_INTEGERS, '-1'])('Q6 offset=%s is 422', async (text) => {
  const as = await caller();
  for (const list of LISTS) {
    const { status, body } = await get(`${list}?offset=${text}`, as);
    expect([status, body.detail[0].loc]).toEqual([422, ['query', 'offset']]);
    expect((await get(`${list}?limit=5&offset=${text}`, as)).status).toBe(422);
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

// Q9

test('Q9 links include BASE_PATH', async () => {
  const under = await new Shop({ BASE_PATH: '/under' }).start();
  try {
    await shop.makeProducts(11);
    const { body } = await under.rest('GET', `${PRODUCTS}?page=1`, {
      headers: { 'X-Forwarded-Prefix': '/evil' },
    });
    expect(body.next).toBe(`${PUBLIC_URL}/under${PRODUCTS}?page=2`);
  } finally {
    await under.stop();
  }
});

// Q10

test.each(['', '?page=0', '/'])('Q10 GET /api/users%s without credentials is 401', async (rest) => {
  await shop.makeUser({ password: null, email: 'bob@shop.example' });
  const { status, body, headers } = await get(USERS + rest);
  expect([status, body, headers.get('www-authenticate')]).toEqual([
    401,
    { detail: 'Not authenticated' },
    'Bearer',
  ]);
});

test.each<[string, Scope[], boolean]>([
  ['without scopes', [], false],
  ['with users:read', ['users:read'], true],
])("Q10 signed in %s: visibility of others' email", async (_what, scopes, isShown) => {
  await shop.makeUser({ password: null, email: 'bob@shop.example', username: 'bob' });
  await shop.makeUser({
    password: null,
    email: 'eve@shop.example',
    username: 'eve',
    disabled: true,
  });
  const as = await caller(scopes);
  for (const query of [
    '',
    '?page=1',
    '?limit=1000',
    '?fields=email&include=email&scope=users:read',
  ]) {
    const { body, text } = await get(USERS + query, as);
    const shown = (email: string) => (isShown ? email : null);
    expect(
      (body.items as Record<string, unknown>[]).map(({ username, email }) => [username, email]),
    ).toEqual([
      ['bob', shown('bob@shop.example')],
      ['eve', shown('eve@shop.example')],
      ['caller', 'caller@shop.example'],
    ]);
    expect(text).not.toMatch(/hash|\$2b/);
  }
});

async function caller(scopes: Scope[] = []): Promise<User> {
  return shop.makeUser({
    username: 'caller',
    email: 'caller@shop.example',
    password: null,
    scopes,
  });
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
