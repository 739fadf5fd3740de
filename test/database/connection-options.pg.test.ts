import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { HealthCheck } from '../../src/database/health-check.ts';
import { expect, jest, test } from '../support/jest.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop({ REQUEST_TIMEOUT_MS: '7000' });

test.each([
  ['jit', 'off'],
  ['work_mem', '16MB'],
  ['statement_timeout', '7s'],
  ['application_name', 'shopfront'],
])('each connection to a server sets %s to %s', async (name, value) => {
  const { statements } = shop.database;
  const show = { text: `select current_setting('${name}') as value`, values: [] };
  expect(await statements.read(show)).toEqual([{ value }]);
  expect(await statements.read(show, true)).toEqual([{ value }]);
});

test('a server that is full at the start is not another one once it has room', async () => {
  const role = `full_${process.pid}`;
  const url = new URL(workerDatabase().DATABASE_URL);
  await shop.sql(`create role ${role} login password 'secret' connection limit 1`);
  [url.username, url.password] = [role, 'secret'];
  const only = new Client({ connectionString: url.href });
  await only.connect();
  const warn = jest.fn();
  const check = new HealthCheck({ connectionString: url.href }, true, { warn } as never);
  const connects = jest.spyOn(Client.prototype, 'connect');
  try {
    check.start(() => undefined);
    await until(() => connects.mock.calls.length > 2, 'checks that are rejected');
    await only.end();
    await until(
      async () =>
        (await shop.sql(`select 1 from pg_stat_activity where usename = '${role}'`)).length > 0,
    );
    // Time for another check.
    await setTimeout(600);
    expect([check.isHealthy, warn.mock.calls]).toEqual([true, []]);
  } finally {
    jest.restoreAllMocks();
    await check.close();
    await until(async () => {
      await shop.sql(
        `select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`,
      );
      return (
        (await shop.sql(`select 1 from pg_stat_activity where usename = '${role}'`)).length === 0
      );
    });
    await shop.sql(`drop role ${role}`);
  }
});
