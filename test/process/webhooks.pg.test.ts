import { expect, test } from '../support/jest.ts';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { command } from '../support/command.ts';
import { makeDatabase, TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';
import { insertingMany } from '../support/many-products.ts';
import { startPooler } from '../support/pgbouncer.ts';
import { startServer, stopServer } from '../support/process.ts';
import { respondWith, useReceiver } from '../support/receiver.ts';
import { expireJobs, passTime } from '../support/jobs.ts';
import { useShop, workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop({ WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true' });
const receiver = useReceiver();
const start = () =>
  startServer({
    ...workerDatabase(),
    SIGNING_SECRET: TEST_SECRET,
    WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
    HOST: '127.0.0.1',
  });

test('a message of a killed process is sent by the next one, with the same id', async () => {
  receiver.answer = () => undefined;
  await webhooks.add(shop.context(), { url: receiver.url, events: ['product.created'] });
  const first = await start();
  const { name } = await shop.makeProduct();
  await until(() => receiver.received.length === 1, 'the message');
  await stopServer(first, 'SIGKILL');
  await passTime(shop, 61_000);
  await expireJobs(shop);
  await passTime(shop, 10_000);
  receiver.answer = respondWith(204);
  const second = await start();
  await until(
    async () => (await shop.sql(`select 1 from pgboss.job where state = 'completed'`)).length === 1,
    'the repeated message',
  );
  expect(await stopServer(second)).toMatchObject({ code: 0, stderr: '' });
  const [one, other, ...more] = receiver.received;
  expect([one?.event.data.name, other?.id, other?.body, more]).toEqual([
    name,
    one?.id,
    one?.body,
    [],
  ]);
});

test('two instances together send each event once', async () => {
  await webhooks.add(shop.context(), { url: receiver.url, events: ['product.created'] });
  const instances = [await start(), await start()];
  await shop.makeProducts(30);
  await until(
    async () =>
      (await shop.sql(`select 1 from pgboss.job where state = 'completed'`)).length === 30,
    'all deliveries',
  );
  for (const instance of instances)
    expect(await stopServer(instance)).toMatchObject({ code: 0, stderr: '' });
  expect([receiver.received.length, new Set(receiver.received.map(({ id }) => id)).size]).toEqual([
    30, 30,
  ]);
});

test('through PgBouncer in transaction mode, migrations run and events are delivered', async () => {
  const made = await makeDatabase(`shopfront_pooled_webhooks_${process.pid}`);
  try {
    await withDirectory(async (folder) => {
      // PgBouncer runs as another user, who needs access to the directory.
      await chmod(folder, 0o711);
      const { DATABASE_URL: url } = made.env;
      const pooler = await startPooler(join(folder, 'pgbouncer'), url, 2);
      const env = {
        DATABASE_URL: pooler.url,
        DATABASE_POOLER: pooler.mode,
        SIGNING_SECRET: TEST_SECRET,
        WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
        HOST: '127.0.0.1',
      };
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await client.query('drop schema public, pgboss cascade; create schema public');
        expect(await command(['migrate'], env)).toMatchObject({ code: 0 });
        expect(await command(['webhooks', 'add', receiver.url], env)).toMatchObject({ code: 0 });
        const server = await startServer(env);
        await client.query(insertingMany(20));
        await until(() => receiver.received.length === 20, 'the messages');
        expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
      } finally {
        await client.end();
        await pooler.stop();
      }
    });
  } finally {
    await made.drop();
  }
});
