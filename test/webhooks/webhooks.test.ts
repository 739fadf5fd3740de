import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { ServerResponse } from 'node:http';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { ChangeKind } from '../../src/features/change-log/change-log.ts';
import { inTransaction } from '../../src/request/context.ts';
import { globalId } from '../../src/api/node.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { DeliveryWorker, findDue, settle } from '../../src/features/webhooks/delivery-worker.ts';
import * as deliveries from '../../src/features/webhooks/delivery.service.ts';
import { jobsOf } from '../../src/database/jobs.ts';
import type { QueuedEvent } from '../../src/features/webhooks/event-serializers.ts';
import { createHttpClient } from '../../src/features/webhooks/http-client.ts';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { insertingMany } from '../support/many-products.ts';
import { freePort } from '../support/process.ts';
import {
  respondWith,
  Receiver,
  useReceiver,
  verifySignature,
  type Received,
} from '../support/receiver.ts';
import { expireJobs, passTime } from '../support/jobs.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const ALL: ChangeKind[] = [
  'product.created',
  'product.changed',
  'product.deleted',
  'products.changed',
  'session.ended',
];
/** Makes the next attempt the last one. */
const LAST_ATTEMPT = 'update pgboss.job set started_on = now(), retry_count = retry_limit - 1';
const HOUR = 3_600_000;
const DAY = 86_400_000;

const shop = useShop({ WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true' });
const receiver = useReceiver();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});

const add = (events: ChangeKind[] = ALL, url = receiver.url) =>
  webhooks.add(shop.context(), { url, events });
const deliveryWorker = (timeoutMs?: number) =>
  new DeliveryWorker(createHttpClient(shop.config), timeoutMs);
const run = async (...workers: DeliveryWorker[]) => {
  await Promise.all(workers.map((each) => each.poll(() => shop.workerContext())));
};
const deliver = async (timeoutMs?: number): Promise<Received[]> => {
  await run(deliveryWorker(timeoutMs));
  return receiver.received.splice(0);
};
const list = (choice: deliveries.DeliveryFilter = {}) =>
  deliveries.listDeliveries(shop.context(), choice, 10_000);
const only = async () => {
  const [first, ...others] = await list();
  if (!first || others.length > 0) throw new Error(`there are ${others.length + 1} deliveries`);
  return first;
};
/** Returns the time until the next attempt, in s. */
const retryDelay = async () => {
  const [row] = await shop.sql(
    'select extract(epoch from start_after - now()) as s from pgboss.job',
  );
  return Number(row?.['s']);
};
const logged = (name: string) =>
  shop.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === name);
/** Makes the receiver hold all responses. */
const holdAll = (): ServerResponse[] => {
  const held: ServerResponse[] = [];
  receiver.answer = (response) => void held.push(response);
  return held;
};
/** A delivery worker that waits for the response to its one message. */
const holdOne = async (change = 'select 1') => {
  const held = holdAll();
  await add();
  await create();
  await shop.sql(change);
  const own = deliveryWorker();
  const polling = run(own);
  await until(() => held.length === 1, 'a delivery being sent');
  return { own, round: polling, held };
};
const INK = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
const create = () => shop.rest('POST', '/api/v1/shop/product/', { as: seller, json: INK });

