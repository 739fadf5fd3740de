import { once } from 'node:events';
import { mock } from 'node:test';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { inFlight } from '../../src/http/in-flight.ts';
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
  test('P2 are rejected by the load at their arrival, not at their start', async () => {
    const socket = await connectSocket(shop);
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

  test('P2 credentials of connection_init are checked for at most four sockets of an address at a time', async () => {
    const token = shop.tokenOf(await shop.makeUser());
    const sockets = await Promise.all(Array.from({ length: 12 }, () => openSocket(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets)
        socket.send({ type: 'connection_init', payload: { Authorization: `Bearer ${token}` } });
      for (const socket of sockets)
        expect(await socket.next()).toMatchObject({ type: 'connection_ack' });
      expect(sizes).toHaveLength(12);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
      await until(() => inFlight.size === 0, 'an empty queue');
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 are queued and counted as requests, one at a time per socket', async () => {
    const sockets = [await connectSocket(shop), await connectSocket(shop)];
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets) {
        for (let id = 0; id < 19; id++) socket.send(invalid(String(id)));
        socket.send({ id: 'last', type: 'subscribe', payload: { query: PRODUCTS } });
        socket.send({ type: 'ping' });
      }
      for (const socket of sockets) {
        for (let id = 0; id < 19; id++)
          expect(await socket.next()).toMatchObject({ id: String(id), type: 'error' });
        expect(await socket.next()).toEqual({ type: 'pong' });
      }
      expect(sizes).toHaveLength(40);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(2);
      await until(() => inFlight.size === 0, 'an empty queue');
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 start for at most four sockets of an address at a time', async () => {
    const sockets = await Promise.all(Array.from({ length: 12 }, () => connectSocket(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    const sizes = sizesWhenAdded();
    try {
      for (const socket of sockets)
        for (let id = 0; id < 5; id++)
          socket.send({ id: String(id), type: 'subscribe', payload: { query: PRODUCTS } });
      for (const socket of sockets) socket.send({ type: 'ping' });
      for (const socket of sockets) expect(await socket.next()).toEqual({ type: 'pong' });
      expect(sizes).toHaveLength(60);
      expect(Math.max(...sizes)).toBe(4);
    } finally {
      jest.restoreAllMocks();
    }
  });

  test('P2 leave the queue once they are rejected, however late the client reads the error', async () => {
    const sockets = await Promise.all(Array.from({ length: 6 }, () => connectSocket(shop)));
    await until(() => inFlight.size === 0, 'an empty queue');
    let unread = 0;
    const send: unknown = Reflect.get(WebSocket.prototype, 'send');
    jest.spyOn(WebSocket.prototype, 'send').mockImplementation(function (
      this: WebSocket,
      ...args: unknown[]
    ) {
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

  test('P2 are rejected while the server is overloaded, and the socket stays open', async () => {
    const socket = await connectSocket(shop);
    await until(() => inFlight.size === 0, 'an empty queue');
    const { max } = inFlight;
    inFlight.max = 0;
    socket.send({ id: '1', type: 'subscribe', payload: { query: PRODUCTS } });
    expect(await socket.next()).toMatchObject({
      id: '1',
      type: 'error',
      payload: [{ extensions: { code: 'UNAVAILABLE' } }],
    });
    inFlight.max = max;
    socket.send(invalid('2'));
    expect(await socket.next()).toMatchObject({
      id: '2',
      type: 'error',
      payload: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
    });
  });
});

/** Returns a list that receives the queue size at each addition to the queue. */
function sizesWhenAdded(): number[] {
  const sizes: number[] = [];
  const add = inFlight.add.bind(inFlight);
  jest.spyOn(inFlight, 'add').mockImplementation((ticket) => {
    add(ticket);
    sizes.push(inFlight.size);
  });
  return sizes;
}
