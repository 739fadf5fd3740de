import { onAbort } from '../../src/core/abort.ts';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { subscribe as subscribeToChanges } from '../../src/features/change-log/subscribe.ts';
import type { Statements } from '../../src/database/sql.ts';
import { ProductSubscription } from '../../src/features/products/product.subscription.ts';
import { ActiveSubscription } from '../../src/graphql/subscriptions/active-subscription.ts';
import { settled } from '../support/settled.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, type RawSocket } from '../support/sockets.ts';

const shop = useShop();
const PKS = 'subscription { productChanged { pk cursor } }';
/** Identity of the change log's history. */
const HISTORY = 'one history';
const AFTER = 'subscription ($after: String) { productChanged(after: $after) { pk } }';

afterEach(() => {
  jest.restoreAllMocks();
  closeSockets();
});

/** Subscribes, and returns once the subscription has started. */
async function subscribe(
  socket: RawSocket,
  id: string,
  query: string,
  variables?: Record<string, unknown>,
): Promise<void> {
  socket.send({ id, type: 'subscribe', payload: { query, variables } });
  socket.send({ type: 'ping' });
  expect(await socket.next()).toEqual({ type: 'pong' });
}

/** Makes a change and then `count` others. Returns the cursor of the first. */
async function cursorBefore(count: number): Promise<string> {
  const socket = await connectSocket(shop);
  await subscribe(socket, '1', PKS);
  await shop.makeProduct();
  const { payload } = await socket.next();
  await shop.makeProducts(count);
  await settled(shop);
  return payload.data.productChanged.cursor;
}

/**
 * Reads a change log of `total` changes, in pages of 500.
 * They appear after the first read has found the log empty.
 */
function readingChanges(total: number): Statements['read'] {
  return async ({ text, values }) => {
    const [tx, pk] = values.map(Number);
    if (!text.includes('as cutoff')) return [['1', HISTORY]];
    const from = tx === 1 ? Number(pk) : total;
    const numbers = Array.from({ length: Math.min(500, total - from) }, (_, index) =>
      String(from + index + 1),
    );
    const written = numbers.map((number) => [
      '1',
      HISTORY,
      '1',
      number,
      new Date().toISOString(),
      'product.deleted',
      number,
      '{}',
    ]);
    return written.length > 0 ? written : [['2', HISTORY, null, null, null, null, null, null]];
  };
}

