import { once } from 'node:events';
import { mock } from 'node:test';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket, openSocket } from '../support/sockets.ts';
import { until } from '../support/until.ts';

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

  test('P1 is disconnected by its messages and pings when more than 1 MB is unread', async () => {
    const unread = jest
      .spyOn(WebSocket.prototype, 'bufferedAmount', 'get')
      .mockImplementation(function (this: WebSocket) {
        return isServers(this) ? 1_000_001 : 0;
      });
    for (const kind of ['message', 'ping', 'pong']) {
      unread.mockClear();
      const { socket, closed } = await openSocket(shop);
      if (kind === 'message') socket.send('{"type":"ping"}');
      else socket[kind as 'ping' | 'pong']();
      expect((await closed)[0]).toBe(1006);
    }
  });

  test('P1 is disconnected when it does not respond to a ping', async () => {
    const small = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
    try {
      const answering = await connectSocket(small);
      const silent = await openSocket(
        small,
        '/graphql',
        ['graphql-transport-ws'],
        {},
        { autoPong: false },
      );
      silent.send({ type: 'connection_init' });
      await silent.next();
      const pinged = [answering, silent].map(({ socket }) => once(socket, 'ping'));
      mock.timers.tick(12_000);
      await Promise.all(pinged);
      answering.send({ type: 'ping' });
      expect(await answering.next()).toEqual({ type: 'pong' });
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
    }
    expect((await shop.rest('GET', '/api/v2/shop/products')).status).toBe(200);
    for (const socket of sockets) {
      for (let id = 0; id < 19; id++)
        expect(await socket.next()).toMatchObject({ id: String(id), type: 'error' });
    }
  });

  test('P2 the starts of an address do not wait for those of another, and count before they begin', async () => {
    const own = await new Shop({ TRUST_PROXY: '127.0.0.1' }).start();
    const openFrom = async (address: string) => {
      const headers = { 'X-Forwarded-For': address };
      const socket = await openSocket(own, '/graphql', ['graphql-transport-ws'], headers);
      socket.send({ type: 'connection_init' });
      await socket.next();
      return socket;
    };
    try {
      const [many, one] = [await openFrom('192.0.2.1'), await openFrom('192.0.2.2')];
      const fields = Array.from({ length: 400 }, (_, at) => `a${at}`).join(' ');
      const padding = 'x'.repeat(14_000);
      for (let id = 0; id < 98; id++)
        many.send({
          id: String(id),
          type: 'subscribe',
          payload: { query: `subscription { b${id} ${fields} }`, variables: { padding } },
        });
      const codes: string[] = [];
      const started = () => codes.filter((code) => code !== 'RATE_LIMITED').length;
      const answers = (async () => {
        for (let count = 0; count < 98; count++) {
          const message = await many.next();
          // The connection was closed because the test has failed.
          if (!message) return;
          codes.push(message.payload[0].extensions.code);
        }
      })();
      await until(() => codes.includes('RATE_LIMITED'), 'an answer');
      const before = started();
      one.send(invalid('0'));
      expect(await one.next()).toMatchObject({ type: 'error' });
      // Some sixty wait.
      expect(started() - before).toBeLessThan(30);
      await answers;
      // A megabyte of requests may wait.
      expect(codes.filter((code) => code === 'RATE_LIMITED').length).toBeGreaterThan(0);
      // They were rejected before others of the same address were read.
      expect(codes.indexOf('RATE_LIMITED')).toBeLessThan(
        codes.lastIndexOf('GRAPHQL_VALIDATION_FAILED'),
      );
    } finally {
      await own.stop();
    }
  });
});
