import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { load, startLoad, timesOf, wire } from '../support/open-load.ts';
import type { RunningServer } from '../support/process.ts';
import { insertingMany } from '../support/many-products.ts';
import { memoryAddedBy } from '../support/resident.ts';
import type { DatabaseKind, Fault, Figures, FaultContext } from './fault.ts';
import { addProducts, makeDatabase, portOf, QUIET, startShop, type ShopDatabase } from './place.ts';

const SECONDS = 20;
const SHORT_SECONDS = 4;
/**
 * Maximum time of a health check in ms: an orchestrator considers a process dead after a second.
 */
const MAX_HEALTH_MS = 1_000;
const MAX_ADDED_MIB = 500;
/** Requests of other clients per second, a quarter of them health checks. */
const OTHERS_A_SECOND = 40;
const OTHERS = [
  { name: 'health', share: 25, requests: [wire('GET', '/livez'), wire('GET', '/readyz')] },
  {
    name: 'reads',
    share: 75,
    requests: [wire('GET', '/api/v2/shop/products?page=2'), wire('GET', '/api/v1/shop/product/3')],
  },
];
/** A document with a hundred errors. */
const INVALID = `{ ${Array.from({ length: 100 }, (_, index) => `field${index} { a }`).join(' ')} }`;
/** Maximum messages per second on a WebSocket. */
const MESSAGES_A_SECOND = 10;

/** Number of WebSockets: nearly the maximum per address. */
const SOCKETS = 180;
const SUBSCRIPTION =
  'subscription ($after: String) { productChanged(after: $after) { kind cursor product { pk name price } } }';
const REJECTED = /"code":"(UNAVAILABLE|RATE_LIMITED)"/;

/** A client that uses as much as it can beside all others. */
interface GreedyClient {
  what: string;
  on?: DatabaseKind;
  /** Settings of the server, if they are not the defaults. */
  env?: Record<string, string>;
  /** Runs before the attack. Returns the cursor before many changes, if the attack needs one. */
  prepare?: (database: ShopDatabase, server: RunningServer, short: boolean) => Promise<unknown>;
  /** Sends as much as possible until the signal. Returns the number of rejected requests. */
  attack: (server: RunningServer, signal: AbortSignal, prepared: unknown) => Promise<number>;
}

const PROMISE = `health checks respond within ${MAX_HEALTH_MS} ms, other clients are served, and the process grows by at most ${MAX_ADDED_MIB} MiB`;

const GREEDY_CLIENTS: Readonly<Record<string, GreedyClient>> = {
  'greedy-unread': {
    what: `${SOCKETS} WebSockets that send pings and never read`,
    attack: (server, signal) =>
      overSockets(server, SOCKETS, signal, (socket) => {
        socket.pause();
        return () => {
          socket.send(JSON.stringify({ type: 'ping', payload: { padding: 'x'.repeat(7_900) } }));
          if (Math.random() < 0.1) socket.pong('unsolicited');
        };
      }),
  },
  'greedy-subscribe': {
    what: '100 WebSockets that send an invalid document ten times per second',
    attack: (server, signal) =>
      overSockets(server, 100, signal, (socket) => {
        let id = 0;
        return () => subscribe(socket, ++id, `# ${id}\n${INVALID}`);
      }),
  },
  'greedy-invalid': {
    what: '300 connections that send invalid documents',
    attack: (server, signal) =>
      overHttp(
        server,
        signal,
        300,
        requestsOf(1_000, (index) => `# ${index}\n${INVALID}`),
      ),
  },
  'greedy-count': {
    what: '30 connections that count filtered products ten times in each request, among 1,000,000 products',
    on: 'postgresql',
    // The default rejects ten counts in one request.
    env: { GRAPHQL_MAX_COST: '10000' },
    prepare: ({ cluster }, _server, short) =>
      cluster ? addProducts(cluster, short ? 100_000 : 1_000_000) : Promise.resolve(),
    attack: (server, signal) =>
      overHttp(
        server,
        signal,
        30,
        requestsOf(
          100,
          (index) =>
            `{ ${repeated(10, (alias) => `products(filter: { nameContains: "${index}${alias}" }) { totalCount }`)} }`,
        ),
      ),
  },
  'greedy-lists': {
    what: '10 connections that read a blog of 2,000 entries of 50,000 characters by REST',
    prepare: writeBlog,
    attack: async (server, signal) => {
      const headers = await bearerOf(server);
      const rejected = await Promise.all(
        Array.from({ length: 10 }, () => readRepeatedly(`${server.url}/blog`, headers, signal)),
      );
      return rejected.reduce((sum, count) => sum + count, 0);
    },
  },
  'greedy-bodies': {
    what: '10 connections that read the same texts by GraphQL',
    prepare: writeBlog,
    attack: async (server, signal) =>
      overHttp(
        server,
        signal,
        10,
        requestsOf(
          1,
          () => `{ ${repeated(8, () => 'blog(first: 100) { nodes { body } }')} }`,
          await bearerOf(server),
        ),
      ),
  },
  'greedy-events': {
    what: `the maximum number of subscriptions on ${SOCKETS} WebSockets, and ten changes per second`,
    attack: async (server, signal) => {
      const writing = writeTenTimesASecond(server, signal);
      const rejected = await overSockets(server, SOCKETS, signal, (socket) => {
        let id = 0;
        return () => id < 20 && subscribe(socket, ++id, SUBSCRIPTION);
      });
      await writing;
      return rejected;
    },
  },
  'greedy-replay': {
    what: `${SOCKETS} WebSockets that repeatedly request 9,000 past changes`,
    prepare: writeChanges,
    attack: (server, signal, after) =>
      overSockets(server, SOCKETS, signal, (socket) => {
        let [id, isDue] = [0, true];
        return () => {
          if (isDue) subscribe(socket, ++id, SUBSCRIPTION, { after });
          else if (id > 9) socket.send(JSON.stringify({ id: String(id - 9), type: 'complete' }));
          isDue = id < 10 || !isDue;
        };
      }),
  },
  'greedy-documents': {
    what: `the maximum number of subscriptions with long documents on ${SOCKETS} WebSockets`,
    attack: (server, signal) =>
      overSockets(server, SOCKETS, signal, (socket) => {
        let id = 0;
        return () =>
          id < 20 &&
          subscribe(socket, ++id, `${SUBSCRIPTION} # ${Math.random()} ${'x'.repeat(80_000)}`);
      }),
  },
};

