import { once } from 'node:events';
import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { closed, useProxiedShop } from '../support/behind-nginx.ts';
import { memoryAddedBy } from '../support/resident.ts';
import { until } from '../support/until.ts';

// Attacks on HTTP/2, which ends at nginx.

const shop = useProxiedShop([['  send_timeout 30s;', '  send_timeout 2s;']]);

const { NGHTTP2_CANCEL } = constants;
/** Maximum growth of the instance by an attack, in MiB. */
const MAX_ADDED = 64;
/** More than http2_max_concurrent_streams, and what nginx keeps open. */
const MAX_UPSTREAM = 70;
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const [HEADERS, SETTINGS, PING, CONTINUATION] = [1, 4, 6, 9];
const [END_STREAM, END_HEADERS] = [1, 4];

const sessions = new Set<ClientHttp2Session>();
afterEach(() => {
  for (const session of sessions) session.destroy();
  sessions.clear();
});

describe('HTTP/2', () => {
  test('requests of a connection are answered, and limited like others', async () => {
    const session = await open();
    const statuses = await Promise.all(Array.from({ length: 300 }, () => statusOf(session)));
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    await shop.expectServed();
  });

  test('a rapid reset of a thousand streams leaves the instance free', async () => {
    const added = await memoryAddedBy(shop.server, async () => {
      const session = await open();
      for (let count = 0; count < 1_000 && !session.destroyed; count++) {
        const stream = session.request({ ':path': '/api/v2/shop/products?limit=100' });
        stream.on('error', () => undefined).close(NGHTTP2_CANCEL);
        if (count % 100 === 0) await shop.expectServed();
      }
      expect(shop.upstreamConnections()).toBeLessThanOrEqual(MAX_UPSTREAM);
    });
    expect(added).toBeLessThan(MAX_ADDED);
    await shop.expectServed();
    await until(() => shop.upstreamConnections() === 0, 'the end of all requests');
  });

  test('H9 streams whose client opens no window end, and the instance is free', async () => {
    const session = await open({ settings: { initialWindowSize: 0 } });
    for (let count = 0; count < 50; count++)
      session.request({ ':path': '/api/v2/shop/products' }).on('error', () => undefined);
    await shop.expectServed();
    await until(() => shop.upstreamConnections() === 0, 'the end of all requests');
    await shop.expectServed();
  });

  test('H5 endless CONTINUATION frames end the connection', async () => {
    const field = literal('x-a', 'b'.repeat(100)).toString('binary').repeat(10);
    const socket = await shop.open(undefined, ['h2']);
    socket.resume();
    socket.write(PREFACE);
    socket.write(frame(SETTINGS, 0, 0));
    // :method GET, :scheme https, :path /, and :authority.
    const head = Buffer.concat([Buffer.from([0x82, 0x87, 0x84]), literal(':authority', 'shop')]);
    socket.write(frame(HEADERS, END_STREAM, 1, head));
    const more = frame(CONTINUATION, 0, 1, Buffer.from(field, 'binary'));
    const send = () => void (socket.writable && socket.write(more, () => setImmediate(send)));
    send();
    await closed(socket);
    await shop.expectServed();
  });

  test.each([
    ['PING', frame(PING, 0, 0, Buffer.alloc(8))],
    ['SETTINGS', frame(SETTINGS, 0, 0, Buffer.from([0, 3, 0, 0, 0, 1]))],
    ['empty CONTINUATION', frame(CONTINUATION, END_HEADERS, 1)],
  ])('a flood of frames ends the connection: %s', async (_what, repeated) => {
    const socket = await shop.open(undefined, ['h2']);
    socket.resume();
    socket.write(PREFACE);
    socket.write(frame(SETTINGS, 0, 0));
    const piece = Buffer.concat(Array.from({ length: 1_000 }, () => repeated));
    const send = () => void (socket.writable && socket.write(piece, () => setImmediate(send)));
    send();
    await shop.expectServed();
    await closed(socket);
    await shop.expectServed();
  });
});

async function open(options = {}): Promise<ClientHttp2Session> {
  const socket = await shop.open(undefined, ['h2']);
  const session = connect(shop.nginx.url, { ...options, createConnection: () => socket });
  sessions.add(session.on('error', () => undefined));
  // With the maximum number of streams.
  await once(session, 'remoteSettings');
  return session;
}

function statusOf(session: ClientHttp2Session): Promise<number> {
  return new Promise((done, fail) => {
    const stream = session.request({ ':path': '/livez' });
    stream.on('response', ({ ':status': status }) => done(status ?? 0));
    stream.on('error', fail).resume();
  });
}

/** A frame (RFC 9113, 4.1). */
function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header that is not indexed (RFC 7541, 6.2.2). */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}
