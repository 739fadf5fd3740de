import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import * as legacy from '../../src/features/rest-usage/rest-usage.service.ts';
import { PASSWORD, Shop, useShop, type RequestOptions } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const PAGES = 'GET /api/v2/shop/products';
const PRODUCT = 'GET /api/v1/shop/product/{pk}';
const DAY_MS = 86_400_000;

const shop = useShop();

const from = (client: string) => ({ headers: { 'User-Agent': client } });
const at = new Date('2027-01-31T08:00:00Z');

/** Stores all counts. Returns the stored rows: endpoint, client, user and number of calls. */
async function stored(of: Shop = shop): Promise<unknown[][]> {
  await legacy.store(of.context(), of.calls);
  const rows = await of.sql(
    'select endpoint, client, subject, calls::int from rest_call order by 1, 2, 3',
  );
  return rows.map(({ endpoint, client, subject, calls }) => [endpoint, client, subject, calls]);
}

// Counted calls

describe('calls', () => {
  const own = new Shop();
  beforeAll(() => own.start());
  afterAll(() => own.stop());

  test('each call is counted by endpoint, client and user; HEAD counts as GET', async () => {
    own.calls.take();
    const user = await own.makeUser({ password: null });
    const { pk } = await own.makeProduct();
    const paths = [
      '/api/v2/shop/products',
      '/api/v2/shop/products/',
      `/api/v1/shop/product/${pk}`,
      '/api/v1/shop/products',
    ];
    for (const path of paths) {
      // From the third time on, the response may come from the cache.
      for (let time = 0; time < 3; time++)
        expect(await own.rest('GET', path, from('till/1'))).toMatchObject({ status: 200 });
      await own.rest('GET', path, { as: user, ...from('till/2') });
    }
    await own.rest('HEAD', '/api/v2/shop/products', from('till/3'));
    const rejected = { as: user, json: {}, ...from('till/2') };
    expect(await own.rest('POST', '/api/v1/shop/product/', rejected)).toMatchObject({
      status: 403,
    });
    // Only the router decodes the path.
    await own.rest('GET', `/api/v1/shop/product/%3${pk}`, from('till/3'));
    expect(await stored(own)).toEqual([
      [PRODUCT, 'till/1', '', 3],
      [PRODUCT, 'till/2', user.username, 1],
      [PRODUCT, 'till/3', '', 1],
      ['GET /api/v1/shop/products', 'till/1', '', 3],
      ['GET /api/v1/shop/products', 'till/2', user.username, 1],
      [PAGES, 'till/1', '', 6],
      [PAGES, 'till/2', user.username, 2],
      [PAGES, 'till/3', '', 1],
      ['POST /api/v1/shop/product/', 'till/2', user.username, 1],
    ]);
  });
});

test.each<[string, string, RequestOptions, number]>([
  ['GET', '/users/me/', {}, 401],
  ['GET', '/users/me/', { token: 'none' }, 401],
  ['POST', '/session/login', { json: { username: 'nobody', password: 'wrong' } }, 401],
  ['POST', '/session/login', { body: '{', headers: { 'Content-Type': 'application/json' } }, 400],
  ['POST', '/session/login', { body: '<a/>', headers: { 'Content-Type': 'text/xml' } }, 415],
])('a failed call is counted: %s %s with %j, status %s', async (method, path, request, status) => {
  const headers = { ...request.headers, ...from('till').headers };
  expect(await shop.rest(method, path, { ...request, headers })).toMatchObject({ status });
  expect(await stored()).toEqual([[`${method} ${path}`, 'till', '', 1]]);
});

test('logins and logouts are counted by username, once it is known', async () => {
  await shop.makeUser({ username: 'bea' });
  const login = await shop.rest('POST', '/session/login', {
    json: { username: 'bea', password: PASSWORD },
    ...from('till'),
  });
  await shop.rest('POST', '/session/login', {
    json: { username: 'bea', password: 'wrong' },
    ...from('till'),
  });
  await shop.rest('POST', '/api/v2/auth/login', {
    sessionKey: String(login.body.session_key),
    ...from('till'),
  });
  expect(await stored()).toEqual([
    ['POST /api/v2/auth/login', 'till', 'bea', 1],
    ['POST /session/login', 'till', '', 1],
    ['POST /session/login', 'till', 'bea', 1],
  ]);
});

test('calls of other paths are not counted', async () => {
  await shop.rest('OPTIONS', '/api/v2/shop/products');
  await shop.rest('PUT', '/api/v2/shop/products');
  await shop.rest('GET', '/api/v2/shop/nothing');
  await shop.rest('GET', '/livez');
  await shop.graphql('{ products { totalCount } }');
  expect(await stored()).toEqual([]);
});

test('an endpoint counts under its own name with any path prefix', async () => {
  const based = await new Shop({ BASE_PATH: '/shop' }).start();
  await based.rest('GET', '/api/v2/shop/products', from('till'));
  const found = await stored(based);
  await based.stop();
  expect(found).toEqual([[PAGES, 'till', '', 1]]);
});

