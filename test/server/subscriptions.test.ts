import { createHash } from 'node:crypto';
import { ActiveSubscription } from '../../src/graphql/subscriptions/subscription.ts';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  jest,
  test,
} from '../support/jest.ts';
import { closeStreams, openSubscription, openStream } from '../support/events.ts';
import { insertingMany } from '../support/many-products.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, startSubscription } from '../support/sockets.ts';

afterEach(() => {
  jest.restoreAllMocks();
  closeStreams();
  closeSockets();
});

describe('trusted documents', () => {
  const TRUSTED = 'subscription Changes {\n  productChanged {\n    pk\n  }\n}';
  const OTHER = 'subscription { productChanged { kind } }';
  const id = createHash('sha256').update(TRUSTED).digest('hex');
  const folder = mkdtempSync(join(tmpdir(), 'shopfront-subscriptions-'));
  const manifest = join(folder, 'manifest.json');
  writeFileSync(manifest, JSON.stringify({ [id]: TRUSTED }));
  const shop = new Shop({
    TRUSTED_DOCUMENTS: manifest,
    TRUSTED_DOCUMENTS_MODE: 'enforce',
    GRAPHQL_EXPLORER: 'false',
  });
  const persistedQuery = { version: 1, sha256Hash: id };

  beforeAll(() => shop.start());
  beforeEach(() => shop.empty());
  afterAll(async () => {
    await shop.stop();
    rmSync(folder, { recursive: true });
  });

  test.each([
    ['its text', { query: TRUSTED }],
    ['its id', { documentId: id }],
    ['its hash', { extensions: { persistedQuery } }],
  ])('a subscription by %s is served over both transports', async (_name, json) => {
    const stream = await openSubscription(shop, '', {}, { json });
    const socket = await connectSocket(shop);
    await startSubscription(socket, '1', { query: '', ...json });
    const { pk } = await shop.makeProduct();
    const data = { productChanged: { pk: String(pk) } };
    expect((await stream.next())?.data).toEqual({ data });
    expect(await socket.next()).toEqual({ id: '1', type: 'next', payload: { data } });
  });

  test.each([
    ['that is not in the manifest', { query: OTHER }, 'DOCUMENT_NOT_TRUSTED'],
    ['that differs in blanks', { query: TRUSTED.replaceAll('\n', ' ') }, 'DOCUMENT_NOT_TRUSTED'],
    ['by an unknown id', { documentId: 'nothing' }, 'PERSISTED_QUERY_NOT_FOUND'],
    ['by an id that is not a string', { documentId: 1 }, 'BAD_REQUEST'],
  ])('a subscription %s is rejected over both transports', async (_name, json, code) => {
    const stream = await openSubscription(shop, '', {}, { json });
    expect([stream.status, (await stream.next())?.data.errors[0].extensions.code]).toEqual([
      400,
      code,
    ]);
    const socket = await connectSocket(shop);
    socket.send({ id: '1', type: 'subscribe', payload: { query: '', ...json } });
    expect(await socket.next()).toMatchObject({
      id: '1',
      type: 'error',
      payload: [{ extensions: { code } }],
    });
  });

  test('a subscription by GET is checked, too', async () => {
    const open = (search: Record<string, string>) =>
      openStream(`${shop.url}/graphql?${new URLSearchParams(search).toString()}`, {
        headers: { Accept: 'text/event-stream' },
      });
    expect((await open({ documentId: id })).status).toBe(200);
    expect((await open({ query: OTHER })).status).toBe(400);
  });
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

  /** Changes products until a slow consumer is disconnected, while another client keeps reading. */
  const changeUntilDisconnected = async () => {
    const quick = await openSubscription(shop, QUICK);
    const end = jest.spyOn(ActiveSubscription.prototype, 'end');
    while (!end.mock.calls.some(([error]) => error?.code === 'SLOW_CONSUMER')) {
      await shop.sql('update product set price = price + 1');
      for (let read = 0; read < PRODUCT_COUNT; read++)
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
