import assert from 'node:assert/strict';
import { join } from 'node:path';
import { TEST_SECRET } from '../support/databases.ts';
import { startPooler, type Pooler } from '../support/pgbouncer.ts';
import { makeCluster, type Cluster } from '../support/postgresql.ts';
import { cli, contract } from '../support/process.ts';
import { querySql } from '../support/sql.ts';
import { until } from '../support/until.ts';
import type { Fault, Figures } from './fault.ts';
import { countLockWaits, lockTables } from './cluster.ts';
import { settingsFor, startShop } from './place.ts';
import {
  send,
  bearer,
  create,
  newBarcode,
  openSession,
  page,
  percentile,
  post,
  product,
  WRITER,
} from '../support/shopper.ts';

/** Number of server connections that all instances share. */
const CONNECTIONS = 3;
const TIMEOUT_MS = 2_000;

export const pooler: Fault = {
  name: 'pooler',
  promise:
    'Through PgBouncer in transaction mode, with three server connections for two instances, the interface behaves as without it.',
  on: ['postgresql'],
  async run(context) {
    const { directory, short, atEnd } = context;
    const cluster = await makeCluster(join(directory, 'database'));
    atEnd(() => cluster.stop('immediate'));
    // A pooler does not forward startup parameters, so the database sets the timeout.
    await cluster.sql(`alter database shopfront set statement_timeout = '5s'`);
    const made = await startPooler(join(directory, 'pgbouncer'), cluster.url, CONNECTIONS);
    atEnd(() => made.stop());
    const env = { ...settingsFor(made), DATABASE_POOLER: 'transaction', LOG_LEVEL: 'silent' };
    for (const command of ['migrate', 'seed']) {
      const { code, stderr } = await cli([command], env);
      assert.equal(code, 0, stderr);
    }
    const [here, there] = [await startShop(context, env), await startShop(context, env)];
    const urls = [here.url, there.url];
    const hasty = await startShop(context, { ...env, REQUEST_TIMEOUT_MS: String(TIMEOUT_MS) });
    return {
      ...(await checkContract(here.url)),
      ...(await mixedRequests(urls, cluster, made, short ? 300 : 5_000)),
      ...(await lockedTable(hasty.url, cluster, made.url)),
    };
  },
};

async function checkContract(url: string): Promise<Figures> {
  const { code, stdout, stderr } = await contract([url, '--write'], {
    CONTRACT_USERNAME: WRITER.username,
    CONTRACT_PASSWORD: WRITER.password,
    CONTRACT_SIGNING_SECRET: TEST_SECRET,
  });
  assert.equal(code, 0, stdout + stderr);
  return { 'the contract': stdout.trimEnd().split('\n').at(-1) ?? '' };
}

/** Sends concurrent reads, writes and transactions to two instances. */
async function mixedRequests(
  urls: readonly string[],
  cluster: Cluster,
  made: Pooler,
  requests: number,
): Promise<Figures> {
  const [here = '', there = ''] = urls;
  const token = await bearer(here);
  const key = await openSession(here);
  const times: number[] = [];
  let turn = 0;
  const client = async (): Promise<void> => {
    while (turn < requests) {
      const number = turn++;
      const url = number % 2 ? here : there;
      const at = performance.now();
      const answers = await Promise.all([
        page(url, `?page=${1 + (number % 100)}`),
        product(url, 1 + (number % 1_000)),
        send(`${url}/users/me/`, { headers: { 'X-SESSION-ID': key } }),
        post(`${url}/graphql`, {
          query: `{ products(first: ${1 + (number % 20)}) { totalCount nodes { name } } }`,
        }),
        create(url, token, newBarcode()),
        create(url, { ...token, 'Idempotency-Key': `crowd-${number}` }, newBarcode()),
      ]);
      times.push(performance.now() - at);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 201, 201],
        answers.map(({ text }) => text.slice(0, 200)).join('\n'),
      );
    }
  };
  await Promise.all(Array.from({ length: 4 }, client));
  const barcode = newBarcode();
  const same = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      create(index % 2 ? here : there, { ...token, 'Idempotency-Key': 'the-same' }, barcode),
    ),
  );
  assert.equal(new Set(same.map(({ status, text }) => `${status} ${text}`)).size, 1, same[0]?.text);
  assert.equal(same[0]?.status, 201);
  const [open] = await cluster.sql(
    `select count(*)::int as count from pg_stat_activity where backend_type = 'client backend' and datname = 'shopfront' and pid <> pg_backend_pid()`,
  );
  const lent = await made.show('clients');
  assert.ok(Number(open?.['count']) <= CONNECTIONS, `${String(open?.['count'])} connections`);
  return {
    'mixed requests': requests * 6,
    'six of them at once p99': percentile(times, 0.99),
    'connections of the instances': lent.filter(({ database }) => database !== 'pgbouncer').length,
    'connections to the server': Number(open?.['count']),
  };
}

/** Blocks a statement on every connection: these are cancelled, and no other one. */
async function lockedTable(url: string, cluster: Cluster, throughPooler: string): Promise<Figures> {
  const release = await lockTables(cluster, 'product');
  // A slow statement of another client.
  const slept = querySql(throughPooler, 'select pg_sleep(3.5)');
  const at = performance.now();
  const answers = await Promise.all([1, 2, 3, 4, 5, 6].map((pk) => product(url, pk)));
  const answered = performance.now() - at;
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [503]);
  await until(
    async () => (await countLockWaits(cluster)) === 0,
    'the end of the blocked statements',
  );
  const ended = performance.now() - at;
  await slept;
  await release();
  const after = await Promise.all(Array.from({ length: 20 }, (_, pk) => product(url, 1 + pk)));
  assert.deepEqual([...new Set(after.map(({ status }) => status))], [200]);
  return {
    'rejected while a table was locked after': `${Math.round(answered)} ms`,
    'with a timeout of': `${TIMEOUT_MS} ms`,
    'their statements ended after': `${Math.round(ended)} ms`,
  };
}
