import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { subscribe as subscribeToChanges } from '../../src/features/change-log/subscribe.ts';
import { ProductSubscription } from '../../src/features/products/product.subscription.ts';
import { ActiveSubscription } from '../../src/graphql/subscriptions/subscription.ts';
import { settled } from '../support/settled.ts';
import { useShop } from '../support/shop.ts';
import {
  closeSockets,
  connectSocket,
  startSubscription,
  type RawSocket,
} from '../support/sockets.ts';

const shop = useShop();
const PKS = 'subscription { productChanged { pk cursor } }';
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
  await startSubscription(socket, id, { query, variables });
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
});

describe('P13 past changes', () => {
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
});
