import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/users/user.entity.ts';
import { PASSWORD, PUBLIC_URL, Shop, useShop } from '../support/shop.ts';

const shop = useShop();

const PAGES = '/api/v2/shop/products';
const USERS = '/api/users';
const MINUTE = 60_000;
const FAR = ['1000000000', '2147483648', '9223372036854775807', '9223372036854775808', '100000000000000000000000000000', '9'.repeat(3_000)];

let caller: User;

// Access token lifetime

test.each(['/token', '/login'])('8 an access token that POST %s issues lives 30 minutes', async (path) => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(lifetimeOf(body.access_token)).toBe(1800);
});

test('8 an access token lives 15 minutes when no lifetime is supplied', async () => {
  expect(lifetimeOf(shop.tokenOf(await shop.makeUser()))).toBe(900);
});

test('8 an access token of the token endpoint is good for 30 minutes and no longer', async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  shop.pass(29 * MINUTE);
  const before = await shop.rest('GET', '/users/me/', { token: body.access_token });
  shop.pass(MINUTE);
  const after = await shop.rest('GET', '/users/me/', { token: body.access_token });
  expect([before.status, after.status]).toEqual([200, 401]);
});

// Limit and offset

test.each([`${PAGES}?offset=0`, `${USERS}?offset=0`, USERS])('8 GET %s: the default page size is 100', async (path) => {
  await make(101);
  const { body } = await shop.rest('GET', path, { as: caller });
  expect(body.items).toHaveLength(100);
  expect(body).toMatchObject({ count: 101, next: expect.stringMatching(/\?limit=100&offset=100$/) });
});

describe('with DEFAULT_PAGE_SIZE', () => {
  const small = new Shop({ DEFAULT_PAGE_SIZE: '3' });
  beforeAll(() => small.start());
  afterAll(() => small.stop());

  test.each([`${PAGES}?offset=0`, `${USERS}?offset=0`, USERS])(
    '8 GET %s: the default page size is a configuration setting',
    async (path) => {
      await make(5);
      const { body } = await small.rest('GET', path, { as: caller });
      expect(body.items).toHaveLength(3);
    },
  );
});

test.each(
  [PAGES, USERS].flatMap((path) => ['1001', '1000000000', '9223372036854775808', '9'.repeat(3_000)].map((limit) => [path, limit] as const)),
)('8 GET %s?limit=%s counts as 1,000', async (path, limit) => {
  await make(1001);
  const answer = await shop.rest('GET', `${path}?limit=${limit}`, { as: caller });
  expect(answer.status).toBe(200);
  expect(answer.body.items).toHaveLength(1000);
  expect(answer.body).toMatchObject({ count: 1001, next: expect.stringMatching(/\?limit=1000&offset=1000$/), previous: null });
});

test.each([PAGES, USERS])('8 GET %s?limit=1000 is 1,000', async (path) => {
  await make(1001);
  const { body } = await shop.rest('GET', `${path}?limit=1000`, { as: caller });
  expect(body.items).toHaveLength(1000);
});

// Page numbers

test.each([
  [PAGES, 10],
  [USERS, 5],
])('8 GET %s?page=1 answers a page of %i', async (path, size) => {
  await make(11);
  const { body } = await shop.rest('GET', `${path}?page=1`, { as: caller });
  expect(body.items).toHaveLength(size);
  expect(body.count).toBe(11);
});

// Out of range

test.each([
  [`${PAGES}?page=3`, 'page=2'],
  [`${PAGES}?limit=4&offset=11`, 'limit=4&offset=7'],
  [`${USERS}?page=4`, 'page=3'],
  [`${USERS}?limit=4&offset=11`, 'limit=4&offset=7'],
])('8 GET %s just past the end of 11 answers no items, the true count, and the way back', async (path, back) => {
  await make(11);
  const answer = await shop.rest('GET', path, { as: caller });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ items: [], count: 11, next: null, previous: expect.stringMatching(new RegExp(`\\?${back}$`)) });
});

test.each(
  [PAGES, USERS].flatMap((path) =>
    FAR.flatMap((far) => [`${path}?page=${far}`, `${path}?offset=${far}`, `${path}?limit=${far}&offset=${far}`]),
  ),
)('8 GET %s far past the end answers no items and the true count', async (path) => {
  await make(2);
  const answer = await shop.rest('GET', path, { as: caller });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ items: [], count: 2, next: null, previous: expect.any(String) });
});

