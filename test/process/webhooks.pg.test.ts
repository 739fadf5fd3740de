import { expect, test } from '../support/jest.ts';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { TEST_SECRET } from '../support/databases.ts';
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
