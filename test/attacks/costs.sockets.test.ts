import { once } from 'node:events';
import { mock } from 'node:test';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { inFlight } from '../../src/http/in-flight.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, greet, openSocket } from '../support/sockets.ts';
import { until } from '../support/until.ts';

const shop = useShop();
const PRODUCTS = 'subscription { productChanged { pk } }';
const invalid = (id: string) => ({ id, type: 'subscribe', payload: { query: `subscription { a${id} }` } });

afterEach(closeSockets);

describe('P1 a WebSocket that does not read', () => {
  const isServers = (socket: WebSocket): boolean => Reflect.get(socket, '_isServer') === true;

  afterEach(() => void jest.restoreAllMocks());

  test.each(['ping of WebSocket', 'ping of the protocol'])('P1 one pong at most waits for it: %s', async (kind) => {
    const socket = await greet(shop);
    let waiting = 0;
    const [send, pong]: unknown[] = ['send', 'pong'].map((name) => Reflect.get(WebSocket.prototype, name));
    jest.spyOn(WebSocket.prototype, 'send').mockImplementation(function (this: WebSocket, ...args: unknown[]) {
      if (isServers(this) && String(args[0]).includes('"pong"')) waiting++;
      else Reflect.apply(send as () => void, this, args);
    });
    jest.spyOn(WebSocket.prototype, 'pong').mockImplementation(function (this: WebSocket, ...args: unknown[]) {
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
  });

  test('P1 it is disconnected when more than 1 MB waits for it, and the log names its network', async () => {
    const socket = await greet(shop);
    const unsent = jest.spyOn(WebSocket.prototype, 'bufferedAmount', 'get').mockImplementation(function (this: WebSocket) {
      return isServers(this) ? 1_000_001 : 0;
    });
    socket.send(invalid('1'));
    expect((await socket.closed)[0]).toBe(1006);
    unsent.mockReturnValue(1_000_000);
    const other = await greet(shop);
    other.send(invalid('1'));
    expect(await other.next()).toMatchObject({ type: 'error' });
    expect(shop.logged.filter((line) => line.includes('subscription.behind'))).toHaveLength(1);
  });

  test('P1 a pong that answers no ping is no sign of life', async () => {
    const small = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const answering = await openSocket(small);
      const pinged = new Promise((done) => answering.socket.once('ping', done));
      const silent = await openSocket(small, '/graphql', ['graphql-transport-ws'], {}, { autoPong: false });
      const asked = new Promise<Buffer>((done) => silent.socket.once('ping', done));
      mock.timers.tick(12_000);
      await pinged;
      const nonce = await asked;
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

  test.each(['ping', 'pong'] as const)('P1 more frames than anyone needs end it: %s', async (frame) => {
    const socket = await openSocket(shop);
    for (let count = 0; count < 200; count++) socket.socket[frame]();
    expect((await socket.closed)[0]).toBe(1008);
  });
});

describe('P21 a message in pieces', () => {
  const PING = JSON.stringify({ type: 'ping', payload: { text: 'x'.repeat(200) } });

  test.each([
    [100, { type: 'pong' }],
    [101, undefined],
  ])('P21 has 100 fragments at most: %s', async (count, answer) => {
    const socket = await greet(shop);
    for (let index = 0; index < count - 1; index++) socket.socket.send(PING.charAt(index), { fin: false });
    socket.socket.send(PING.slice(count - 1), { fin: true });
    const told = await socket.next();
    if (answer) expect(told).toMatchObject(answer);
    else expect(told).toBeUndefined();
    if (!answer) expect((await socket.closed)[0]).toBe(1008);
  });

  test('P21 whose end does not come from one ping to the next ends the connection', async () => {
    const small = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const slow = await greet(small);
      const endless = await greet(small);
      /** Lets a beat pass, until both have answered its ping. */
      const beat = async () => {
        const pings = Promise.all([slow, endless].map(({ socket }) => Promise.race([once(socket, 'ping'), once(socket, 'close')])));
        mock.timers.tick(12_000);
        await pings;
      };
      for (let round = 0; round < 3; round++) {
        slow.socket.send('{"type":', { fin: false });
        if (round === 0) endless.socket.send('{"type":', { fin: false });
        await beat();
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

describe('P2 subscriptions that are asked for', () => {
  test('P2 are rejected by what there is when they arrive, and not when their turn comes', async () => {
    const socket = await greet(shop);
    const { max } = inFlight;
    const add = inFlight.add.bind(inFlight);
    jest.spyOn(inFlight, 'add').mockImplementation((ticket) => {
      inFlight.max = 0;
      add(ticket);
    });
    try {
      socket.send({ id: '1', type: 'subscribe', payload: { query: PRODUCTS } });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    } finally {
      jest.restoreAllMocks();
      inFlight.max = max;
    }
  });

  test('P2 and credentials of connection_init are looked up in turn, four of an address at a time', async () => {
    const token = shop.tokenOf(await shop.makeUser());
    const sockets = await Promise.all(Array.from({ length: 12 }, () => openSocket(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets) socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
      for (const socket of sockets) expect(await socket.next()).toMatchObject({ type: 'connection_ack' });
      expect(sizes).toHaveLength(12);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
      await until(() => inFlight.size === 0, 'an empty queue');
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 are queued and counted as requests, one at a time of each socket', async () => {
    const sockets = [await greet(shop), await greet(shop)];
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets) {
        for (let id = 0; id < 19; id++) socket.send(invalid(String(id)));
        socket.send({ id: 'last', type: 'subscribe', payload: { query: PRODUCTS } });
        socket.send({ type: 'ping' });
      }
      for (const socket of sockets) {
        for (let id = 0; id < 19; id++) expect(await socket.next()).toMatchObject({ id: String(id), type: 'error' });
        expect(await socket.next()).toEqual({ type: 'pong' });
      }
      expect(sizes).toHaveLength(40);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(2);
      await until(() => inFlight.size === 0, 'an empty queue');
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 begin for four sockets of an address at a time, so that others wait for no more', async () => {
    const sockets = await Promise.all(Array.from({ length: 12 }, () => greet(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets)
        for (let id = 0; id < 5; id++) socket.send({ id: String(id), type: 'subscribe', payload: { query: PRODUCTS } });
      for (const socket of sockets) socket.send({ type: 'ping' });
      for (const socket of sockets) expect(await socket.next()).toEqual({ type: 'pong' });
      expect(sizes).toHaveLength(60);
      expect(Math.max(...sizes)).toBe(4);
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 hold no place of the queue once they are refused, however late the client reads why', async () => {
    const sockets = await Promise.all(Array.from({ length: 6 }, () => greet(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    let unread = 0;
    const send: unknown = Reflect.get(WebSocket.prototype, 'send');
    jest.spyOn(WebSocket.prototype, 'send').mockImplementation(function (this: WebSocket, ...args: unknown[]) {
      if (String(args[0]).includes('"error"')) unread++;
      else Reflect.apply(send as () => void, this, args);
    });
    try {
      for (const socket of sockets) socket.send(invalid('1'));
      await until(() => unread === sockets.length, 'an error for each');
      expect(inFlight.size).toBe(0);
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 are rejected while the server is overloaded, and the socket goes on', async () => {
    const socket = await greet(shop);
    await until(() => inFlight.size === 0, 'an empty queue');
    const { max } = inFlight;
    inFlight.max = 0;
    socket.send({ id: '1', type: 'subscribe', payload: { query: PRODUCTS } });
    expect(await socket.next()).toMatchObject({ id: '1', type: 'error', payload: [{ extensions: { code: 'UNAVAILABLE' } }] });
    inFlight.max = max;
    socket.send(invalid('2'));
    expect(await socket.next()).toMatchObject({ id: '2', type: 'error', payload: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] });
  });
});

/** Returns the sizes of the queue, each noted when a request or subscription has been added. */
function sizesWhenAdded(): number[] {
  const sizes: number[] = [];
  const add = inFlight.add.bind(inFlight);
  jest.spyOn(inFlight, 'add').mockImplementation((ticket) => {
    add(ticket);
    sizes.push(inFlight.size);
  });
  return sizes;
}
