import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import * as usage from '../../src/features/rest-usage/rest-usage.service.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { command } from '../support/command.ts';
import { codeOf, useShop, workerDatabase, type RequestOptions } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const V1_DEPRECATION = '2027-01-31/2027-12-31';
const shop = useShop({ V1_DEPRECATION });

const DAY_MS = 86_400_000;
const OLD = 'GET /api/v1/shop/products';
const NEW = 'GET /api/v2/shop/products';
const TOKEN = 'POST /token';

const QUERY = `query ($by: RestUsageGrouping, $deprecatedOnly: Boolean! = false, $first: Int! = 20, $skip: Int! = 0) {
  restUsage(by: $by, deprecatedOnly: $deprecatedOnly, first: $first, skip: $skip) {
    totalCount activeCount firstDay deprecatedPaths
    lines { endpoint client deprecated usernames calls days recentCalls earlierCalls trend lastAt }
  }
}`;

let reader: User;

beforeEach(async () => {
  // Noon, so that the day does not end during a test.
  const now = shop.now().getTime();
  shop.advanceClock((Math.floor(now / DAY_MS) + 1.5) * DAY_MS - now);
  reader = await shop.makeUser({ username: 'reader', scopes: ['users:read'] });
});

/** The same time some days before today. */
function daysAgo(days: number): Date {
  return new Date(shop.now().getTime() - days * DAY_MS);
}

/** Counts and stores calls, by the number of days before today. */
async function call(
  endpoint: string,
  client: string,
  calls: Readonly<Record<number, number>>,
  subject = '',
): Promise<void> {
  for (const [days, number] of Object.entries(calls))
    for (let made = 0; made < number; made++)
      shop.calls.count(endpoint, client, subject, daysAgo(Number(days)));
  await usage.store(shop.context(), shop.calls);
}

async function read(
  variables: Record<string, unknown> = {},
  request: RequestOptions = { as: reader },
) {
  const { body } = await shop.graphql(QUERY, variables, request);
  expect(body.errors).toBeUndefined();
  return body.data.restUsage;
}

/** Runs the command at the time of the shop. Returns its output; `errors` is what it writes besides. */
async function trends(args = '', isTTY = false, errors = ''): Promise<string> {
  const stdout = Object.assign(new PassThrough(), { isTTY });
  const { code, stderr } = await command(
    ['rest-usage', 'trends', ...args.split(' ').filter((arg) => arg !== '')],
    { ...workerDatabase(), V1_DEPRECATION },
    '',
    { stdout, clock: { now: () => shop.now(), elapsedMs: () => 0 } },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: errors });
  stdout.end();
  return text(stdout);
}

describe('only holders of users:read see usage:', () => {
  test.each<[string, () => Promise<RequestOptions>, string | undefined]>([
    ['a caller without credentials', async () => ({}), 'UNAUTHENTICATED'],
    [
      'a user without the scope',
      async () => ({ as: await shop.makeUser({ scopes: ['audit:read', 'products:write'] }) }),
      'FORBIDDEN',
    ],
    ['a user with the scope', async () => ({ as: reader }), undefined],
  ])('%s', async (_who, request, code) => {
    const answer = await shop.graphql(QUERY, {}, await request());
    expect([codeOf(answer), answer.body.data === null]).toEqual([code, code !== undefined]);
  });
});

test('the calls of a request appear on its day, with the user', async () => {
  const ada = await shop.makeUser({ username: 'ada' });
  const headers = { 'User-Agent': 'till/1' };
  await shop.rest('GET', '/api/v1/shop/products', { headers });
  shop.advanceClock(2 * DAY_MS);
  await shop.rest('GET', '/api/v1/shop/products', { headers, as: ada });
  await shop.rest('GET', '/api/v1/shop/products', { headers, as: ada });
  const { statements } = await recordStatements(() => usage.store(shop.context(), shop.calls));
  expect(statements).toHaveLength(1);
  const { lines, ...rest } = await read();
  expect(rest).toEqual({
    totalCount: 1,
    activeCount: 1,
    firstDay: daysAgo(89).toISOString().slice(0, 10),
    deprecatedPaths: ['/api/v1/'],
  });
  expect(lines).toEqual([
    {
      endpoint: OLD,
      client: 'till/1',
      deprecated: true,
      usernames: ['ada'],
      calls: 3,
      days: [...Array<number>(87).fill(0), 1, 0, 2],
      recentCalls: 3,
      earlierCalls: 0,
      trend: 'GROWING',
      lastAt: expect.stringContaining(shop.now().toISOString().slice(0, 10)),
    },
  ]);
});