/** One fault for each greedy client. */
export const greedyClients: readonly Fault[] = Object.entries(GREEDY_CLIENTS).map(
  ([name, client]) => ({
    name,
    promise: `Beside ${client.what}, ${PROMISE}.`,
    on: [client.on ?? 'embedded'],
    run: (context) => runBeside(context, client),
  }),
);

async function runBeside(
  context: FaultContext,
  { env, prepare, attack }: GreedyClient,
): Promise<Figures> {
  const database = await makeDatabase(context, QUIET);
  const server = await startShop(context, { ...database.env, ...env });
  const prepared = await prepare?.(database, server, context.short);
  const port = portOf(server);
  const seconds = context.short ? SHORT_SECONDS : SECONDS;
  await load({ port, parts: OTHERS, rate: 200, connections: 64, seconds: 2 });
  const controller = new AbortController();
  let rejected = 0;
  const others = Promise.withResolvers<Awaited<ReturnType<typeof load>>>();
  const added = await memoryAddedBy(server, async () => {
    const attacking = attack(server, controller.signal, prepared);
    others.resolve(
      await load({ port, parts: OTHERS, rate: OTHERS_A_SECOND, connections: 256, seconds }),
    );
    controller.abort();
    rejected = await attacking;
  });
  const { answers, byPart, lost, unanswered } = await others.promise;
  const { health, reads } = byPart;
  const figures = {
    'longest health check': `${health?.max.toFixed(0)} ms (goal: ${MAX_HEALTH_MS})`,
    "other clients' reads": timesOf(reads),
    'of them rejected': answers[503]?.count ?? 0,
    'requests of the attack rejected': rejected,
    'memory added': `${added.toFixed(0)} MiB (goal: ${MAX_ADDED_MIB})`,
  };
  assert.deepEqual([lost, unanswered], [0, 0], JSON.stringify(figures));
  if (!context.short)
    assert.ok((health?.max ?? Infinity) <= MAX_HEALTH_MS, JSON.stringify(figures));
  assert.ok(added <= MAX_ADDED_MIB, JSON.stringify(figures));
  return figures;
}

/**
 * Sends these requests over this number of connections. Returns the number of responses other than
 * 200.
 */