describe('an event is delivered', () => {
  test('signed by Standard Webhooks, with an id, and with the product', async () => {
    const { secret } = await add();
    const { body } = await create();
    const [message, ...others] = await deliver();
    if (!message) throw new Error('no event was delivered');
    expect(others).toEqual([]);
    expect(verifySignature(message, secret)).toEqual({
      type: 'product.created',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: body,
    });
    expect(message.body).toContain(
      '"data":{"pk":1,"name":"Ink","barcode":"5901234123457","price":12.5}',
    );
    expect(message.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Shopfront\/\d+\.\d+\.\d+$/),
      'webhook-id': expect.stringMatching(/^msg_[\da-f]{32}$/),
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,[\w+/]{43}=$/),
    });
    expect(await only()).toMatchObject({
      status: 'delivered',
      attempts: 1,
      reason: '204',
      dueAt: null,
    });
    expect(await deliver()).toEqual([]);
  });

  test('O3 with a signature that is valid only for this body, id, time and secret', async () => {
    const { secret } = await add();
    await create();
    const [message] = await deliver();
    if (!message) throw new Error('no event was delivered');
    const changed = (headers: Record<string, string>, body = message.body) => ({
      ...message,
      headers: { ...message.headers, ...headers },
      body,
    });
    const time = String(Number(message.headers['webhook-timestamp']) - 1);
    for (const [forged, key] of [
      [message, `whsec_${Buffer.alloc(32).toString('base64')}`],
      [changed({}, message.body.replace('12.5', '1.5')), secret],
      [changed({ 'webhook-id': 'msg_1' }), secret],
      [changed({ 'webhook-timestamp': time }), secret],
    ] as const)
      expect(() => verifySignature(forged, key)).toThrow('No matching signature');
  });

  test('with the changed or the deleted product', async () => {
    const { body } = await create();
    await add();
    await shop.graphql(
      'mutation { updateProduct(pk: 1, input: {price: 2}) { pk } }',
      {},
      { as: seller },
    );
    await shop.graphql('mutation { deleteProduct(pk: 1) { pk } }', {}, { as: seller });
    const delivered = (await deliver())
      .map(({ event: { type, data } }) => ({ type, data }))
      .toSorted((a, b) => a.type.localeCompare(b.type));
    expect(delivered).toEqual([
      { type: 'product.changed', data: { ...body, price: 2 } },
      { type: 'product.deleted', data: { ...body, price: 2 } },
    ]);
  });

  test('of a bulk change with the number of products', async () => {
    await add();
    await shop.sql(insertingMany(1_001));
    expect((await deliver()).map(({ event }) => event)).toMatchObject([
      { type: 'products.changed', data: { count: 1_001 } },
    ]);
    await shop.sql('truncate product');
    expect((await deliver()).map(({ event }) => event)).toMatchObject([
      { type: 'products.changed', data: { count: null } },
    ]);
  });

  test('of the end of a session with the ids of the GraphQL API', async () => {
    await add();
    const { body } = await shop.rest('POST', '/session/login', {
      json: { username: seller.username, password: PASSWORD },
    });
    const [row] = await shop.sql('select sid from session');
    await shop.rest('POST', '/session/logout', { json: { session_key: body.session_key } });
    const [message] = await deliver();
    expect(message?.event).toMatchObject({
      type: 'session.ended',
      data: {
        sessionId: globalId('Session', String(row?.['sid'])),
        userId: globalId('User', seller.pk),
      },
    });
    expect(message?.body).not.toContain(body.session_key);
  });

  test('to each webhook subscribed to its kind, with its own id', async () => {
    await add(['product.created']);
    await add(['product.created', 'session.ended']);
    await add(['product.deleted']);
    await create();
    const ids = (await deliver()).map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([2, 2]);
  });

  test('whose job is added in the transaction of the change', async () => {
    await add(['product.created', 'product.changed', 'product.deleted']);
    const kinds = async (em: EntityManager) => {
      const rows = await em.execute<{ kind: string }[]>(
        `select data ->> 'kind' as kind from pgboss.job order by created_on, id`,
      );
      return rows.map(({ kind }) => kind);
    };
    for (const statement of [
      insertingMany(1),
      'update product set price = 2',
      'delete from product',
    ]) {
      await inTransaction(shop.context(), async ({ em }) => {
        const before = await kinds(em);
        await em.execute(statement);
        expect((await kinds(em)).length).toBe(before.length + 1);
        expect(await kinds(shop.database.fork())).toEqual(before);
      });
    }
    expect((await kinds(shop.database.fork())).toSorted()).toEqual([
      'product.changed',
      'product.created',
      'product.deleted',
    ]);
  });
});

