import { once } from 'node:events';
import { createClient, type Client, type ClientOptions } from 'graphql-ws';
import { WebSocket, type ClientOptions as WebSocketOptions } from 'ws';
import { EventReader } from '../../src/features/change-log/event-reader.ts';
import type { Shop } from './shop.ts';
import { until } from './until.ts';

const PROTOCOL = 'graphql-transport-ws';
const open = new Set<WebSocket>();
const clients = new Set<Client>();

/** A WebSocket to the GraphQL API, message by message. */
export interface RawSocket {
  socket: WebSocket;
  send(message: unknown): void;
  /** The next message; undefined after the connection is closed. */
  next(): Promise<any>;
  /** The code and the reason of its closure. */
  closed: Promise<[number, string]>;
}

/** Number of subscriptions to changes that have started in this process. */
let started = 0;
// oxlint-disable-next-line typescript/unbound-method -- Called with the reader.
const { subscribe } = EventReader.prototype;
EventReader.prototype.subscribe = async function (...args) {
  const subscriber = await Reflect.apply(subscribe, this, args);
  started++;
  return subscriber;
};

/** Sends a message that starts a subscription to changes. Returns once the subscription has started. */
export async function startSubscription(
  socket: RawSocket,
  id: string,
  payload: { query: string; variables?: Record<string, unknown> | undefined },
): Promise<void> {
  const before = started;
  socket.send({ id, type: 'subscribe', payload });
  await until(() => started > before, 'the start of a subscription');
}

/** Opens a WebSocket. Throws if the handshake is rejected. */
export async function openSocket(
  shop: Shop,
  path = '/graphql',
  protocol: string[] = [PROTOCOL],
  headers: Record<string, string> = {},
  options: WebSocketOptions = {},
): Promise<RawSocket> {
  const socket = new WebSocket(shop.url.replace(/^http/, 'ws') + path, protocol, {
    headers,
    ...options,
  });
  open.add(socket);
  const messages: unknown[] = [];
  let wake = (): void => undefined;
  socket.on('message', (data: Buffer) => {
    shop.recorder.answer(data.toString());
    messages.push(JSON.parse(data.toString()));
    wake();
  });
  const closed = new Promise<[number, string]>((done) =>
    socket.once('close', (code, reason) => {
      done([code, reason.toString()]);
      wake();
    }),
  );
  await once(socket, 'open');
  return {
    socket,
    closed,
    send: (message) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async next() {
      while (messages.length === 0 && socket.readyState !== WebSocket.CLOSED)
        await new Promise<void>((done) => (wake = done));
      return messages.shift();
    },
  };
}

/** Opens a WebSocket and sends `connection_init`. */
export async function connectSocket(
  shop: Shop,
  payload: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<RawSocket> {
  const socket = await openSocket(shop, '/graphql', [PROTOCOL], headers);
  socket.send({ type: 'connection_init', payload });
  const answer = (await socket.next()) as { type: string } | undefined;
  if (answer?.type !== 'connection_ack')
    throw new Error(`no connection_ack: ${JSON.stringify(answer)}`);
  return socket;
}

/** A client of graphql-ws. */
export function clientOf(shop: Shop, options: Partial<ClientOptions> = {}): Client {
  const client = createClient({
    url: `${shop.url.replace(/^http/, 'ws')}/graphql`,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    ...options,
  });
  clients.add(client);
  return client;
}

/** Closes all open clients and sockets. */
export function closeSockets(): void {
  for (const client of clients) void client.dispose();
  for (const socket of open) socket.terminate();
  clients.clear();
  open.clear();
}
