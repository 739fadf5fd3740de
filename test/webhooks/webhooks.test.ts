import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { ServerResponse } from 'node:http';
import type { ChangeKind } from '../../src/features/change-log/change-log.ts';
import { events as tellers } from '../../src/features.ts';
import { inTransaction } from '../../src/request/context.ts';
import { globalId } from '../../src/api/node.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Courier } from '../../src/features/webhooks/delivery-worker.ts';
import * as deliveries from '../../src/features/webhooks/delivery.service.ts';
import { openSender } from '../../src/features/webhooks/http-client.ts';
import * as webhooks from '../../src/features/webhooks/webhook.service.ts';
import { insertingMany } from '../support/many-products.ts';
import { freePort } from '../support/process.ts';
import { answering, Receiver, useReceiver, verified, type Received } from '../support/receiver.ts';
import { settled } from '../support/settled.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';
import { sized } from '../support/sized.ts';

const ALL: ChangeKind[] = ['product.created', 'product.changed', 'product.deleted', 'products.changed', 'session.ended'];
const HOUR = 3_600_000;
const DAY = 86_400_000;
/** For how long nobody else tries what somebody tries. */
const LEASE = 60_000;

const shop = useShop({ WEBHOOK_PRIVATE_TARGETS: 'true' });
const receiver = useReceiver();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});

const add = (events: ChangeKind[] = ALL, url = receiver.url) => webhooks.add(shop.context(), { url, events });
const courier = (patience?: number) => new Courier(tellers, openSender(shop.config), patience);
const run = async (...couriers: Courier[]) => {
  await settled(shop);
  await Promise.all(couriers.map((each) => each.deliver(() => shop.workerContext())));
};
const deliver = async (patience?: number): Promise<Received[]> => {
  await run(courier(patience));
  return receiver.received.splice(0);
};
const list = (choice: deliveries.Choice = {}) => deliveries.listSome(shop.context(), choice, 10_000);
const only = async () => {
  const [first, ...others] = await list();
  if (!first || others.length > 0) throw new Error(`there are ${others.length + 1} deliveries`);
  return first;
};
/** How long until it is tried again, in s. */
const pauseOf = async () => (((await only()).dueAt?.getTime() ?? NaN) - shop.now().getTime()) / 1000;
const logged = (name: string) =>
  shop.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ event }) => event === name);
/** Has the receiver leave everyone waiting. */
const holdAll = (): ServerResponse[] => {
  const held: ServerResponse[] = [];
  receiver.answer = (response) => void held.push(response);
  return held;
};
/** A courier whose one message is being kept waiting. */
const oneUnderWay = async () => {
  const held = holdAll();
  await add();
  await create();
  const own = courier();
  const round = run(own);
  await until(() => held.length === 1, 'one under way');
  return { own, round, held };
};
/** How many there are of each status, by when they are due. */
const counts = () => shop.sql('select status, due_at::text as due, count(*)::int from webhook_delivery group by 1, 2');
const INK = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
/** Has so many deliveries wait. */
const waiting = async (count: number) => {
  await create();
  await settled(shop);
  await deliveries.spread(shop.context());
  await shop.sql(`
    insert into webhook_delivery (mid, webhook_pk, kind, at, subject, due_at)
    select mid || number, webhook_pk, kind, at, subject, due_at from webhook_delivery, generate_series(2, ${count}) as number`);
};
const create = () => shop.rest('POST', '/api/v1/shop/product/', { as: seller, json: INK });

