import { expect, test } from '../support/jest.ts';
import pg from 'pg';
import { migrations } from '../../src/database/migrations/migrations.ts';
import { command } from '../support/command.ts';
import { VERSION } from '../../src/core/version.ts';
import { npm, run, startServer, stopServer } from '../support/process.ts';
import { Shop } from '../support/shop.ts';
import { querySql } from '../support/sql.ts';

const NAMES = migrations.map(({ name }) => name);
const SECRET = 'only-for-tests-only-for-tests-only';
// This file runs only with a PostgreSQL server (jest.config.js).
const server = process.env['TEST_DATABASE_URL'] ?? '';

test('a start without all migrations exits with 1, and succeeds after npm run migrate', async () => {
  await withEmptyDatabase(async (DATABASE_URL) => {
    const env = { DATABASE_URL, SIGNING_SECRET: SECRET, HOST: '127.0.0.1' };
    const rejected = await run('main.js', [], { ...env, PORT: '0' });
    expect(rejected.code).toBe(1);
    expect(rejected.stderr).toBe(
      `The database lacks ${NAMES.join(', ')}. Apply with: npm run migrate\n`,
    );

    const rejectedCommand = await command(['session', 'list', 'alice'], env);
    expect(rejectedCommand).toMatchObject({ code: 1, stderr: rejected.stderr });

    expect(await npm(['run', '-s', 'migrate'], env)).toMatchObject({
      code: 0,
      stdout: NAMES.map((name) => `Applied ${name}.\n`).join(''),
    });
    expect(await command(['migrate'], env)).toMatchObject({
      code: 0,
      stdout: 'The database is up to date.\n',
    });

    const running = await startServer(env);
    expect(await (await fetch(`${running.url}/api/v2/shop/products`)).json()).toMatchObject({
      count: 0,
    });
    const introspection = await fetch(`${running.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: '{"query":"{__schema{queryType{name}}}"}',
    });
    expect(introspection.status).toBe(400);
    expect(running.banner).toBe(`Shopfront ${VERSION} listens on ${running.url}\n`);

    expect(await command(['seed'], env)).toMatchObject({ code: 0 });
    expect(await (await fetch(`${running.url}/api/v2/shop/products`)).json()).toMatchObject({
      count: 1200,
    });
    expect(await stopServer(running)).toMatchObject({ code: 0 });
  });
});

test('a statement is cancelled after the statement timeout with 503, and the pool has DATABASE_POOL_MAX connections', async () => {
  await withEmptyDatabase(async (DATABASE_URL) => {
    await command(['migrate'], { DATABASE_URL, SIGNING_SECRET: SECRET });
    const shop = await new Shop(
      { DATABASE_URL, DATABASE_POOL_MAX: '3', LOG_LEVEL: 'silent' },
      { databaseStatementTimeoutMs: 300, databasePipeline: false },
    ).start();
    const other = new pg.Client({ connectionString: DATABASE_URL });
    await other.connect();
    await other.query('begin; lock table product');
    const blocked = await Promise.all(
      [1, 2, 3].map((pk) => shop.rest('GET', `/api/v1/shop/product/${pk}`)),
    );
    const { rows } = await other.query(
      `select count(*)::int as open from pg_stat_activity where datname = current_database() and application_name = 'shopfront'`,
    );
    await other.end();
    const after = await shop.rest('GET', '/api/v1/shop/product/1');
    await shop.stop();
    expect(blocked.map(({ status }) => status)).toEqual([503, 503, 503]);
    expect(rows).toEqual([{ open: 3 }]);
    expect(after.status).toBe(404);
  });
});

test('a start without its database exits with 1', async () => {
  const url = new URL(server);
  url.pathname = '/shopfront_there_is_none';
  const ended = await run('main.js', [], {
    DATABASE_URL: url.href,
    SIGNING_SECRET: SECRET,
    PORT: '0',
    LOG_LEVEL: 'silent',
  });
  expect(ended).toMatchObject({
    code: 1,
    stderr: 'database "shopfront_there_is_none" does not exist\n',
  });
});

async function withEmptyDatabase(work: (url: string) => Promise<void>): Promise<void> {
  const name = `shopfront_process_${process.pid}`;
  const drop = () => querySql(server, `drop database if exists "${name}" with (force)`);
  await drop();
  await querySql(server, `create database "${name}"`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  await work(url.href);
  await drop();
}