test.each([`${PAGES}?page=99`, `${PAGES}?limit=4&offset=99`, `${USERS}?page=99`, `${USERS}?limit=4&offset=99`])(
  '8 from GET %s, past the end, previous leads back to the last entries',
  async (path) => {
    await make(11);
    const { body } = await shop.rest('GET', path, { as: caller });
    const answer = await shop.rest('GET', body.previous.slice(PUBLIC_URL.length), { as: caller });
    expect(answer.body.items.length).toBeGreaterThan(0);
    expect(answer.body.next).toBeNull();
  },
);

// Bad pagination

const NO_INTEGERS = [
  '',
  'abc',
  '1.5',
  '1.0',
  '1e3',
  '0x1',
  'null',
  'NaN',
  'Infinity',
  '1,000',
  '1_000',
  '%201',
  '1%20',
  '1%00',
  '%D9%A1',
  "1'--",
];

test.each([PAGES, USERS].flatMap((path) => ['page', 'limit', 'offset'].map((name) => [path, name] as const)))(
  '8 GET %s with %s that is no integer: 422',
  async (path, name) => {
    await make(1);
    for (const value of NO_INTEGERS) {
      const { status, body } = await shop.rest('GET', `${path}?${name}=${value}`, { as: caller });
      const refusal = { type: 'int_parsing', loc: ['query', name], msg: 'Input should be a valid integer' };
      expect({ value, status, body }).toEqual({ value, status: 422, body: { detail: [refusal] } });
    }
  },
);

test.each(
  [PAGES, USERS].flatMap((path) => [
    [path, 'page', '0', 1] as const,
    [path, 'page', '-1', 1] as const,
    [path, 'page', '-9223372036854775809', 1] as const,
    [path, 'limit', '0', 1] as const,
    [path, 'limit', '-1', 1] as const,
    [path, 'offset', '-1', 0] as const,
    [path, 'offset', '-100000000000000000000000000000', 0] as const,
  ]),
)('8 GET %s?%s=%s is below %i: 422', async (path, name, value, least) => {
  await make(1);
  const answer = await shop.rest('GET', `${path}?${name}=${value}`, { as: caller });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [{ type: 'greater_than_equal', loc: ['query', name], msg: `Input should be greater than or equal to ${least}` }],
  });
});

test.each([PAGES, USERS].flatMap((path) => ['page', 'limit', 'offset'].map((name) => [path, name] as const)))(
  '8 GET %s with %s given twice: 422',
  async (path, name) => {
    await make(1);
    const answer = await shop.rest('GET', `${path}?${name}=1&${name}=1`, { as: caller });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({ detail: [{ type: expect.any(String), loc: ['query', name], msg: expect.any(String) }] });
  },
);

test.each(
  [PAGES, USERS].flatMap((path) => ['page=1&limit=5', 'page=1&offset=0', 'offset=0&page=1&limit=5'].map((query) => [path, query] as const)),
)('8 GET %s?%s asks by page and by limit and offset at once: 422', async (path, query) => {
  await make(1);
  const answer = await shop.rest('GET', `${path}?${query}`, { as: caller });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: [{ type: 'value_error', loc: ['query'], msg: 'Give either page, or limit and offset' }] });
});

test.each([PAGES, USERS])('8 GET %s names every wrong parameter at once', async (path) => {
  await make(1);
  const answer = await shop.rest('GET', `${path}?limit=0&offset=x`, { as: caller });
  expect(answer.status).toBe(422);
  expect(answer.body.detail.map(({ loc }: { loc: string[] }) => loc)).toEqual([
    ['query', 'limit'],
    ['query', 'offset'],
  ]);
});

test.each([PAGES, USERS])('8 GET %s ignores parameters that it does not know', async (path) => {
  await make(1);
  const answer = await shop.rest('GET', `${path}?limit=1&sort=name&__proto__=x&page[]=2`, { as: caller });
  expect(answer.status).toBe(200);
  expect(answer.body.items).toHaveLength(1);
});

/** This many products and users, of whom the first is the caller. */
async function make(count: number): Promise<void> {
  caller = await shop.makeUser({ password: null });
  await shop.sql(`insert into "user" (username) select 'extra ' || n from generate_series(1, ${count - 1}) as n`);
  const barcodes = Array.from({ length: count }, () => `'${shop.newBarcode()}'`).join();
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Tray', barcode, 1, now(), now() from unnest(array[${barcodes}]) as barcode`);
}

function lifetimeOf(token: string): number {
  const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { iat: number; exp: number };
  return claims.exp - claims.iat;
}
