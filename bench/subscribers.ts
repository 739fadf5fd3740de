import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Bench, Result } from './bench.ts';
import { send } from './load.ts';
import { median } from './measure.ts';
import { freePort } from './processes.ts';
import { workOf } from './works.ts';

const SUBSCRIBERS = 5_000;
/** Maximum number of clients per address: one address may have 200. */
const PER_ADDRESS = 100;
/** Number of connections that are opened at a time. */
const AT_ONCE = 50;
const WRITE_MS = 100;
/** Time in which requested subscriptions start, in ms. */
const START_MS = 2_000;
const MAX_MS = 250;
const MAX_LAG_MS = 30;
const MAX_KB = 10;
/** The interval of the timer by which the server measures its lag, in ms, is part of the result. */
const TIMER_MS = 10;
const SUBSCRIPTION = 'subscription { productChanged { pk } }';

/** A round: the time until the last subscriber had an event, and the lag of the event loop, in ms. */
interface Round {
  slowestMs: number;
  lagMs: number;
}

/** Sends each event of ten writes a second to 5,000 subscribers on as many WebSockets. */
export async function subscribers(bench: Bench): Promise<Result> {
  const metricsPort = await freePort();
  const ours = await bench.ours('1k', {
    METRICS_PORT: String(metricsPort),
    MAX_CONNECTIONS: String(2 * SUBSCRIBERS),
    MAX_SUBSCRIPTION_CONNECTIONS: String(SUBSCRIBERS),
  });
  const create = workOf('create');
  const before = ours.memory().now;
  /** Number of subscribers that have the change of a product, by its primary key. */
  const told = new Map<string, { count: number; at: number }>();
  const sockets: WebSocket[] = [];
  for (let first = 0; first < SUBSCRIBERS; first += AT_ONCE)
    sockets.push(
      ...(await Promise.all(
        Array.from({ length: AT_ONCE }, (_, index) =>
          subscribe(ours.port, first + index, (pk) => {
            const { count } = told.get(pk) ?? { count: 0 };
            told.set(pk, { count: count + 1, at: performance.now() });
          }),
        ),
      )),
    );
  // The last subscriptions may not have started yet.
  await setTimeout(START_MS);
  const kb = ((ours.memory().now - before) * 1024) / SUBSCRIBERS;
  const rounds: Round[] = [];
  let writes = 0;
  for (let round = 0; round < bench.pace.rounds; round++) {
    await lagOf(metricsPort);
    let slowestMs = 0;
    for (const end = performance.now() + bench.pace.seconds * 1000; performance.now() < end;) {
      const { pk } = JSON.parse(await send(ours.port, create.request(writes++))) as { pk: number };
      const committed = performance.now();
      while ((told.get(String(pk))?.count ?? 0) < SUBSCRIBERS) await setTimeout(1);
      slowestMs = Math.max(slowestMs, (told.get(String(pk))?.at ?? 0) - committed);
      await setTimeout(Math.max(0, WRITE_MS - (performance.now() - committed)));
    }
    rounds.push({ slowestMs, lagMs: (await lagOf(metricsPort)) - TIMER_MS });
  }
  for (const socket of sockets) socket.terminate();
  await bench.tidy('1k');
  const slowest = median(rounds.map(({ slowestMs }) => slowestMs));
  const lag = median(rounds.map(({ lagMs }) => lagMs));
  return {
    name: 'subscribers',
    what: `${SUBSCRIBERS} subscribers of one event on WebSockets, ten writes a second`,
    goal: `told within ${MAX_MS} ms, event loop held for at most ${MAX_LAG_MS} ms, ${MAX_KB} KB each`,
    reached: `${slowest.toFixed(0)} ms, ${lag.toFixed(0)} ms, ${kb.toFixed(1)} KB`,
    met: slowest <= MAX_MS && lag <= MAX_LAG_MS && kb <= MAX_KB,
    beside: `the last subscriber of the slowest event of each round; ${writes} writes`,
    rounds,
  };
}

let last: { text: string; type?: string; pk?: string | undefined } = { text: '' };

// All subscribers receive the same text, which is parsed once: the clients share a core.
function read(text: string): typeof last {
  if (text === last.text) return last;
  const { type, payload } = JSON.parse(text) as {
    type: string;
    payload?: { data: { productChanged: { pk: string } } };
  };
  return (last = { text, type, pk: payload?.data.productChanged.pk });
}

async function subscribe(
  port: number,
  index: number,
  onEvent: (pk: string) => void,
): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/graphql`, 'graphql-transport-ws', {
    localAddress: `127.0.1.${1 + Math.floor(index / PER_ADDRESS)}`,
    perMessageDeflate: false,
  });
  await once(socket, 'open');
  const acknowledged = once(socket, 'message');
  socket.send('{"type":"connection_init"}');
  await acknowledged;
  socket.on('message', (data: Buffer) => {
    const { type, pk } = read(data.toString());
    if (type === 'ping') socket.send('{"type":"pong"}');
    else if (pk !== undefined) onEvent(pk);
  });
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query: SUBSCRIPTION } }));
  return socket;
}

/** Returns the maximum lag of the server's event loop since the last call, in ms. */
async function lagOf(metricsPort: number): Promise<number> {
  const text = await send(metricsPort, { method: 'GET', path: '/metrics' });
  return Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1]) * 1000;
}