describe('P12 subscriptions to the same events', () => {
  test('P12 an event is executed once for all subscriptions with the same document and variables, and each gets it under its own id', async () => {
    const executed = jest.spyOn(ProductSubscription.prototype, 'productChanged');
    const sockets = [
      await connectSocket(shop),
      await connectSocket(shop),
      await connectSocket(shop),
    ];
    const [first, second, third] = sockets as [RawSocket, RawSocket, RawSocket];
    const filtered = 'subscription ($pks: [ID!]) { productChanged(pks: $pks) { kind } }';
    for (const [index, socket] of sockets.entries()) await subscribe(socket, `same ${index}`, PKS);
    await subscribe(first, 'other document', 'subscription { productChanged { kind } }');
    await subscribe(second, 'one', filtered, { pks: null });
    await subscribe(third, 'other variables', filtered, {});

    const { pk } = await shop.makeProduct();
    const answers = [await first.next(), await second.next(), await third.next()];
    const kinds = [await first.next(), await second.next(), await third.next()];
    const named = [...answers, ...kinds].toSorted((a, b) => a.id.localeCompare(b.id));
    expect(named.map(({ id }) => id)).toEqual([
      'one',
      'other document',
      'other variables',
      'same 0',
      'same 1',
      'same 2',
    ]);
    for (const { payload } of named.slice(0, 3))
      expect(payload).toEqual({ data: { productChanged: { kind: 'CREATED' } } });
    for (const { payload } of named.slice(3))
      expect(payload).toEqual({
        data: { productChanged: { pk: String(pk), cursor: expect.any(String) } },
      });
    expect(executed).toHaveBeenCalledTimes(4);
  });

  test('P12 the event loop runs other work while very many subscribers are notified', async () => {
    let turn = 0;
    let isOver = false;
    const count = (): void => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    const subscriptions = Array.from(
      { length: 300 },
      () => new ActiveSubscription({ headers: {} } as never),
    );
    const subscribers = await Promise.all(
      subscriptions.map((request) =>
        subscribeToChanges(Object.assign(shop.context(), { request })),
      ),
    );
    try {
      setImmediate(count);
      const turns = Promise.all(subscribers.map((changes) => changes.next().then(() => turn)));
      await shop.makeProduct();
      const [first = 0, ...others] = await turns;
      expect(Math.max(...others) - first).toBeGreaterThanOrEqual(5);
    } finally {
      isOver = true;
      for (const each of subscriptions) each.end();
    }
  });

  test('P12 no subscriber is too slow because very many others are notified before it', async () => {
    const total = 6_000;
    const ended: string[] = [];
    const statements = {
      commits: 0,
      read: readingChanges(total),
      write: () => Promise.reject(new Error('nothing is written')),
    };
    const subscribers = await Promise.all(
      Array.from({ length: 300 }, async () => {
        const request = new ActiveSubscription({ headers: {} } as never);
        onAbort(request.signal, () => request.error && ended.push(request.error.code));
        return {
          request,
          changes: await subscribeToChanges({ ...shop.context(), statements, request }),
        };
      }),
    );
    await Promise.all(
      subscribers.map(async ({ request, changes }) => {
        for (let count = 0; count < total && !request.signal.aborted; count++) await changes.next();
      }),
    );
    expect(ended).toEqual([]);
    for (const { request } of subscribers) request.end();
  });

  test('P12 an address has a maximum of subscriptions, over all its sockets', async () => {
    const small = await new Shop({}, { maxSubscriptionsPerAddress: 2 }).start();
    try {
      const [first, second] = [await connectSocket(small), await connectSocket(small)];
      await subscribe(first, '1', PKS);
      await subscribe(second, '1', PKS);
      second.send({ id: '2', type: 'subscribe', payload: { query: PKS } });
      expect(await second.next()).toMatchObject({
        id: '2',
        type: 'error',
        payload: [{ extensions: { code: 'RATE_LIMITED', retryAfter: 5 } }],
      });
      first.send({ id: '1', type: 'complete' });
      first.send({ type: 'ping' });
      await first.next();
      await subscribe(second, '3', PKS);
    } finally {
      closeSockets();
      await small.stop();
    }
  });
});

describe('P13 past changes', () => {
  test('P13 are read for one subscription per socket at a time', async () => {
    const after = await cursorBefore(60);
    const socket = await connectSocket(shop);
    for (const id of ['1', '2', '3'])
      socket.send({ id, type: 'subscribe', payload: { query: AFTER, variables: { after } } });
    const ids: string[] = [];
    while (ids.length < 180) ids.push((await socket.next()).id);
    expect(ids).toEqual(ids.toSorted());
  });

  test('P13 are read by one statement at a time per address', async () => {
    const after = await cursorBefore(60);
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    let [running, most, reads] = [0, 0, 0];
    jest.spyOn(statements, 'read').mockImplementation(async (statement, ...rest) => {
      if (!/as cutoff.* limit 20\)/s.test(statement.text)) return read(statement, ...rest);
      reads++;
      most = Math.max(most, ++running);
      return read(statement, ...rest).finally(() => running--);
    });
    const sockets = await Promise.all(Array.from({ length: 10 }, () => connectSocket(shop)));
    for (const socket of sockets)
      socket.send({ id: '1', type: 'subscribe', payload: { query: AFTER, variables: { after } } });
    for (const socket of sockets)
      for (let count = 0; count < 60; count++)
        expect(await socket.next()).toMatchObject({ type: 'next' });
    expect(reads).toBeGreaterThanOrEqual(30);
    expect(most).toBe(1);
  });

  test('P13 are read for the next socket once a socket disconnects', async () => {
    const after = await cursorBefore(60);
    const [first, second] = [await connectSocket(shop), await connectSocket(shop)];
    first.send({ id: '1', type: 'subscribe', payload: { query: AFTER, variables: { after } } });
    await first.next();
    first.socket.terminate();
    second.send({ id: '1', type: 'subscribe', payload: { query: AFTER, variables: { after } } });
    for (let count = 0; count < 60; count++)
      expect(await second.next()).toMatchObject({ type: 'next' });
  });
});