test('counts that could not be stored are added to those of later calls, with the times of both', () => {
  const counter = new CallCounter();
  const times = [0, 1, 2].map((minute) => new Date(at.getTime() + minute * 60_000));
  for (const time of times.slice(0, 2)) counter.count(PAGES, 'till', '', time ?? at);
  const [failed] = counter.take();
  counter.count(PAGES, 'till', '', times[2] ?? at);
  if (failed) counter.add(failed);
  expect(counter.take()).toMatchObject([{ calls: 3, firstAt: times[0], lastAt: times[2] }]);
});

test('the times of the first and the last call are stored', async () => {
  const started = Date.now();
  await shop.rest('GET', '/blog', from('till'));
  shop.advanceClock(DAY_MS);
  await shop.rest('GET', '/blog', from('till'));
  await legacy.store(shop.context(), shop.calls);
  shop.advanceClock(DAY_MS);
  await shop.rest('GET', '/blog', from('till'));
  await legacy.store(shop.context(), shop.calls);
  const lines = await legacy.report(shop.context(), { limit: 10 });
  const days = lines.map(({ firstAt, lastAt }) =>
    [firstAt, lastAt].map((time) => Math.floor((time.getTime() - started) / DAY_MS)),
  );
  expect([days, lines[0]?.calls]).toEqual([[[0, 2]], 3]);
});

// Client names

test('a client without a name is counted as -', async () => {
  await shop.raw('GET /blog HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n');
  expect(await stored()).toEqual([['GET /blog', '-', '', 1]]);
});

test('a page in a browser is counted by its apollographql-client-name rather than its user agent', async () => {
  const headers = { 'User-Agent': 'Mozilla/5.0', 'apollographql-client-name': 'till-web' };
  await shop.rest('GET', '/blog', { headers });
  await shop.rest('GET', '/blog', { headers: { ...headers, 'apollographql-client-name': '' } });
  await shop.rest('GET', '/blog', {
    headers: { ...headers, 'apollographql-client-name': 'x'.repeat(1_000) },
  });
  expect(await stored()).toEqual([
    ['GET /blog', 'Mozilla/5.0', '', 1],
    ['GET /blog', 'till-web', '', 1],
    ['GET /blog', 'x'.repeat(255), '', 1],
  ]);
});

test.each([
  ['of 10 KB', 'x'.repeat(10_240), 'x'.repeat(255)],
  ['with control characters', 'a\tb\u0085\u009b2J', 'a\tb\u0085\u009b2J'],
  ['in other scripts', 'K\u00e4se \u00ff', 'K\u00e4se \u00ff'],
  ['in quotation marks', `'";--\\`, `'";--\\`],
  ['like an array', '{"a",NULL}', '{"a",NULL}'],
])('a name %s is counted', async (_name, sent, storedName) => {
  for (let time = 0; time < 2; time++)
    await shop.raw(
      `GET /blog HTTP/1.1\r\nHost: shop\r\nUser-Agent: ${sent}\r\nConnection: close\r\n\r\n`,
    );
  expect(await stored()).toEqual([['GET /blog', storedName, '', 2]]);
});

test('a name that PostgreSQL cannot store is counted by its storable part', async () => {
  for (const client of ['a\0b', 'a?b', 'c\ud800', '\udc00'.repeat(300)])
    shop.calls.count(PAGES, client, '', at);
  expect(await stored()).toEqual([
    [PAGES, 'a?b', '', 2],
    [PAGES, 'c\ufffd', '', 1],
    [PAGES, '\ufffd'.repeat(255), '', 1],
  ]);
});

// Bounds

test('in memory, clients beyond 1,000 are counted as others, and every call is counted', async () => {
  for (let round = 0; round < 2; round++)
    for (let index = 0; index < 2_000; index++) shop.calls.count(PAGES, `client ${index}`, '', at);
  shop.calls.count(PRODUCT, 'till', '', at);
  const found = await stored();
  expect(found).toHaveLength(1_002);
  expect(found.filter(([, client]) => client === '(others)')).toEqual([
    [PRODUCT, '(others)', '', 1],
    [PAGES, '(others)', '', 2_000],
  ]);
});

test('clients without a user do not count for the limit of those with one', async () => {
  for (let index = 0; index < 2_000; index++) shop.calls.count(PAGES, `client ${index}`, '', at);
  shop.calls.count(PAGES, 'till', 'bea', at);
  expect(await stored()).toContainEqual([PAGES, 'till', 'bea', 1]);
});

test('10,000 clients without a user are stored, and as many with one; new ones count as others', async () => {
  await shop.sql(
    `insert into rest_call select 'GET /blog', 'client ' || n, '', now(), now(), 1 from generate_series(1, 10000) as n`,
  );
  shop.calls.count('GET /blog', 'client 5', '', at);
  shop.calls.count('GET /blog', 'new', '', at);
  shop.calls.count('GET /blog', 'newer', '', at);
  shop.calls.count('GET /blog', 'new', 'bea', at);
  const found = await stored();
  expect(found).toHaveLength(10_002);
  expect(
    found.filter(([, client, , calls]) => calls !== 1 || !String(client).startsWith('client')),
  ).toEqual([
    ['GET /blog', '(others)', '', 2],
    ['GET /blog', 'client 5', '', 2],
    ['GET /blog', 'new', 'bea', 1],
  ]);
});

