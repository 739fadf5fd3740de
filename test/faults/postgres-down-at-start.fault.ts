import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { TEST_SECRET } from '../support/databases.ts';
import { makeCluster, prepare } from '../support/postgresql.ts';
import { untilResponding, freePort, launch, run } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertServedWithoutDatabase } from './cluster.ts';
import { settingsFor } from './place.ts';
import { probe } from './serving.ts';

const DOWN_MS = 15_000;
const SHORT_DOWN_MS = 1_000;
const SERVED_MS = 5_000;

export const postgresDownAtStart: Fault = {
  name: 'postgres-down-at-start',
  promise:
    "Started without its PostgreSQL server, the process runs, not ready, and serves requests within 5 s of the server's start. A rejected connection or missing migrations make it exit with 1 and a message.",
  on: ['postgresql'],
  async run({ directory, short, atEnd }) {
    const cluster = await makeCluster(join(directory, 'cluster'));
    atEnd(() => cluster.stop('immediate'));
    await prepare(cluster, TEST_SECRET);
    await cluster.sql(`create role shopper login password 'right'`);
    await cluster.sql('create database empty');
    const hba = join(cluster.dataDir, 'pg_hba.conf');
    await writeFile(
      hba,
      `host all shopper 127.0.0.1/32 scram-sha-256\n${await readFile(hba, 'utf8')}`,
    );
    await cluster.stop('fast');

    const port = await freePort();
    const env = { ...settingsFor(cluster), PORT: String(port), LOG_LEVEL: 'silent' };
    const server = launch('main.js', [], env);
    atEnd(() => server.child.kill('SIGKILL'));
    const wrongUrl = new URL(cluster.url);
    Object.assign(wrongUrl, { username: 'shopper', password: 'wrong' });
    const wrong = launch('main.js', [], { ...env, DATABASE_URL: wrongUrl.href, PORT: '0' });
    atEnd(() => wrong.child.kill('SIGKILL'));
    const url = `http://127.0.0.1:${port}`;
    await untilResponding(`${url}/livez`);
    for (
      const end = Date.now() + (short ? SHORT_DOWN_MS : DOWN_MS);
      Date.now() < end;
      await setTimeout(200)
    ) {
      const statuses = await Promise.all(
        ['/livez', '/readyz', '/api/v2/shop/products'].map(
          async (path) => (await probe(url + path)).status,
        ),
      );
      assert.deepEqual(statuses, [200, 503, 503]);
      await assertServedWithoutDatabase(url);
    }
    await cluster.start();
    const begun = performance.now();
    await until(
      async () => (await probe(`${url}/readyz`)).status === 200,
      'the server to be ready',
    );
    const served = performance.now() - begun;
    assert.equal((await probe(`${url}/api/v2/shop/products`)).status, 200);
    assert.equal(server.child.exitCode, null);
    if (!short) assert.ok(served <= SERVED_MS, `served after ${served} ms`);

    const { code, stderr } = await wrong.ended;
    assert.equal(code, 1);
    assert.match(stderr, /^password authentication failed for user "shopper"\n$/);
    const empty = new URL(cluster.url);
    empty.pathname = '/empty';
    const lacking = await run('main.js', [], { ...env, DATABASE_URL: empty.href, PORT: '0' });
    assert.equal(lacking.code, 1);
    assert.match(lacking.stderr, /^The database lacks .* Apply with: npm run migrate\n$/);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
    return {
      'served after': `${(served / 1000).toFixed(1)} s`,
      'to be served within': `${SERVED_MS / 1000} s`,
    };
  },
};