test('days are those of UTC, and counts add up whenever they are stored', async () => {
  const midnight = Math.floor(shop.now().getTime() / DAY_MS) * DAY_MS;
  for (let round = 0; round < 2; round++) {
    for (const at of [midnight - 1, midnight, midnight + 1])
      shop.calls.count(NEW, 'till/1', '', new Date(at));
    await usage.store(shop.context(), shop.calls);
  }
  expect((await read()).lines[0].days.slice(-3)).toEqual([0, 2, 4]);
});

test('while the database fails, calls keep their day', async () => {
  await shop.sql('alter table rest_call_day rename to away');
  try {
    await expect(call(NEW, 'till/1', { 1: 2 })).rejects.toThrow('rest_call_day');
  } finally {
    await shop.sql('alter table away rename to rest_call_day');
  }
  await call(NEW, 'till/1', { 0: 1, 1: 1 });
  expect((await read()).lines[0].days.slice(-3)).toEqual([0, 3, 1]);
});

test('instances that store concurrently add up', async () => {
  const counters = [new CallCounter(), new CallCounter()];
  const names = Array.from({ length: 30 }, (_, index) => `client ${index}`);
  for (let round = 0; round < 10; round++) {
    for (const client of names) counters[0]?.count(NEW, client, '', daysAgo(round % 2));
    for (const client of names.toReversed()) counters[1]?.count(NEW, client, '', daysAgo(1));
    await Promise.all(counters.map((calls) => usage.store(shop.context(), calls)));
  }
  const rows = await shop.sql('select distinct day, calls::int from rest_call_day order by day');
  expect(rows.map(({ calls }) => calls)).toEqual([15, 5]);
});

describe('the trend compares the last 14 days with the 14 days before:', () => {
  test.each<[string, Record<number, number>, string, [number, number]]>([
    ['first calls', { 0: 1 }, 'GROWING', [1, 0]],
    ['4/3 of the earlier calls', { 13: 4, 14: 3 }, 'GROWING', [4, 3]],
    ['less than 4/3', { 0: 5, 27: 4 }, 'STEADY', [5, 4]],
    ['more than 3/4', { 0: 4, 27: 5 }, 'STEADY', [4, 5]],
    ['3/4 of the earlier calls', { 13: 3, 14: 4 }, 'DWINDLING', [3, 4]],
    ['one call of many', { 0: 1, 20: 9 }, 'DWINDLING', [1, 9]],
    ['no recent calls', { 14: 3 }, 'GONE', [0, 3]],
    ['no calls in either', { 28: 3 }, 'GONE', [0, 0]],
    ['calls long ago do not count', { 0: 1, 28: 100 }, 'GROWING', [1, 0]],
  ])('%s', async (_name, calls, trend, [recentCalls, earlierCalls]) => {
    await call(NEW, 'till/1', calls);
    expect((await read()).lines).toMatchObject([{ trend, recentCalls, earlierCalls }]);
  });
});

