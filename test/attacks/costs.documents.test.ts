import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { closeStreams, openSubscription } from '../support/events.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, startSubscription } from '../support/sockets.ts';
import { until } from '../support/until.ts';

const shop = useShop();
const hidden = useShop({ GRAPHQL_EXPLORER: 'false' });
const wrong = (kind: string) =>
  `${kind} { ${Array.from({ length: 100 }, (_, index) => `field${index} { a }`).join(' ')} }`;
const STOPPED = 'Too many validation errors, error limit reached. Validation aborted.';

afterEach(() => {
  jest.restoreAllMocks();
  closeSockets();
  closeStreams();
});

describe('P3 an invalid document', () => {
  test('P3 has at most five errors, the last of which says that validation was aborted', async () => {
    const { status, body } = await shop.rest('POST', '/graphql', {
      json: { query: wrong('query') },
    });
    expect([status, body.errors.length, body.errors[4].message]).toEqual([400, 5, STOPPED]);
  });

  test('P3 has the same limit on a WebSocket, also when it is sent again', async () => {
    const socket = await connectSocket(shop);
    const payloads = [];
    for (const id of ['1', '2']) {
      socket.send({ id, type: 'subscribe', payload: { query: wrong('subscription') } });
      payloads.push((await socket.next()).payload);
    }
    expect([payloads[0].length, payloads[0][4].message]).toEqual([5, STOPPED]);
    expect(payloads[0]).toContainEqual(
      expect.objectContaining({ locations: [{ line: 1, column: 16 }] }),
    );
    expect(payloads[1]).toEqual(payloads[0]);
  });
});

describe('P22 errors that repeat input', () => {
  const enumOf =
    'query ($f: ProductOrderField!) { products(orderBy: { field: $f }) { totalCount } }';
  const long = 'x'.repeat(50_000);

  test.each<[string, string, object]>([
    ['the value of a variable', enumOf, { f: `${' cannot represent'.repeat(5_700)} b` }],
    [
      'the value of a variable that is an object',
      'query ($k: ID!) { product(pk: $k) { pk } }',
      { k: { [long]: long } },
    ],
    ['the name of a field', `{ ${long} }`, {}],
  ])('P22 have at most 1,000 characters: %s', async (_what, query, variables) => {
    for (const target of [shop, hidden]) {
      const { body } = await target.graphql(query, variables as Record<string, unknown>);
      expect(body.errors.length).toBeGreaterThan(0);
      for (const { message, extensions } of body.errors) {
        expect(message.length).toBeLessThanOrEqual(1_000);
        expect(JSON.stringify(extensions).length).toBeLessThan(1_200);
      }
    }
  });

  test('P22 suggest no names of the schema to subscribers if the explorer is disabled', async () => {
    const query = 'subscription { productChangd { pk } }';
    const socket = await connectSocket(hidden);
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    const { payload } = await socket.next();
    for (const { message } of payload) expect(message).not.toMatch(/did you|["…]\?$/i);
  });
});

describe('P9 variables with very many errors', () => {
  const variables = { keys: Array.from({ length: 80 }, () => null) };

  test('P9 have at most 51 errors, all with a client error code, and log no server error', async () => {
    const { status, body } = await shop.rest('POST', '/graphql', {
      json: { query: 'query ($keys: [ID!]!) { nodes(ids: $keys) { id } }', variables },
    });
    expect([status, body.errors.length]).toEqual([400, 51]);
    for (const { extensions } of body.errors) expect(extensions.code).toBe('BAD_USER_INPUT');
    expect(body.errors[7].message).toMatch(/ at "keys\[7\]"; /);
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

describe('P7 the memory of subscriptions', () => {
  test('P7 is limited per network by the length of their requests', async () => {
    const json = {
      query: 'subscription { productChanged { pk } }',
      extensions: { padding: 'x'.repeat(90_000) },
    };
    const open = () => openSubscription(shop, '', {}, { json });
    for (let count = 0; count < 11; count++) expect((await open()).status).toBe(200);
    const rejected = await (await open()).next();
    expect(rejected?.data.errors[0].extensions.code).toBe('RATE_LIMITED');
    closeStreams();
    await until(async () => {
      const stream = await open();
      const event = await Promise.race([stream.next(), setTimeout(100, 'open')]);
      closeStreams();
      return event === 'open';
    });
  });

  test('P7 is limited per network by their number, and released at their end', async () => {
    const small = await new Shop({}, { maxSubscriptionsPerAddress: 30 }).start();
    /** Starts subscriptions with documents of nearly 16 KB, 20 per socket, until one is rejected. */
    const fill = async () => {
      let socket = await connectSocket(small);
      for (let index = 0; index <= 30; index++) {
        if (index === 20) socket = await connectSocket(small);
        const query = `subscription S${index} { productChanged { pk } } # ${'x'.repeat(15_000)}`;
        const rejected = socket.next();
        const isStarted = startSubscription(socket, String(index), { query }).then(() => undefined);
        const message = await Promise.race([rejected, isStarted]);
        if (message) return { code: message.payload[0].extensions.code as string, started: index };
      }
      return undefined;
    };
    try {
      const full = { code: 'RATE_LIMITED', started: 30 };
      expect(await fill()).toEqual(full);
      closeSockets();
      await until(async () => {
        const result = await fill();
        closeSockets();
        return result?.started === 30;
      }, 'the release of all subscriptions');
    } finally {
      closeSockets();
      await small.stop();
    }
  });
});
