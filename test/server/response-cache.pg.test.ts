import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { Shop, type Answer } from '../support/shop.ts';
import { useStoppedClock } from '../support/clock.ts';

// Runs only with a database server (test/all.ts). Makes a database unavailable, so it has its own.
const server = process.env['TEST_DATABASE_URL'] ?? '';
const name = `shopfront_shared_${process.pid}`;
/** Maximum staleness of cached responses, in ms. */
const STALE_MS = 50;
/** Maximum time of a polling loop, in ms. */
const TIMEOUT_MS = 120_000;
const clock = useStoppedClock();
/** Number of consecutive equal outcomes that counts as permanent. */
const STEADY = 100;

const PAGE = '{ products { totalCount nodes { name } } }';
const ONE = '{ product(pk: 1) { name } }';

let made: TestDatabase;
let shop: Shop;
/** Connected to another database, to make this one unavailable and available again. */
let operator: pg.Client;
/** Stays connected to the database, and changes data that the app can no longer reach. */
let writer: pg.Client;

beforeAll(async () => {
  made = await makeDatabase(name);
  shop = await new Shop(made.env).start();
  operator = new pg.Client({ connectionString: server });
  writer = new pg.Client({ connectionString: made.env['DATABASE_URL'] });
  await Promise.all([operator.connect(), writer.connect()]);
});

afterAll(async () => {
  await shop.stop();
  await Promise.all([operator.end(), writer.end()]);
  await made.drop();
});

async function allowConnections(allowed: boolean): Promise<void> {
  await operator.query(`alter database "${name}" allow_connections ${allowed}`);
}

async function endConnections(): Promise<void> {
  const { rows } = await writer.query<{ pid: number }>('select pg_backend_pid() as pid');
  await operator.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2',
    [name, rows[0]?.pid],
  );
}

/** The reads whose responses are cached. Each body names its product. */
function readAll(): Promise<Answer[]> {
  return Promise.all([
    shop.graphql(PAGE),
    shop.graphql(ONE),
    shop.rest('GET', '/api/v2/shop/products'),
    shop.rest('GET', '/api/v1/shop/product/1'),
  ]);
}

/** Reads until all responses match, this many times in succession. Throws after TIMEOUT_MS. */
async function readUntil(
  isMatch: (answer: Answer) => boolean,
  times: number,
  check: (answer: Answer) => void,
): Promise<void> {
  const end = Date.now() + TIMEOUT_MS;
  for (let matches = 0; matches < times;) {
    clock.advance(1);
    const answers = await readAll();
    for (const answer of answers) check(answer);
    matches = answers.every(isMatch) ? matches + 1 : 0;
    if (Date.now() > end)
      throw new Error(
        `timeout; last responses: ${answers.map(({ status, text }) => `${status} ${text}`).join('; ')}`,
      );
  }
}

/** Whether the service is unavailable: 503 in REST, the code UNAVAILABLE in GraphQL. */
function isUnavailable({ status, body }: Answer): boolean {
  return status === 503 || body?.errors?.[0].extensions.code === 'UNAVAILABLE';
}

test('no cached response is served once the database is unreachable for 50 ms, and the product is served again once it is reachable', async () => {
  const changed = 'Lamp';
  const expectAllowed = (answer: Answer) => {
    const { status, text } = answer;
    const isAllowed = isUnavailable(answer) || text.includes(changed);
    expect([isAllowed, status, text]).toEqual([true, status, text]);
  };
  await writer.query('delete from product');
  const { name: before } = await shop.makeProduct();
  await shop.sql(`update product set pk = 1`);
  await readUntil(
    ({ text }) => text.includes(before),
    STEADY,
    () => undefined,
  );
  try {
    await allowConnections(false);
    await endConnections();
    await writer.query('update product set name = $1', [changed]);
    clock.advance(STALE_MS);
    await readUntil(isUnavailable, STEADY, expectAllowed);
  } finally {
    await allowConnections(true);
  }
  await readUntil(({ text }) => text.includes(changed), STEADY, expectAllowed);
});