describe('of clients of several endpoints,', () => {
  beforeEach(async () => {
    await call(OLD, 'till/1', { 0: 2, 14: 8 });
    await call(OLD, 'app/2', { 30: 3 }, 'bea');
    await call(NEW, 'till/1', { 0: 5 }, 'ada');
    await call(NEW, 'till/1', { 0: 1 }, 'carl');
    await call(TOKEN, 'app/2', { 0: 1 }, 'bea');
  });

  const summary = (lines: Record<string, unknown>[]) =>
    lines.map(({ endpoint, client, deprecated, usernames, calls, trend }) =>
      [endpoint, client, deprecated, (usernames as string[]).join(), calls, trend].join(' '),
    );

  test('each has a line per endpoint: those with recent calls first, then the most calls first', async () => {
    const { lines, activeCount } = await read();
    expect(summary(lines)).toEqual([
      `${OLD} till/1 true  10 DWINDLING`,
      `${NEW} till/1 false ada,carl 6 GROWING`,
      `${TOKEN} app/2 false bea 1 GROWING`,
      `${OLD} app/2 true bea 3 GONE`,
    ]);
    expect(activeCount).toBe(3);
  });

  test('those of deprecated endpoints are selected', async () => {
    const { lines, totalCount, activeCount } = await read({ deprecatedOnly: true });
    expect([totalCount, activeCount]).toEqual([2, 1]);
    expect(summary(lines)).toEqual([
      `${OLD} till/1 true  10 DWINDLING`,
      `${OLD} app/2 true bea 3 GONE`,
    ]);
  });

  test('calls are grouped by client', async () => {
    expect(summary((await read({ by: 'CLIENT' })).lines)).toEqual([
      ' till/1 true ada,carl 16 STEADY',
      ' app/2 true bea 4 GROWING',
    ]);
    expect(summary((await read({ by: 'CLIENT', deprecatedOnly: true })).lines)).toEqual([
      ' till/1 true  10 DWINDLING',
      ' app/2 true bea 3 GONE',
    ]);
  });

  test('calls are grouped by endpoint', async () => {
    expect(summary((await read({ by: 'ENDPOINT' })).lines)).toEqual([
      `${OLD}  true bea 13 DWINDLING`,
      `${NEW}  false ada,carl 6 GROWING`,
      `${TOKEN}  false bea 1 GROWING`,
    ]);
  });

  test('a page has some of the lines, and the number of all', async () => {
    const all = (await read()).lines;
    for (const [first, skip] of [
      [1, 0],
      [2, 1],
      [100, 3],
      [1, 4],
      [1, 1_000_000],
    ] as const) {
      expect(await read({ first, skip })).toMatchObject({
        lines: all.slice(skip, skip + first),
        totalCount: 4,
      });
    }
  });

  test('the command prints the same: with headings on a terminal, and as JSON', async () => {
    const [today, earlier] = [0, 30].map((days) => daysAgo(days).toISOString().slice(0, 16));
    // The rest of the time differs by the duration of the test.
    const output = async (isTTY: boolean) =>
      (await trends('', isTTY))
        .replaceAll(/:\d\d\.\d+Z/g, '')
        .trimEnd()
        .split('\n');
    expect(await output(true)).toEqual([
      'endpoint                   client  deprecated  trend      recent  earlier  calls  last                    ',
      `${OLD}  till/1  deprecated  dwindling       2        8     10  ${today}`,
      `${NEW}  till/1  -           growing         6        0      6  ${today}`,
      `${TOKEN}                app/2   -           growing         1        0      1  ${today}`,
      `${OLD}  app/2   deprecated  gone            0        0      3  ${earlier}`,
      'Lines: 4 of 4. Deprecated paths: /api/v1/.',
    ]);
    expect(await output(false)).toEqual([
      `${OLD}  till/1  deprecated  dwindling  2  8  10  ${today}`,
      `${NEW}  till/1  -           growing    6  0   6  ${today}`,
      `${TOKEN}                app/2   -           growing    1  0   1  ${today}`,
      `${OLD}  app/2   deprecated  gone       0  0   3  ${earlier}`,
    ]);
    for (const [args, variables] of [
      ['', {}],
      ['--limit 1', { first: 1 }],
      ['--deprecated', { deprecatedOnly: true }],
      ['--by client', { by: 'CLIENT' }],
      ['--by endpoint --deprecated', { by: 'ENDPOINT', deprecatedOnly: true }],
    ] as const)
      expect(JSON.parse(await trends(`--json ${args}`))).toEqual(await read(variables));
  });
});

test('the command says on standard error if it omits lines, except on a terminal', async () => {
  for (const client of ['app/1', 'app/2']) await call(OLD, client, { 0: 1 });
  expect(await trends('--limit 1', false, 'Lines: 1 of 2. --limit prints more.\n')).toMatch(
    /^.*app\/1/,
  );
  expect(await trends('--limit 2')).toMatch(/app\/1.*\n.*app\/2/);
  expect(await trends('--limit 1', true)).toMatch(/\nLines: 1 of 2\./);
});

test('without calls, there are no lines', async () => {
  expect(await read()).toMatchObject({ lines: [], totalCount: 0 });
  expect(await trends()).toBe('');
  expect(await trends('', true)).toBe('Lines: 0 of 0. Deprecated paths: /api/v1/.\n');
});

test('the contract kit and the pages for browsers are omitted', async () => {
  for (const client of ['shopfront-contract/0.1.0', 'shopfront-pages', 'shopfront-contractor'])
    await call(OLD, client, { 0: 1 });
  const clients = (lines: { client: string }[]) => lines.map(({ client }) => client);
  expect(clients((await read()).lines)).toEqual(['shopfront-contractor']);
  expect(clients(JSON.parse(await trends('--json --include-own')).lines)).toHaveLength(3);
});