describe('nothing is delivered', () => {
  test('of events while it is disabled; events pending then are sent once it is enabled', async () => {
    const { webhookId } = await add();
    await create();
    await webhooks.setEnabled(shop.context(), webhookId, false);
    await shop.makeProduct();
    expect(await deliver()).toEqual([]);
    await webhooks.setEnabled(shop.context(), webhookId, true);
    expect((await deliver()).map(({ event }) => event.data.name)).toEqual(['Ink']);
    const { name } = await shop.makeProduct();
    expect((await deliver()).map(({ event }) => event.data.name)).toEqual([name]);
  });

  test('while its removal waits for the transactions that have added a job', async () => {
    const { webhookId } = await add();
    let removed: Promise<void> | undefined;
    await inTransaction(shop.context(), async ({ em }) => {
      await em.execute(insertingMany(1));
      removed = webhooks.remove(shop.context(), webhookId);
      const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'delete from "webhook"%'`;
      await until(async () => (await shop.sql(waits)).length > 0, 'the lock of the webhook');
    });
    await removed;
    expect(await shop.sql('select name from product')).toHaveLength(1);
    expect(await shop.sql('select 1 from pgboss.job')).toEqual([]);
  });
});

describe('concurrent delivery workers', () => {
  test('three concurrent delivery workers send each event once', async () => {
    await add();
    await shop.makeProducts(20);
    await run(deliveryWorker(), deliveryWorker(), deliveryWorker());
    const ids = receiver.received.map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([20, 20]);
  });

  const claim = async () => {
    const library = await jobsOf(shop.context());
    const [due] = await findDue(shop.context());
    const options = { includeMetadata: true } as const;
    const [job] = due ? await library.fetch<QueuedEvent>(due.name, options) : [];
    if (!job) throw new Error('there is nothing to claim');
    return job;
  };

  test('a delivery claimed by a lost worker is sent after a minute, at the next sweep, with the same id', async () => {
    await add();
    await create();
    const lost = await claim();
    await expireJobs(shop);
    expect(await deliver()).toEqual([]);
    await passTime(shop, 61_000);
    await expireJobs(shop);
    expect(await only()).toMatchObject({ status: 'pending', reason: 'job timed out' });
    await passTime(shop, 10_000);
    expect((await deliver()).map(({ id }) => id)).toEqual([deliveries.messageIdOf(lost.id)]);
  });

  /** Claims a delivery, and lets the claim expire. */
  const lose = async () => {
    const lost = await claim();
    await passTime(shop, 61_000);
    await expireJobs(shop);
    return lost;
  };

  test('a delivery whose last attempt is lost with its worker is dead', async () => {
    await add();
    await create();
    await shop.sql(LAST_ATTEMPT);
    await lose();
    expect(await only()).toMatchObject({ status: 'dead', attempts: 17, reason: 'job timed out' });
  });

  test('a worker whose claim was taken by another records nothing', async () => {
    await add();
    await create();
    const slow = await lose();
    await passTime(shop, 10_000);
    await claim();
    const before = await only();
    expect(before).toMatchObject({ status: 'pending', attempts: 2 });
    for (const status of [204, 503]) await settle(shop.context(), slow, status);
    expect(await only()).toEqual(before);
  });

  test('a slow receiver gets four at a time, and blocks no other', async () => {
    const held: ServerResponse[] = [];
    const slow = await new Receiver().open();
    slow.answer = (response) => void held.push(response);
    try {
      await add(['product.created'], slow.url);
      await add(['product.created']);
      await shop.makeProducts(6);
      const own = deliveryWorker();
      const polling = run(own);
      await until(
        () => receiver.received.length === 6 && held.length === 4,
        'all events at one, and four at the other',
      );
      const { name } = await shop.makeProduct();
      await until(
        () => receiver.received.some(({ event }) => event.data.name === name),
        'the later event',
      );
      expect(held).toHaveLength(4);
      slow.answer = respondWith(204);
      for (const response of held) response.end();
      await polling;
      expect(slow.received).toHaveLength(7);
    } finally {
      await slow.close();
    }
  });

  test('a failed receiver is tried with one delivery at a time, until it succeeds', async () => {
    await add();
    await shop.makeProducts(3);
    receiver.answer = respondWith(500);
    await deliver();
    await passTime(shop, HOUR);
    const held = holdAll();
    const polling = run(deliveryWorker());
    await until(() => held.length > 0, 'a delivery being sent');
    expect(await list({ status: 'pending' })).toHaveLength(3);
    expect(await shop.sql(`select 1 from pgboss.job where state = 'active'`)).toHaveLength(1);
    receiver.answer = respondWith(204);
    for (const response of held) response.end();
    await polling;
    expect(await list({ status: 'delivered' })).toHaveLength(3);
  });

  test('during shutdown, current deliveries are finished, and no others are begun', async () => {
    const held = holdAll();
    await add();
    await shop.makeProducts(5);
    const own = deliveryWorker();
    const polling = run(own);
    await until(() => held.length === 4, 'four at once');
    let isStopped = false;
    const stopped = own.stop().then(() => (isStopped = true));
    // Without waiting, stop would resolve before the database responds.
    await shop.sql('select 1');
    expect(isStopped).toBe(false);
    for (const response of held) response.end();
    await Promise.all([polling, stopped]);
    expect([
      (await list({ status: 'delivered' })).length,
      await list({ status: 'pending' }),
    ]).toEqual([4, [expect.objectContaining({ attempts: 0 })]]);
  });
});

test.each([
  ['first', 0],
  ['last', 16],
])(
  'a delivery aborted by shutdown in its %s attempt has not failed, and another worker sends it at once',
  async (_which, earlier) => {
    const { own, round: polling } = await holdOne(`update pgboss.job set retry_count = ${earlier}`);
    await Promise.all([polling, own.stop()]);
    expect(await only()).toMatchObject({
      status: 'pending',
      attempts: earlier + 1,
      reason: 'SHUTDOWN',
    });
    expect(await webhooks.listAll(shop.context())).toMatchObject([{ failedAt: null }]);
    receiver.answer = respondWith(204);
    expect(await deliver()).toHaveLength(2);
  },
);

describe('a failing receiver', () => {
  test('is retried after 5 to 10 s, then twice as long each time, up to 4 h, for a day, with the same id; then it is dead', async () => {
    await add();
    await create();
    receiver.answer = respondWith(500);
    const ids = new Set<string>();
    let elapsed = 0;
    for (let retry = 0; retry < 16; retry++) {
      for (const { id } of await deliver()) ids.add(id);
      const delay = await retryDelay();
      expect(delay).toBeLessThanOrEqual(Math.min(10 * 2 ** retry, 4 * 3_600));
      expect(delay).toBeGreaterThan(Math.min(5 * 2 ** retry, 4 * 3_600) * 0.98 - 1);
      await passTime(shop, delay * 1000);
      elapsed += delay;
    }
    expect(elapsed * 1000).toBeGreaterThan(0.9 * DAY);
    expect(elapsed * 1000).toBeLessThan(1.1 * DAY);
    expect(logged('webhook.dead')).toEqual([]);
    for (const { id } of await deliver()) ids.add(id);
    expect([...ids]).toEqual([(await only()).messageId]);
    expect(await only()).toMatchObject({
      status: 'dead',
      attempts: 17,
      reason: '500',
      dueAt: null,
    });
    expect(logged('webhook.retry')).toHaveLength(16);
    expect(logged('webhook.dead')).toMatchObject([
      { level: 50, kind: 'product.created', attempt: 17, reason: '500' },
    ]);
    await passTime(shop, DAY);
    expect(await deliver()).toEqual([]);
  });

  test.each([300, 301, 302, 307, 308, 400, 401, 404, 409, 500, 503])(
    '%i is a failure',
    async (status) => {
      receiver.answer = respondWith(status);
      await add();
      await create();
      expect(await deliver()).toHaveLength(1);
      expect(await only()).toMatchObject({
        status: 'pending',
        attempts: 1,
        reason: String(status),
      });
    },
  );

  test('that is unreachable, or whose name does not resolve, is retried, and the log has the reason', async () => {
    await add(['product.created'], `http://127.0.0.1:${await freePort()}/hooks`);
    await add(['product.created'], 'http://nowhere.invalid/hooks');
    await create();
    await deliver();
    expect((await list()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual([
      'pending 1',
      'pending 1',
    ]);
    const reasons = logged('webhook.retry').map(({ reason }) => String(reason));
    expect(reasons).toContain('ECONNREFUSED');
    expect(reasons.filter((reason) => /^(ENOTFOUND|EAI_AGAIN)$/.test(reason))).toHaveLength(1);
  });

  test('that sends no response times out', async () => {
    const held = holdAll();
    await add();
    await create();
    await deliver(100);
    expect(await only()).toMatchObject({ status: 'pending', reason: 'TIMEOUT' });
    for (const response of held) response.destroy();
  });

  test('with an endless response counts by its status, and the rest is aborted', async () => {
    let isAborted = false;
    receiver.answer = (response) => {
      response.on('close', () => (isAborted = true)).writeHead(200);
      const write = () => {
        while (!response.destroyed && response.write(Buffer.alloc(16 * 1024)));
      };
      response.on('drain', write);
      write();
    };
    await add();
    await create();
    await deliver();
    expect(await only()).toMatchObject({ status: 'delivered', reason: '200' });
    await until(() => isAborted, 'the end of the response');
  });

  test('410 disables the webhook; its deliveries wait until it is enabled', async () => {
    const { webhookId } = await add();
    await shop.makeProducts(6);
    receiver.answer = respondWith(410);
    const delivered = await deliver();
    expect(delivered.length).toBeLessThanOrEqual(4);
    expect(await webhooks.listAll(shop.context())).toMatchObject([{ isEnabled: false }]);
    expect(logged('webhook.disabled')[0]).toMatchObject({ level: 50, reason: '410' });
    await shop.makeProduct();
    await passTime(shop, DAY);
    expect(await deliver()).toEqual([]);
    receiver.answer = respondWith(204);
    await webhooks.setEnabled(shop.context(), webhookId, true);
    expect(await deliver()).toHaveLength(6);
  });
});

describe('redelivery', () => {
  const makeDead = async (count: number) => {
    await shop.makeProducts(count);
    await shop.sql(LAST_ATTEMPT);
    receiver.answer = respondWith(500);
    await deliver();
    receiver.answer = respondWith(204);
  };

  test('of dead deliveries, with the same ids and all attempts again', async () => {
    await add();
    await makeDead(3);
    const before = (await list({ status: 'dead' })).map(({ messageId }) => messageId).toSorted();
    expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(3);
    expect(
      (await list()).map(({ status, attempts, reason }) => `${status} ${attempts} ${reason}`),
    ).toEqual(Array(3).fill('pending 0 null'));
    expect((await deliver()).map(({ id }) => id).toSorted()).toEqual(before);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(0);
  });

  test('of one webhook', async () => {
    const { webhookId } = await add();
    await add();
    await makeDead(2);
    const ofOne = { status: 'dead', webhook: webhookId } as const;
    expect(await deliveries.redeliver(shop.context(), ofOne)).toBe(2);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(2);
  });

  test('of a successful delivery by its id, with the same id and body', async () => {
    await add();
    await create();
    const [first] = await deliver();
    expect(await deliveries.redeliver(shop.context(), { messageId: first?.id })).toBe(1);
    const [again] = await deliver();
    expect([again?.id, again?.body]).toEqual([first?.id, first?.body]);
  });

  test('of a pending or an unknown delivery is NOT_FOUND', async () => {
    await add();
    await create();
    receiver.answer = respondWith(500);
    const [message] = await deliver();
    for (const messageId of [message?.id ?? '', 'msg_none']) {
      await expect(deliveries.redeliver(shop.context(), { messageId })).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    }
  });
});

test('webhook.test reaches a webhook whatever it subscribes to', async () => {
  const { webhookId, secret } = await add(['session.ended']);
  const messageId = await webhooks.test(shop.context(), webhookId);
  const [message] = await deliver();
  if (!message) throw new Error('no event was delivered');
  expect(message.id).toBe(messageId);
  expect(verifySignature(message, secret)).toMatchObject({
    type: 'webhook.test',
    data: { webhook: webhookId },
  });
});

test('X2 a secret is in no list, no log line and no message', async () => {
  const { secret } = await add();
  await create();
  const [message] = await deliver();
  receiver.answer = respondWith(410);
  await shop.makeProduct();
  await deliver();
  const seen = [message, shop.logged, await webhooks.listAll(shop.context()), await list()]
    .map((part) => JSON.stringify(part))
    .join();
  expect(seen).not.toContain(secret);
  expect(seen).not.toContain('whsec_');
});

test('deliveries are deleted 14 days after their end, or 14 days after the event while they are pending', async () => {
  const { webhookId } = await add();
  await create();
  await deliver();
  await passTime(shop, DAY);
  await shop.makeProduct();
  await shop.sql(`${LAST_ATTEMPT} where state = 'created'`);
  receiver.answer = respondWith(500);
  await deliver();
  await passTime(shop, DAY);
  await webhooks.test(shop.context(), webhookId);
  for (const [days, statuses] of [
    [11.9, ['pending', 'dead', 'delivered']],
    [0.2, ['pending', 'dead']],
    [1, ['pending']],
    [0.8, ['pending']],
    [0.2, []],
  ] as const) {
    await passTime(shop, days * DAY);
    await expireJobs(shop);
    expect((await list()).map(({ status }) => status)).toEqual(statuses);
  }
});

test('a webhook without events is rejected, and nothing is added', async () => {
  const input = { url: 'http://127.0.0.1/', events: [] };
  await expect(webhooks.add(shop.context(), input)).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
    message: expect.stringContaining('events: '),
  });
  expect(await webhooks.listAll(shop.context())).toEqual([]);
});