describe('an event arrives', () => {
  test('signed as Standard Webhooks have it, with an id to tell it by, and with the product as the REST door answers it', async () => {
    const { secret } = await add();
    const { body } = await create();
    const [message, ...others] = await deliver();
    if (!message) throw new Error('nothing has arrived');
    expect(others).toEqual([]);
    expect(verified(message, secret)).toEqual({ type: 'product.created', timestamp: expect.stringMatching(/^\d{4}-.*Z$/), data: body });
    expect(message.body).toContain('"data":{"pk":1,"name":"Ink","barcode":"5901234123457","price":12.5}');
    expect(message.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': expect.stringMatching(/^Shopfront\/\d+\.\d+\.\d+$/),
      'webhook-id': expect.stringMatching(/^msg_[\da-f]{32}$/),
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
      'webhook-signature': expect.stringMatching(/^v1,[\w+/]{43}=$/),
    });
    expect(await only()).toMatchObject({ status: 'delivered', attempts: 1, reason: '204', dueAt: null });
    expect(await deliver()).toEqual([]);
  });

  test('O3 with a signature that is good for this body, this id, this time and this secret alone', async () => {
    const { secret } = await add();
    await create();
    const [message] = await deliver();
    if (!message) throw new Error('nothing has arrived');
    const changed = (headers: Record<string, string>, body = message.body) => ({
      ...message,
      headers: { ...message.headers, ...headers },
      body,
    });
    expect(() => verified(message, `whsec_${Buffer.alloc(32).toString('base64')}`)).toThrow('No matching signature');
    expect(() => verified(changed({}, message.body.replace('12.5', '1.5')), secret)).toThrow('No matching signature');
    expect(() => verified(changed({ 'webhook-id': 'msg_1' }), secret)).toThrow('No matching signature');
    const time = String(Number(message.headers['webhook-timestamp']) - 1);
    expect(() => verified(changed({ 'webhook-timestamp': time }), secret)).toThrow('No matching signature');
  });

  test('of a change as the product became, of a deletion as it was', async () => {
    const { body } = await create();
    await add();
    await shop.graphql('mutation { updateProduct(pk: 1, input: {price: 2}) { pk } }', {}, { as: seller });
    await shop.graphql('mutation { deleteProduct(pk: 1) { pk } }', {}, { as: seller });
    const told = (await deliver()).map(({ event: { type, data } }) => ({ type, data })).toSorted((a, b) => a.type.localeCompare(b.type));
    expect(told).toEqual([
      { type: 'product.changed', data: { ...body, price: 2 } },
      { type: 'product.deleted', data: { ...body, price: 2 } },
    ]);
  });

  test('of many products as how many', async () => {
    await add();
    await shop.sql(insertingMany(1_001));
    expect((await deliver()).map(({ event }) => event)).toMatchObject([{ type: 'products.changed', data: { count: 1_001 } }]);
    await shop.sql('truncate product');
    expect((await deliver()).map(({ event }) => event)).toMatchObject([{ type: 'products.changed', data: { count: null } }]);
  });

  test('of the end of a session as the ids that the GraphQL door knows', async () => {
    await add();
    const { body } = await shop.rest('POST', '/session/login', { json: { username: seller.username, password: PASSWORD } });
    const [row] = await shop.sql('select sid from session');
    await shop.rest('POST', '/session/logout', { json: { session_key: body.session_key } });
    const [message] = await deliver();
    expect(message?.event).toMatchObject({
      type: 'session.ended',
      data: { sessionId: globalId('Session', String(row?.['sid'])), userId: globalId('User', seller.pk) },
    });
    expect(message?.body).not.toContain(body.session_key);
  });

  test('at each webhook that is told of its kind, under an id of its own', async () => {
    await add(['product.created']);
    await add(['product.created', 'session.ended']);
    await add(['product.deleted']);
    await create();
    const ids = (await deliver()).map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([2, 2]);
  });

  test('of more than are read at a time: none is left out, and none is told twice', async () => {
    await add();
    await shop.sql(insertingMany(1_000));
    await shop.sql(insertingMany(5, 1_001));
    await settled(shop);
    while (await deliveries.spread(shop.context()));
    expect(await deliveries.spread(shop.context())).toBe(false);
    expect(await shop.sql('select count(*)::int, count(distinct subject)::int as products from webhook_delivery')).toEqual([
      { count: 1_005, products: 1_005 },
    ]);
  });
});

