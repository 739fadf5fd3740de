import { ActiveSubscription } from '../../src/graphql/subscriptions/subscription.ts';
import { afterEach, beforeEach, describe, expect, jest, test } from '../support/jest.ts';
import { closeStreams, openSubscription } from '../support/events.ts';
import { insertingMany } from '../support/many-products.ts';
import { useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, startSubscription } from '../support/sockets.ts';

afterEach(() => {
  jest.restoreAllMocks();
  closeStreams();
  closeSockets();
});

describe('a client that reads too slowly', () => {
  /** The largest selection allowed, to fill the network buffers quickly. */
  const SLOW = `subscription { productChanged { cursor ${Array.from({ length: 15 }, (_, n) => `p${n}: product { name }`).join(' ')} } }`;
  const QUICK = 'subscription { productChanged { pk } }';
  const PRODUCT_COUNT = 1_000;

  const shop = useShop();

  beforeEach(async () => {
    await shop.sql(insertingMany(PRODUCT_COUNT, 1, 'x'.repeat(240)));
  });

  /**
   * Changes products until a slow consumer is disconnected, while another client keeps reading.
   * Returns at once, because the server waits some seconds for a client that closes.
   */
  const changeUntilDisconnected = async () => {
    const quick = await openSubscription(shop, QUICK);
    const end = jest.spyOn(ActiveSubscription.prototype, 'end');
    for (let read = 0; ; read++) {
      if (end.mock.calls.some(([error]) => error?.code === 'SLOW_CONSUMER')) return;
      if (read % PRODUCT_COUNT === 0) await shop.sql('update product set price = price + 1');
      expect((await quick.next())?.event).toBe('next');
    }
  };

  test('of events gets SLOW_CONSUMER, and the stream ends; it resumes after its last cursor', async () => {
    const slow = await openSubscription(shop, SLOW);
    await changeUntilDisconnected();
    let [before, last] = [await slow.next(), await slow.next()];
    for (let next = await slow.next(); next?.event === 'next'; next = await slow.next())
      [before, last] = [last, next];
    expect(last?.data).toEqual({
      errors: [
        {
          message: expect.stringContaining('too slow'),
          extensions: { code: 'SLOW_CONSUMER' },
        },
      ],
    });
    const again = await openSubscription(
      shop,
      'subscription ($after: String) { productChanged(after: $after) { cursor } }',
      { after: before?.id },
    );
    expect((await again.next())?.event).toBe('next');
  });

  test('of a WebSocket gets SLOW_CONSUMER, and the socket is closed', async () => {
    const slow = await connectSocket(shop);
    await startSubscription(slow, '1', { query: SLOW });
    slow.socket.pause();
    await changeUntilDisconnected();
    slow.socket.resume();
    let last;
    for (let next = await slow.next(); next; next = await slow.next()) last = next;
    expect(last).toMatchObject({
      id: '1',
      type: 'error',
      payload: [{ extensions: { code: 'SLOW_CONSUMER' } }],
    });
    expect((await slow.closed)[0]).toBe(4410);
  });
});