async function overHttp(
  server: RunningServer,
  signal: AbortSignal,
  connections: number,
  requests: readonly string[],
): Promise<number> {
  const parts = [{ name: 'greedy', share: 100, requests }];
  const running = startLoad({ port: portOf(server), parts, connections, seconds: SECONDS });
  signal.addEventListener('abort', () => running.stop());
  const { answers } = await running.done;
  return Object.entries(answers).reduce(
    (sum, [status, { count }]) => sum + (status === '200' ? 0 : count),
    0,
  );
}

/** Reads a URL repeatedly and discards the responses. Returns the number of rejections. */
async function readRepeatedly(
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<number> {
  let rejected = 0;
  while (!signal.aborted) {
    const answer = await fetch(url, { headers, signal }).catch(() => undefined);
    if (answer && answer.status !== 200) rejected++;
    await answer?.body?.pipeTo(new WritableStream()).catch(() => undefined);
  }
  return rejected;
}

/**
 * Opens WebSockets that send at the maximum rate, and reopens closed ones. Returns the number of
 * rejected subscriptions.
 */
async function overSockets(
  server: RunningServer,
  count: number,
  signal: AbortSignal,
  use: (socket: WebSocket) => () => unknown,
): Promise<number> {
  let rejected = 0;
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      const socket = new WebSocket(
        `${server.url.replace('http', 'ws')}/graphql`,
        'graphql-transport-ws',
      );
      socket.on('error', () => undefined);
      socket.on('message', (data: Buffer) => (rejected += REJECTED.test(data.toString()) ? 1 : 0));
      try {
        await once(socket, 'open', { signal });
        socket.send('{"type":"connection_init"}');
        await once(socket, 'message', { signal });
        const send = use(socket);
        while (!signal.aborted && socket.readyState === WebSocket.OPEN) {
          send();
          await sleep(1_000 / MESSAGES_A_SECOND);
        }
      } catch {
        await sleep(100);
      } finally {
        socket.terminate();
      }
    }
  };
  await Promise.all(Array.from({ length: count }, one));
  return rejected;
}

function subscribe(socket: WebSocket, id: number, query: string, variables?: object): void {
  socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query, variables } }));
}

/** Returns this number of requests with different documents. */
function requestsOf(
  count: number,
  document: (index: number) => string,
  headers: Record<string, string> = {},
): string[] {
  return Array.from({ length: count }, (_, index) =>
    wire('POST', '/graphql', headers, JSON.stringify({ query: document(index) })),
  );
}

/** Repeats a field with different aliases. */
function repeated(count: number, field: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => `field${index}: ${field(index)}`).join(' ');
}

function writeBlog({ sql }: ShopDatabase): Promise<unknown> {
  return sql(`
    insert into blog_entry (title, body, published, creator_pk, created_at, updated_at)
    select 'Entry ' || n, repeat('x', 50000), true, (select min(pk) from "user"), now(), now() from generate_series(1, 2000) as n`);
}

async function bearerOf({ url }: RunningServer): Promise<{ Authorization: string }> {
  const body = new URLSearchParams({ username: 'alice', password: 'alice-demo-1' });
  const login = await fetch(`${url}/token`, { method: 'POST', body });
  const { access_token: token } = (await login.json()) as { access_token: string };
  return { Authorization: `Bearer ${token}` };
}

async function writeTenTimesASecond(server: RunningServer, signal: AbortSignal): Promise<void> {
  const headers = { 'Content-Type': 'application/json', ...(await bearerOf(server)) };
  for (let price = 1; !signal.aborted; price++) {
    const body = JSON.stringify({
      query: `mutation { updateProduct(pk: 1, input: { price: ${price} }) { pk } }`,
    });
    await fetch(`${server.url}/graphql`, { method: 'POST', headers, body });
    await sleep(100);
  }
}

/** Returns the cursor of the change before 9,000 others. */
async function writeChanges({ sql }: ShopDatabase, server: RunningServer): Promise<string> {
  const socket = new WebSocket(
    `${server.url.replace('http', 'ws')}/graphql`,
    'graphql-transport-ws',
  );
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await once(socket, 'message');
  subscribe(socket, 1, SUBSCRIPTION);
  socket.send('{"type":"ping"}');
  await once(socket, 'message');
  await sql('update product set price = price + 1 where pk = 1');
  const [data] = (await once(socket, 'message')) as [Buffer];
  socket.terminate();
  await sql(insertingMany(900));
  for (let time = 1; time < 10; time++)
    await sql("update product set price = price + 1 where barcode like '401%'");
  return (
    JSON.parse(data.toString()) as { payload: { data: { productChanged: { cursor: string } } } }
  ).payload.data.productChanged.cursor;
}