// Storing

test('no request runs a statement for the count, and nothing is stored without calls', async () => {
  const { statements } = await recordStatements(async () => {
    for (let time = 0; time < 3; time++) await shop.rest('GET', '/api/v2/shop/products');
  });
  expect(statements.filter((text) => text.includes('rest_call'))).toEqual([]);
  const first = await recordStatements(() => legacy.store(shop.context(), shop.calls));
  const second = await recordStatements(() => legacy.store(shop.context(), shop.calls));
  expect([first.statements.length, second.statements.length]).toEqual([1, 0]);
});

test('two instances that store the same clients concurrently add up', async () => {
  const counters = [new CallCounter(), new CallCounter()];
  const names = Array.from({ length: 50 }, (_, index) => `client ${index}`);
  const rounds = 20;
  for (let round = 0; round < rounds; round++) {
    // Each in its own order.
    for (const client of names) counters[0]?.count(PAGES, client, 'bea', at);
    for (const client of names.toReversed()) counters[1]?.count(PAGES, client, 'bea', at);
    await Promise.all(counters.map((calls) => legacy.store(shop.context(), calls)));
  }
  const found = await stored();
  expect(found).toHaveLength(names.length);
  expect(new Set(found.map(([, , , calls]) => calls))).toEqual(new Set([2 * rounds]));
});

test('while the database fails, requests succeed and no count is lost', async () => {
  shop.calls.count(PAGES, 'till', '', at);
  await stored();
  await shop.sql('alter table rest_call rename to away');
  try {
    for (let time = 0; time < 3; time++) {
      expect(await shop.rest('GET', '/api/v2/shop/products', from('till'))).toMatchObject({
        status: 200,
      });
      shop.calls.count(PAGES, `client ${time}`, 'bea', new Date(at.getTime() - time * DAY_MS));
      await expect(legacy.store(shop.context(), shop.calls)).rejects.toThrow('rest_call');
    }
  } finally {
    await shop.sql('alter table away rename to rest_call');
  }
  expect(await stored()).toEqual([
    [PAGES, 'client 0', 'bea', 1],
    [PAGES, 'client 1', 'bea', 1],
    [PAGES, 'client 2', 'bea', 1],
    [PAGES, 'till', '', 4],
  ]);
});

test('the sweep deletes only clients without recent calls', async () => {
  const { restUsageRetentionDays } = shop.config;
  const limit = shop.now().getTime() - restUsageRetentionDays * DAY_MS;
  shop.calls.count(PAGES, 'old', 'bea', new Date(limit - 1_000));
  shop.calls.count(PAGES, 'young', 'bea', new Date(limit + 60_000));
  await stored();
  expect(await legacy.sweep(shop.context())).toBe(1);
  expect(await stored()).toEqual([[PAGES, 'young', 'bea', 1]]);
});

// The query

describe('restUsage', () => {
  const USAGE = `query ($endpoint: String, $since: DateTime, $first: Int! = 20) {
    restUsage(endpoint: $endpoint, since: $since, first: $first) {
      endpoint client username isDeprecated calls firstAt lastAt
    }
  }`;

  test('lists clients with the most calls first, but not our own, to holders of users:read', async () => {
    const deprecating = await new Shop({ V1_DEPRECATION: '2027-01-31' }).start();
    const reader = await deprecating.makeUser({ scopes: ['users:read'] });
    for (const client of ['till', 'till', 'shopfront-pages'])
      deprecating.calls.count(PRODUCT, client, 'bea', at);
    deprecating.calls.count(PAGES, 'app', '', at);
    await legacy.store(deprecating.context(), deprecating.calls);
    const read = async (variables: object) =>
      (await deprecating.graphql(USAGE, { ...variables }, { as: reader })).body.data?.restUsage;
    const [first, ...others] = await read({});
    const [found, none, limited] = [
      await read({ endpoint: '/api/v2/' }),
      await read({ since: '2027-02-01T00:00:00Z' }),
      await read({ first: 1 }),
    ];
    const errors = [
      await deprecating.graphql(USAGE, { first: 101 }, { as: reader }),
      await deprecating.graphql(USAGE, {}, { as: await deprecating.makeUser() }),
      await deprecating.graphql(USAGE),
    ].map(({ body }) => body.errors[0].extensions.code as string);
    await deprecating.stop();
    expect(first).toEqual({
      endpoint: PRODUCT,
      client: 'till',
      username: 'bea',
      isDeprecated: true,
      calls: 2,
      firstAt: at.toISOString(),
      lastAt: at.toISOString(),
    });
    expect(others).toMatchObject([{ client: 'app', username: null, isDeprecated: false }]);
    expect([found, none, limited]).toEqual([others, [], [first]]);
    expect(errors).toEqual(['BAD_USER_INPUT', 'FORBIDDEN', 'UNAUTHENTICATED']);
  });
});