test('users who have not called for 90 days are omitted', async () => {
  await call(NEW, 'till/1', { 90: 1 }, 'ada');
  await call(NEW, 'till/1', { 89: 1 }, 'bea');
  expect((await read()).lines).toMatchObject([{ calls: 1, usernames: ['bea'] }]);
});

test('a line has at most ten usernames', async () => {
  const names = Array.from({ length: 12 }, (_, index) => `user${String(index).padStart(2, '0')}`);
  for (const name of names.toReversed()) await call(NEW, 'till/1', { 0: 1 }, name);
  expect((await read()).lines[0].usernames).toEqual(names.slice(0, 10));
});

test.each([
  ['first', 0, 'must be from 1 to 100'],
  ['first', 101, 'must be at most 100'],
  ['skip', -1, 'must be from 0 to 1000000'],
  ['skip', 1_000_001, 'must be from 0 to 1000000'],
])('%s: %s is rejected', async (name, value, message) => {
  const answer = await shop.graphql(QUERY, { [name]: value }, { as: reader });
  expect([codeOf(answer), answer.body.errors[0].message]).toEqual([
    'BAD_USER_INPUT',
    `${name}: ${message}`,
  ]);
});

test('a line costs 7, so that the largest page is within the limit', async () => {
  const json = { query: QUERY, variables: { first: 100 }, extensions: { cost: true } };
  const { body } = await shop.rest('POST', '/graphql', { as: reader, json });
  expect(body.extensions.cost).toEqual({ requested: 701, limit: 1_000 });
});

test('the sweep deletes counts older than 90 days, and keeps the client', async () => {
  await call(NEW, 'till/1', { 0: 1, 89: 1, 90: 1, 91: 1 });
  expect((await read()).lines[0].days).toEqual([1, ...Array<number>(88).fill(0), 1]);
  expect(await usage.sweep(shop.context())).toBe(2);
  expect((await read()).lines[0].calls).toBe(2);
  expect((await usage.report(shop.context(), { limit: 1 })).lines).toMatchObject([{ calls: 4 }]);
});

test('a deleted client has no counts left', async () => {
  await call(NEW, 'till/1', { 0: 1, 5: 1 });
  await call(NEW, 'till/2', { 0: 1 });
  expect(await usage.forget(shop.context(), 'till/1')).toBe(1);
  expect(await shop.sql('select client from rest_call_day')).toEqual([{ client: 'till/2' }]);
});

test('a day has 1,000 clients, and as many more with a user; new ones count as others', async () => {
  const fill = (from: number, to: number) =>
    shop.sql(
      `insert into rest_call_day select '${daysAgo(0).toISOString()}'::date, '${NEW}', 'client ' || n, 1 from generate_series(${from}, ${to}) as n`,
    );
  const days = { 0: 1, 1: 1 };
  const kept = async () =>
    (
      await shop.sql(
        `select client || ' ' || sum(calls) as line from rest_call_day where client !~ 'client' group by client order by 1`,
      )
    ).map(({ line }) => line);
  await fill(1, 999);
  await call(NEW, 'first', days);
  await call(NEW, 'new', days);
  await call(NEW, 'first', days);
  await call(NEW, 'named', days, 'bea');
  expect(await kept()).toEqual(['(others) 1', 'first 4', 'named 2', 'new 1']);
  await fill(1000, 1997);
  await call(NEW, 'other', { 0: 1 }, 'bea');
  expect(await kept()).toEqual(['(others) 2', 'first 4', 'named 2', 'new 1']);
  const { lines } = await read({ by: 'CLIENT', first: 5 });
  expect(lines.slice(0, 3)).toMatchObject([
    { client: 'first', calls: 4 },
    {
      client: '(others)',
      calls: 2,
      usernames: [],
      lastAt: `${daysAgo(0).toISOString().slice(0, 10)}T00:00:00.000Z`,
    },
    { client: 'named', calls: 2, usernames: ['bea'] },
  ]);
});

test('new clients above the maximum are counted by day as others', async () => {
  await shop.sql(
    `insert into rest_call select '${NEW}', 'client ' || n, '', now(), now(), 1 from generate_series(1, 10000) as n`,
  );
  for (const client of ['new', 'newer', 'client 5']) shop.calls.count(NEW, client, '', daysAgo(0));
  await usage.store(shop.context(), shop.calls);
  expect(await shop.sql('select client, calls::int from rest_call_day order by 1')).toEqual([
    { client: '(others)', calls: 2 },
    { client: 'client 5', calls: 1 },
  ]);
});
