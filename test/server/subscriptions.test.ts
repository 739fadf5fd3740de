import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { closeStreams, listen, openStream } from '../support/events.ts';
import { insertingMany } from '../support/many-products.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, greet } from '../support/sockets.ts';

afterEach(() => {
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
  const shop = new Shop({ TRUSTED_DOCUMENTS: manifest, TRUSTED_DOCUMENTS_MODE: 'enforce', GRAPHQL_EXPLORER: 'false' });
  const persistedQuery = { version: 1, sha256Hash: id };

  beforeAll(() => shop.start());
  beforeEach(() => shop.empty());
  afterAll(async () => {
    await shop.stop();
    rmSync(folder, { recursive: true });
  });

  test.each([
    ['its text', { query: TRUSTED }],
    ['another spelling of it', { query: 'subscription Changes { productChanged { pk } }' }],
    ['its id', { documentId: id }],
    ['its hash', { extensions: { persistedQuery } }],
  ])('one by %s is served, both ways', async (_name, json) => {
    const stream = await listen(shop, '', {}, { json });
    const socket = await greet(shop);
    socket.send({ id: '1', type: 'subscribe', payload: { query: '', ...json } });
    socket.send({ type: 'ping' });
    expect(await socket.next()).toEqual({ type: 'pong' });
    const { pk } = await shop.makeProduct();
    const data = { productChanged: { pk: String(pk) } };
    expect((await stream.next())?.data).toEqual({ data });
    expect(await socket.next()).toEqual({ id: '1', type: 'next', payload: { data } });
  });

  test.each([
    ['that is not there', { query: OTHER }, 'DOCUMENT_NOT_TRUSTED'],
    ['by an id that is not there', { documentId: 'nothing' }, 'PERSISTED_QUERY_NOT_FOUND'],
    ['by an id that is no text', { documentId: 1 }, 'BAD_REQUEST'],
  ])('one %s is refused, both ways', async (_name, json, code) => {
    const stream = await listen(shop, '', {}, { json });
    expect([stream.status, (await stream.next())?.data.errors[0].extensions.code]).toEqual([400, code]);
    const socket = await greet(shop);
    socket.send({ id: '1', type: 'subscribe', payload: { query: '', ...json } });
    expect(await socket.next()).toMatchObject({ id: '1', type: 'error', payload: [{ extensions: { code } }] });
  });

  test('by GET as well', async () => {
    const ask = (search: Record<string, string>) =>
      openStream(`${shop.url}/graphql?${new URLSearchParams(search).toString()}`, { headers: { Accept: 'text/event-stream' } });
    expect((await ask({ documentId: id })).status).toBe(200);
    expect((await ask({ query: OTHER })).status).toBe(400);
  });
});

describe('a client that reads too slowly', () => {
  /** As much of each change as may be asked for, so that the network's buffers are soon full. */
  const SLOW = `subscription { productChanged { cursor ${Array.from({ length: 15 }, (_, n) => `p${n}: product { name }`).join(' ')} } }`;
  const QUICK = 'subscription { productChanged { pk } }';
  const AT_ONCE = 1_000;

  const shop = useShop();

  beforeEach(async () => {
    await shop.sql(insertingMany(AT_ONCE, 1, 'x'.repeat(240)));
  });

  /** Changes products until somebody is let go; another reads along all the while. */
  const changeUntilLetGo = async () => {
    const quick = await listen(shop, QUICK);
    while (!shop.logged.some((line) => line.includes('subscription.behind'))) {
      await shop.sql('update product set price = price + 1');
      for (let read = 0; read < AT_ONCE; read++) expect((await quick.next())?.event).toBe('next');
    }
  };

  test('of events is told that it fell behind, and the stream ends; it goes on after the last that it has', async () => {
    const slow = await listen(shop, SLOW);
    await changeUntilLetGo();
    let [before, last] = [await slow.next(), await slow.next()];
    for (let next = await slow.next(); next?.event === 'next'; next = await slow.next()) [before, last] = [last, next];
    expect(last?.data).toEqual({ errors: [{ message: expect.stringContaining('too far behind'), extensions: { code: 'FELL_BEHIND' } }] });
    const again = await listen(shop, 'subscription ($after: String) { productChanged(after: $after) { cursor } }', { after: before?.id });
    expect((await again.next())?.event).toBe('next');
  });

  test('of a WebSocket is told so, and the socket is closed', async () => {
    const slow = await greet(shop);
    slow.send({ id: '1', type: 'subscribe', payload: { query: SLOW } });
    slow.send({ type: 'ping' });
    await slow.next();
    slow.socket.pause();
    await changeUntilLetGo();
    slow.socket.resume();
    let last;
    for (let next = await slow.next(); next; next = await slow.next()) last = next;
    expect(last).toMatchObject({ id: '1', type: 'error', payload: [{ extensions: { code: 'FELL_BEHIND' } }] });
    expect((await slow.closed)[0]).toBe(4410);
  });
});
