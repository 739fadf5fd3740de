import { once } from 'node:events';
import { mock } from 'node:test';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, openSocket } from '../support/sockets.ts';

const shop = useShop();
const PRODUCTS = 'subscription { productChanged { pk } }';
const invalid = (id: string) => ({
  id,
  type: 'subscribe',
  payload: { query: `subscription { a${id} }` },
});

afterEach(closeSockets);

describe('P1 a WebSocket that never reads', () => {
  const isServers = (socket: WebSocket): boolean => Reflect.get(socket, '_isServer') === true;

  afterEach(() => void jest.restoreAllMocks());

  test.each(['ping of WebSocket', 'ping of the protocol'])(
    'P1 has at most one queued pong: %s',
    async (kind) => {
      const socket = await connectSocket(shop);
      let waiting = 0;
      const [send, pong]: unknown[] = ['send', 'pong'].map((name) =>
        Reflect.get(WebSocket.prototype, name),
      );
      jest.spyOn(WebSocket.prototype, 'send').mockImplementation(function (
        this: WebSocket,
        ...args: unknown[]
      ) {
        if (isServers(this) && String(args[0]).includes('"pong"')) waiting++;
        else Reflect.apply(send as () => void, this, args);
      });
      jest.spyOn(WebSocket.prototype, 'pong').mockImplementation(function (
        this: WebSocket,
        ...args: unknown[]
      ) {
        if (isServers(this)) waiting++;
        else Reflect.apply(pong as () => void, this, args);
      });
      for (let count = 0; count < 20; count++) {
        if (kind === 'ping of WebSocket') socket.socket.ping('x'.repeat(100));
        else socket.send({ type: 'ping', payload: { padding: 'x'.repeat(7_000) } });
      }
      socket.send(invalid('1'));
      expect(await socket.next()).toMatchObject({ id: '1', type: 'error' });
      expect(waiting).toBe(1);
    },
  );

  test('P1 is disconnected when more than 1 MB is queued, and logged once per network', async () => {
    const socket = await connectSocket(shop);
    const unsent = jest
      .spyOn(WebSocket.prototype, 'bufferedAmount', 'get')
      .mockImplementation(function (this: WebSocket) {
        return isServers(this) ? 1_000_001 : 0;
      });
    socket.send(invalid('1'));
    expect((await socket.closed)[0]).toBe(1006);
    unsent.mockReturnValue(1_000_000);
    const other = await connectSocket(shop);
    other.send(invalid('1'));
    expect(await other.next()).toMatchObject({ type: 'error' });
    expect(shop.logged.filter((line) => line.includes('subscription.slow_consumer'))).toHaveLength(
      1,
    );
  });

  test('P1 a pong without a ping does not prove that the client is alive', async () => {
    const small = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const answering = await openSocket(small);
      const pinged = new Promise((done) => answering.socket.once('ping', done));
      const silent = await openSocket(
        small,
        '/graphql',
        ['graphql-transport-ws'],
        {},
        { autoPong: false },
      );
      const silentPing = new Promise<Buffer>((done) => silent.socket.once('ping', done));
      mock.timers.tick(12_000);
      await pinged;
      const nonce = await silentPing;
      silent.socket.pong(Buffer.from(nonce.map((byte) => byte ^ 1)));
      silent.socket.pong();
      for (const socket of [silent, answering]) {
        socket.send({ type: 'ping' });
        expect(await socket.next()).toEqual({ type: 'pong' });
      }
      mock.timers.tick(12_000);
      expect((await silent.closed)[0]).toBe(1006);
      answering.send({ type: 'ping' });
      expect(await answering.next()).toEqual({ type: 'pong' });
    } finally {
      mock.timers.reset();
      closeSockets();
      await small.stop();
    }
  });

  test.each(['ping', 'pong'] as const)(
    'P1 too many control frames close the connection: %s',
    async (frame) => {
      const socket = await openSocket(shop);
      for (let count = 0; count < 200; count++) socket.socket[frame]();
      expect((await socket.closed)[0]).toBe(1008);
    },
  );
});

describe('P21 a fragmented message', () => {
  const PING = JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(200) } });

  test.each([
    [100, { type: 'pong' }],
    [101, undefined],
  ])('P21 has at most 100 fragments: %s', async (count, answer) => {
    const socket = await connectSocket(shop);
    for (let index = 0; index < count - 1; index++)
      socket.socket.send(PING.charAt(index), { fin: false });
    socket.socket.send(PING.slice(count - 1), { fin: true });
    const message = await socket.next();
    if (answer) expect(message).toMatchObject(answer);
    else expect(message).toBeUndefined();
    if (!answer) expect((await socket.closed)[0]).toBe(1008);
  });

  test('P21 ends the connection if it is incomplete from one ping to the next', async () => {
    const small = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const slow = await connectSocket(small);
      const endless = await connectSocket(small);
      /** Passes one ping interval, and waits until both sockets have received the ping. */
      const passPing = async () => {
        const pings = Promise.all(
          [slow, endless].map(({ socket }) =>
            Promise.race([once(socket, 'ping'), once(socket, 'close')]),
          ),
        );
        mock.timers.tick(12_000);
        await pings;
      };
      for (let round = 0; round < 3; round++) {
        slow.socket.send('{"type":', { fin: false });
        if (round === 0) endless.socket.send('{"type":', { fin: false });
        await passPing();
        slow.socket.send('"ping"}', { fin: true });
        expect(await slow.next()).toEqual({ type: 'pong' });
      }
      endless.socket.send('"ping"}', { fin: true });
      expect(await endless.next()).toBeUndefined();
    } finally {
      mock.timers.reset();
      closeSockets();
      await small.stop();
    }
  });
});

describe('P2 subscription requests', () => {
  test('P2 many credentials and starts of one address leave no other request waiting', async () => {
    const token = shop.tokenOf(await shop.makeUser());
    const sockets = await Promise.all(Array.from({ length: 12 }, () => openSocket(shop)));
    for (const socket of sockets)
      socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
    for (const socket of sockets)
      expect(await socket.next()).toMatchObject({ type: 'connection_ack' });
    for (const socket of sockets) {
      for (let id = 0; id < 19; id++) socket.send(invalid(String(id)));
      socket.send({ id: 'last', type: 'subscribe', payload: { query: PRODUCTS } });
      socket.send({ type: 'ping' });
    }
    expect((await shop.rest('GET', '/api/v2/shop/products')).status).toBe(200);
    for (const socket of sockets) {
      for (let id = 0; id < 19; id++)
        expect(await socket.next()).toMatchObject({ id: String(id), type: 'error' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    }
  });
});