describe('nothing arrives', () => {
  test('of what was undone, and of what was refused', async () => {
    await add();
    const undone = inTransaction(shop.context(), async ({ em }) => {
      await em.execute(insertingMany(1));
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    await shop.rest('POST', '/api/v1/shop/product/', { as: seller, json: { ...INK, price: -1 } });
    expect(await deliver()).toEqual([]);
  });

  test('of what was before the webhook, whether or not another was told of it', async () => {
    await add(['product.created']);
    await create();
    await add(['product.created']);
    expect(await deliver()).toHaveLength(1);
  });

  test('of what is while it is disabled; of what waited for it then, once it is enabled', async () => {
    const { wid } = await add();
    await create();
    await settled(shop);
    await deliveries.spread(shop.context());
    await webhooks.disable(shop.context(), wid);
    await shop.makeProduct();
    expect(await deliver()).toEqual([]);
    await webhooks.enable(shop.context(), wid);
    expect((await deliver()).map(({ event }) => event.data.name)).toEqual(['Ink']);
    const { name } = await shop.makeProduct();
    expect((await deliver()).map(({ event }) => event.data.name)).toEqual([name]);
  });

  test('after it was removed', async () => {
    const { wid } = await add();
    await create();
    await settled(shop);
    await deliveries.spread(shop.context());
    await webhooks.remove(shop.context(), wid);
    await add(['session.ended']);
    expect(await deliver()).toEqual([]);
    expect(await list()).toEqual([]);
  });
});

describe('several at work', () => {
  test('three couriers at once tell each of it once', async () => {
    await add();
    await shop.makeProducts(20);
    await run(courier(), courier(), courier());
    const ids = receiver.received.map(({ id }) => id);
    expect([ids.length, new Set(ids).size]).toEqual([20, 20]);
  });

  test('what somebody was lost with is told again a minute later, under the same id', async () => {
    await add();
    await create();
    await settled(shop);
    await deliveries.spread(shop.context());
    const [lost] = await deliveries.claim(shop.context(), 1, new Map());
    expect(await deliver()).toEqual([]);
    shop.pass(LEASE);
    expect((await deliver()).map(({ id }) => id)).toEqual([lost?.mid]);
  });

  test('who was so slow that another has taken it since notes nothing', async () => {
    await add();
    await create();
    await settled(shop);
    await deliveries.spread(shop.context());
    const [slow] = await deliveries.claim(shop.context(), 1, new Map());
    shop.pass(LEASE);
    const [other] = await deliveries.claim(shop.context(), 1, new Map());
    if (!slow || !other) throw new Error('there was nothing to claim');
    await deliveries.end(shop.context(), slow, '204');
    await deliveries.postpone(shop.context(), slow, '500', 0);
    expect(await only()).toMatchObject({ status: 'pending', attempts: 2, reason: null, dueAt: other.leasedUntil });
  });

  test('one that takes its time gets four at a time, and holds up no other', async () => {
    const held: ServerResponse[] = [];
    const slow = await new Receiver().open();
    slow.answer = (response) => void held.push(response);
    try {
      await add(['product.created'], slow.url);
      await add(['product.created']);
      await shop.makeProducts(6);
      const own = courier();
      const round = run(own);
      await until(() => receiver.received.length === 6 && held.length === 4, 'all to one, and four to the other');
      const { name } = await shop.makeProduct();
      await until(() => receiver.received.some(({ event }) => event.data.name === name), 'what has happened since');
      expect(held).toHaveLength(4);
      slow.answer = answering(204);
      for (const response of held) response.end();
      await round;
      expect(slow.received).toHaveLength(7);
    } finally {
      await slow.close();
    }
  });

  test('one that has failed is tried one at a time, until it answers well', async () => {
    await add();
    await shop.makeProducts(3);
    receiver.answer = answering(500);
    await deliver();
    shop.pass(HOUR);
    expect(await deliveries.claim(shop.workerContext(), 16, new Map())).toHaveLength(1);
    shop.pass(HOUR);
    receiver.answer = answering(204);
    expect(await deliver()).toHaveLength(3);
  });

  test('on the way out, what is under way is waited for, and nothing else is begun', async () => {
    const held = holdAll();
    await add();
    await shop.makeProducts(5);
    const own = courier();
    const round = run(own);
    await until(() => held.length === 4, 'four at once');
    let isOut = false;
    const out = own.stop().then(() => (isOut = true));
    // Whoever does not wait would be out before the database has answered.
    await shop.sql('select 1');
    expect(isOut).toBe(false);
    for (const response of held) response.end();
    await Promise.all([round, out]);
    expect([(await list({ status: 'delivered' })).length, await list({ status: 'pending' })]).toEqual([
      4,
      [expect.objectContaining({ attempts: 0 })],
    ]);
  });
});

test('what is broken off on the way out is no failure of its receiver, and another sends it at once', async () => {
  const { own, round } = await oneUnderWay();
  await Promise.all([round, own.stop()]);
  expect(await only()).toMatchObject({ status: 'pending', attempts: 0 });
  expect(await webhooks.listAll(shop.context())).toMatchObject([{ failedAt: null }]);
  receiver.answer = answering(204);
  expect(await deliver()).toHaveLength(2);
});

test('while a round is under way, whoever asks for another waits for nothing', async () => {
  const { own, round, held } = await oneUnderWay();
  await own.deliver(() => shop.workerContext());
  expect(await only()).toMatchObject({ status: 'pending', attempts: 1, reason: null });
  for (const response of held) response.end();
  await round;
});

test('what could not be tried for 3 days is given up, but for what waits until its webhook is enabled again', async () => {
  const { wid } = await add();
  await shop.makeProducts(2);
  await settled(shop);
  while (await deliveries.spread(shop.workerContext()));
  await webhooks.disable(shop.context(), wid);
  shop.pass(4 * DAY);
  await deliveries.sweep(shop.context());
  expect((await list()).map(({ status }) => status)).toEqual(['pending', 'pending']);
  await webhooks.enable(shop.context(), wid);
  await deliveries.sweep(shop.context());
  expect((await list()).map(({ status }) => status)).toEqual(['pending', 'pending']);
  shop.pass(4 * DAY);
  await deliveries.sweep(shop.workerContext());
  expect((await list()).map(({ status, reason }) => `${status} ${reason}`)).toEqual(['dead WAITED', 'dead WAITED']);
  expect(logged('webhook.dead')).toMatchObject([{ level: 50, dead: 2 }]);
});

describe('a target that fails', () => {
  test('is tried again after 5 s, 30 s, 5 min, 30 min, 2 h, 5 h, 10 h, and a day after the first time, under the same id; then it is dead', async () => {
    await add();
    await create();
    receiver.answer = answering(500);
    const ids = new Set<string>();
    const first = shop.now().getTime();
    let nominal = 0;
    for (const pause of [5, 30, 300, 1_800, 7_200, 18_000, 36_000, 23_065]) {
      for (const { id } of await deliver()) ids.add(id);
      const due = await pauseOf();
      expect(due).toBeLessThanOrEqual(pause * 1.1);
      // The clock has gone on since it was postponed.
      expect(due).toBeGreaterThan(pause * 0.9 - 60);
      shop.pass(pause * 1100);
      nominal += pause;
    }
    expect(nominal * 1000).toBe(DAY);
    expect(shop.now().getTime() - first).toBeGreaterThan(DAY);
    expect(logged('webhook.dead')).toEqual([]);
    for (const { id } of await deliver()) ids.add(id);
    expect([...ids]).toEqual([(await only()).mid]);
    expect(await only()).toMatchObject({ status: 'dead', attempts: 9, reason: '500', dueAt: null });
    expect(logged('webhook.later')).toHaveLength(8);
    expect(logged('webhook.dead')).toMatchObject([{ level: 50, kind: 'product.created', attempt: 9, reason: '500' }]);
    shop.pass(DAY);
    expect(await deliver()).toEqual([]);
  });

  test.each([300, 301, 302, 307, 308, 400, 401, 404, 409, 500, 503])('%i is no success', async (status) => {
    receiver.answer = answering(status);
    await add();
    await create();
    expect(await deliver()).toHaveLength(1);
    expect(await only()).toMatchObject({ status: 'pending', attempts: 1, reason: String(status) });
  });

  test('a connection that is closed without an answer is none', async () => {
    receiver.answer = (response) => void response.destroy();
    await add();
    await create();
    await deliver();
    expect(await only()).toMatchObject({ status: 'pending', reason: 'ECONNRESET' });
  });

  test.each([200, 201, 202, 204])('%i is one', async (status) => {
    receiver.answer = answering(status);
    await add();
    await create();
    await deliver();
    expect(await only()).toMatchObject({ status: 'delivered', reason: String(status) });
  });

  test('that nobody listens at, or whose name stands for nothing, is tried again, and the log says why', async () => {
    await add(['product.created'], `http://127.0.0.1:${await freePort()}/hooks`);
    await add(['product.created'], 'http://nowhere.invalid/hooks');
    await create();
    await deliver();
    expect((await list()).map(({ status, attempts }) => `${status} ${attempts}`)).toEqual(['pending 1', 'pending 1']);
    const reasons = logged('webhook.later').map(({ reason }) => String(reason));
    expect(reasons).toContain('ECONNREFUSED');
    expect(reasons.filter((reason) => /^(ENOTFOUND|EAI_AGAIN)$/.test(reason))).toHaveLength(1);
  });

  test('that says nothing is given up after its time', async () => {
    const held = holdAll();
    await add();
    await create();
    await deliver(100);
    expect(await only()).toMatchObject({ status: 'pending', reason: 'TIMEOUT' });
    for (const response of held) response.destroy();
  });

  test('whose answer never ends has answered: the status counts, and the rest is broken off', async () => {
    let isBrokenOff = false;
    receiver.answer = (response) => {
      response.on('close', () => (isBrokenOff = true)).writeHead(200);
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
    await until(() => isBrokenOff, 'the end of the answer');
  });

  test.each([
    [429, '600', 600],
    [503, '600', 600],
    [503, '86400', 3_600],
    [503, '1', 5],
    [503, 'soon', 5],
    [503, '-5', 5],
    [500, '600', 5],
  ])('%i with Retry-After: %s is tried again after %i s', async (status, value, seconds) => {
    receiver.answer = answering(status, { 'Retry-After': value });
    await add();
    await create();
    await deliver();
    const due = await pauseOf();
    expect(due).toBeLessThanOrEqual(seconds * 1.1);
    expect(due).toBeGreaterThan(seconds * 0.9 - 60);
  });

  test('Retry-After may be a date', async () => {
    await add();
    await create();
    receiver.answer = answering(503, { 'Retry-After': new Date(shop.now().getTime() + 1_200_000).toUTCString() });
    await deliver();
    const due = await pauseOf();
    expect(due).toBeLessThanOrEqual(1_200);
    expect(due).toBeGreaterThan(1_100);
  });

  test('410 disables the webhook, and gives up all that waits for it', async () => {
    await add();
    await shop.makeProducts(6);
    receiver.answer = answering(410);
    const told = await deliver();
    expect(told.length).toBeLessThanOrEqual(4);
    expect(await webhooks.listAll(shop.context())).toMatchObject([{ isEnabled: false }]);
    expect((await list()).map(({ status, reason }) => `${status} ${reason}`)).toEqual(Array(6).fill('dead 410'));
    expect(logged('webhook.disabled')[0]).toMatchObject({ level: 50 });
    await shop.makeProduct();
    shop.pass(DAY);
    expect(await deliver()).toEqual([]);
  });

  test('410 gives up all that waits, however many sweeps that takes', async () => {
    await add();
    const count = sized(250_002, 10_002);
    await waiting(count);
    receiver.answer = answering(410);
    await deliver();
    expect(await counts()).toEqual([{ status: 'dead', due: null, count }]);
  });
});

describe('sent again', () => {
  const die = async (count: number) => {
    await shop.makeProducts(count);
    receiver.answer = answering(410);
    await deliver();
    receiver.answer = answering(204);
  };

  test('what was given up, under the same ids and with as many attempts as at first', async () => {
    const { wid } = await add();
    await die(3);
    const before = (await list({ status: 'dead' })).map(({ mid }) => mid).toSorted();
    await webhooks.enable(shop.context(), wid);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(3);
    expect((await list()).map(({ status, attempts, reason }) => `${status} ${attempts} ${reason}`)).toEqual(
      Array(3).fill('pending 0 null'),
    );
    expect((await deliver()).map(({ id }) => id).toSorted()).toEqual(before);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(0);
  });

  test('of one webhook, or of events since a day', async () => {
    const first = await add();
    await add();
    await die(2);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead', webhook: first.wid })).toBe(2);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead', since: new Date(shop.now().getTime() + DAY) })).toBe(0);
    expect(await deliveries.redeliver(shop.context(), { status: 'dead', since: new Date(shop.now().getTime() - DAY) })).toBe(2);
  });

  test('what was delivered, by its id, with the same id and body', async () => {
    await add();
    await create();
    const [first] = await deliver();
    expect(await deliveries.redeliver(shop.context(), { mid: first?.id })).toBe(1);
    const [again] = await deliver();
    expect([again?.id, again?.body]).toEqual([first?.id, first?.body]);
  });

  test('what is on its way still, or never was, is NOT_FOUND', async () => {
    await add();
    await create();
    receiver.answer = answering(500);
    const [message] = await deliver();
    for (const mid of [message?.id ?? '', 'msg_none']) {
      await expect(deliveries.redeliver(shop.context(), { mid })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    }
  });
});

test('more than one statement comes to is given up, sent again, enabled and removed', async () => {
  const { wid } = await add();
  await waiting(5_001);
  receiver.answer = answering(410);
  await deliver();
  expect(await counts()).toEqual([{ status: 'dead', due: null, count: 5_001 }]);
  expect(await deliveries.redeliver(shop.context(), { status: 'dead' })).toBe(5_001);
  const [before] = await counts();
  expect(before).toMatchObject({ status: 'pending', count: 5_001 });
  shop.pass(DAY);
  await webhooks.enable(shop.context(), wid);
  const [after, ...others] = await counts();
  expect([after, others]).toMatchObject([{ status: 'pending', count: 5_001 }, []]);
  expect(after?.['due']).not.toBe(before?.['due']);
  await webhooks.remove(shop.context(), wid);
  expect(await counts()).toEqual([]);
});

test('O3 for a day after its secret was changed, messages are signed with both, the new one first', async () => {
  const { wid, secret } = await add();
  const { secret: next } = await webhooks.rotateSecret(shop.context(), wid);
  await create();
  const [message] = await deliver();
  if (!message) throw new Error('nothing has arrived');
  const [first = '', second = '', ...others] = String(message.headers['webhook-signature']).split(' ');
  expect([verified(message, secret), verified(message, next), others]).toEqual([message.event, message.event, []]);
  const alone = (signature: string): Received => ({ ...message, headers: { ...message.headers, 'webhook-signature': signature } });
  expect([verified(alone(first), next), verified(alone(second), secret)]).toEqual([message.event, message.event]);
  shop.pass(DAY);
  await deliveries.redeliver(shop.context(), { mid: message.id });
  const [later] = await deliver();
  expect(later?.headers['webhook-signature']).toMatch(/^v1,[\w+/]{43}=$/);
});

test('webhook.test reaches a webhook whatever it is told of', async () => {
  const { wid, secret } = await add(['session.ended']);
  const mid = await webhooks.test(shop.context(), wid);
  const [message] = await deliver();
  if (!message) throw new Error('nothing has arrived');
  expect(message.id).toBe(mid);
  expect(verified(message, secret)).toMatchObject({ type: 'webhook.test', data: { webhook: wid } });
});

test('X2 a secret is in no list, no line of the log and no message', async () => {
  const { secret } = await add();
  await create();
  const [message] = await deliver();
  receiver.answer = answering(410);
  await shop.makeProduct();
  await deliver();
  const seen = [message, shop.logged, await webhooks.listAll(shop.context()), await list()].map((part) => JSON.stringify(part)).join();
  expect(seen).not.toContain(secret);
  expect(seen).not.toContain('whsec_');
});

test('the sweep deletes what was delivered 3 days ago and what was given up 30 days ago, and leaves what waits', async () => {
  const { wid } = await add();
  await create();
  await deliver();
  await shop.makeProduct();
  receiver.answer = answering(410);
  await deliver();
  await webhooks.test(shop.context(), wid);
  const left = async () => (await list()).map(({ status }) => status);
  for (const [days, statuses] of [
    [2, ['pending', 'dead', 'delivered']],
    [1, ['pending', 'dead']],
    [26, ['pending', 'dead']],
    [1, ['pending']],
  ] as const) {
    shop.pass(days * DAY);
    await deliveries.sweep(shop.context());
    expect(await left()).toEqual(statuses);
  }
});

test("a place that another server's backup has brought is left, and what happens from then on is told", async () => {
  await add();
  await shop.sql(`update webhook_place set tx = '900000000000', pk = 7`);
  await shop.sql(`update webhook set since = '900000000000:900000000000:'`);
  await create();
  await deliver();
  const { name } = await shop.makeProduct();
  expect((await deliver()).map(({ event }) => event.data.name)).toEqual([name]);
});

test.each([
  ['no event', { url: 'http://127.0.0.1/', events: [] }, 'events: '],
  ['a description of two lines', { url: 'http://127.0.0.1/', events: ALL, description: 'a\nb' }, 'description: '],
])('%s is refused, and nothing is added', async (_what, input, message) => {
  await expect(webhooks.add(shop.context(), input)).rejects.toMatchObject({
    code: 'BAD_USER_INPUT',
    message: expect.stringContaining(message),
  });
  expect(await webhooks.listAll(shop.context())).toEqual([]);
});
