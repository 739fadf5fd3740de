import { expect } from './jest.ts';
import { closeStreams, openSubscription } from './events.ts';
import type { Answer, Shop } from './shop.ts';
import { closeSockets, openSocket, startSubscription } from './sockets.ts';
import { until } from './until.ts';

type Headers = Record<string, string>;

/**
 * One way into the shop, for a suite that runs over all of them. Outcomes have the same words
 * everywhere: a username, or the message of the error.
 */
export interface WayIn {
  name: string;
  /** Sends a request with these headers. Returns the username of the caller, or the error. */
  caller: (shop: Shop, headers: Headers) => Promise<string>;
  /**
   * Sends an operation that selects these fields of a product. Returns the error code, or an empty
   * text. REST has no operations.
   */
  select?: (shop: Shop, fields: string) => Promise<string>;
  /** Opens a subscription. Returns a function that waits for the code of the error that ends it. */
  watch?: (shop: Shop, headers: Headers) => Promise<() => Promise<string>>;
  /** Sends a request of about this many bytes. Returns the status. */
  send?: (shop: Shop, bytes: number) => Promise<number>;
}

/** The outcome of credentials that are absent, where credentials are needed. */
export const ANONYMOUS = 'Not authenticated';

/** The code with which the server closes a WebSocket whose credentials have ended. */
const FORBIDDEN = 4403;
const CALLER = '{ me { username } users(first: 1) { totalCount } }';
const WATCH = 'subscription { productChanged { pk } }';
const queryOf = (fields: string): string => `{ products { nodes { ${fields} } } }`;
const subscriptionOf = (fields: string): string => `subscription { productChanged { ${fields} } }`;
const codeIn = ({ body }: Answer): string => body.errors?.[0].extensions.code ?? '';
const callerIn = ({ body }: Answer): string =>
  body.errors?.[0].message ?? body.data.me?.username ?? ANONYMOUS;
const byGet = (shop: Shop, query: string, headers: Headers = {}): Promise<Answer> =>
  shop.rest('GET', `/graphql?${new URLSearchParams({ query }).toString()}`, { headers });

/** Returns the user in the log line of the only subscription, after its end. */
async function subscriberOf(shop: Shop): Promise<string> {
  const find = () => shop.logged.find((line) => line.includes('"type":"subscription"'));
  await until(() => find() !== undefined, 'the log line of the subscription');
  const { user } = JSON.parse(find() ?? '') as { user: string | null };
  return user ?? ANONYMOUS;
}

export const WAYS_IN: readonly WayIn[] = [
  {
    name: 'REST',
    async caller(shop, headers) {
      const { body } = await shop.rest('GET', '/users/me/', { headers });
      return body.username ?? body.detail;
    },
    send: async (shop, bytes) =>
      (await shop.rest('POST', '/session/login', { json: 'x'.repeat(bytes) })).status,
  },
  {
    name: 'GraphQL by POST',
    caller: async (shop, headers) => callerIn(await shop.graphql(CALLER, {}, { headers })),
    select: async (shop, fields) => codeIn(await shop.graphql(queryOf(fields))),
    send: async (shop, bytes) => (await shop.graphql(`{ me { id } } #${'x'.repeat(bytes)}`)).status,
  },
  {
    name: 'GraphQL by GET',
    caller: async (shop, headers) => callerIn(await byGet(shop, CALLER, headers)),
    select: async (shop, fields) => codeIn(await byGet(shop, queryOf(fields))),
  },
  {
    name: 'WebSocket',
    async caller(shop, headers) {
      shop.logged.length = 0;
      const socket = await openSocket(shop, '/graphql', undefined, headers);
      try {
        socket.send({ type: 'connection_init' });
        if ((await socket.next()) === undefined) return (await socket.closed)[1];
        await startSubscription(socket, 'a', { query: WATCH });
        socket.send({ id: 'a', type: 'complete' });
        return await subscriberOf(shop);
      } finally {
        closeSockets();
      }
    },
    async watch(shop, headers) {
      const socket = await openSocket(shop, '/graphql', undefined, headers);
      socket.send({ type: 'connection_init' });
      await socket.next();
      await startSubscription(socket, 'a', { query: WATCH });
      return async () => {
        const { payload } = await socket.next();
        expect((await socket.closed)[0]).toBe(FORBIDDEN);
        return payload[0].extensions.code;
      };
    },
    async select(shop, fields) {
      const socket = await openSocket(shop);
      try {
        socket.send({ type: 'connection_init' });
        await socket.next();
        socket.send({ id: 'a', type: 'subscribe', payload: { query: subscriptionOf(fields) } });
        // Subscriptions start in order, so that an accepted one lets this error come first.
        socket.send({ id: 'b', type: 'subscribe', payload: { query: '{' } });
        const { id, payload } = await socket.next();
        return id === 'a' ? payload[0].extensions.code : '';
      } finally {
        closeSockets();
      }
    },
  },
  {
    name: 'server-sent events',
    async caller(shop, headers) {
      shop.logged.length = 0;
      const stream = await openSubscription(shop, WATCH, {}, { headers });
      try {
        if (stream.status !== 200) return (await stream.next())?.data.errors[0].message;
      } finally {
        closeStreams();
      }
      return subscriberOf(shop);
    },
    async watch(shop, headers) {
      const stream = await openSubscription(shop, WATCH, {}, { headers });
      return async () => {
        const { data } = (await stream.next()) ?? {};
        expect(await stream.next()).toEqual({ event: 'complete', data: null });
        return data.errors[0].extensions.code;
      };
    },
    async select(shop, fields) {
      const stream = await openSubscription(shop, subscriptionOf(fields));
      try {
        // Without an error, the first event is that of the next product.
        await shop.makeProduct();
        return (await stream.next())?.data.errors?.[0].extensions.code ?? '';
      } finally {
        closeStreams();
      }
    },
    send: async (shop, bytes) =>
      (await openSubscription(shop, `${WATCH} #${'x'.repeat(bytes)}`)).status,
  },
];
