import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { Shop, type Answer } from '../support/shop.ts';
import { useStoppedClock } from '../support/clock.ts';

// This file is only run where there is a server (jest.config.js). It takes a database away, so it has one of its own.
const server = process.env['TEST_DATABASE_URL'] ?? '';
const name = `shopfront_shared_${process.pid}`;
/** For how long, in ms, what is shared may be out of date. */
const STALE_MS = 50;
/** Far longer than it takes, in ms: a loop that gets so far has failed. */
const PATIENCE_MS = 120_000;
const clock = useStoppedClock();
/** How often in a row it has to be refused until it counts as refused for good. */
const STEADY = 100;

const PAGE = '{ products { totalCount nodes { name } } }';
const ONE = '{ product(pk: 1) { name } }';

let made: TestDatabase;
let shop: Shop;
/** Connected elsewhere, to take the database away and to give it back. */
let operator: pg.Client;
/** Connected to the database itself, and left so: it changes what the app can no longer reach. */
let writer: pg.Client;

beforeAll(async () => {
  made = await makeDatabase(name);
  shop = await new Shop({ ...made.env, SHORTCUTS: 'direct,plans,shared,tokens' }).start();
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
  await operator.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> $2', [name, rows[0]?.pid]);
}

/** The reads that everyone shares. Each body names the product that it shows. */
function readAll(): Promise<Answer[]> {
  return Promise.all([
    shop.graphql(PAGE),
    shop.graphql(ONE),
    shop.rest('GET', '/api/v2/shop/products'),
    shop.rest('GET', '/api/v1/shop/product/1'),
  ]);
}

/** Reads until all have been answered so, as often in a row as is asked; throws where that never comes. */
async function readUntil(isSo: (answer: Answer) => boolean, times: number, look: (answer: Answer) => void): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  for (let inRow = 0; inRow < times;) {
    clock.pass(1);
    const answers = await readAll();
    for (const answer of answers) look(answer);
    inRow = answers.every(isSo) ? inRow + 1 : 0;
    if (Date.now() > end) throw new Error(`it came to no end: ${answers.map(({ status, text }) => `${status} ${text}`).join('; ')}`);
  }
}

/** Whether the answer says that the service is not available: by REST with 503, by GraphQL in its own words. */
function isRefused({ status, body }: Answer): boolean {
  return status === 503 || body?.errors?.[0].extensions.code === 'UNAVAILABLE';
}

test.each(['Lamp', 'Chair', 'Table'])(
  'nothing shared is given out once the database cannot be reached for 50 ms, and it is served again once it can: %s',
  async (changed) => {
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
      clock.pass(STALE_MS);
      await readUntil(isRefused, STEADY, (answer) => {
        const { status, text } = answer;
        const isTold = isRefused(answer) || text.includes(changed);
        expect([isTold, status, text]).toEqual([true, status, text]);
      });
    } finally {
      await allowConnections(true);
    }
    await readUntil(
      ({ text }) => text.includes(changed),
      STEADY,
      (answer) => {
        const { status, text } = answer;
        expect([isRefused(answer) || text.includes(changed), status, text]).toEqual([true, status, text]);
      },
    );
  },
);
