import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { withinLimit, type Bench, type Result } from './bench.ts';
import { load, type Ask } from './load.ts';
import { median, whole } from './measure.ts';
import type { Measured } from './processes.ts';
import { allLogins } from './storm.ts';
import { works } from './works.ts';

/** How often each attack is tried in a round. */
const TRIES = 20;
const STORM = 200;
const SLOW_SOCKETS = 2_000;

/** An attack that is one request: how long it may take in all, in ms (docs/attacks.md has its row). */
interface Attack {
  row: string;
  what: string;
  limit: number;
  ask: Ask;
}

const deep = `{ me ${'{ blog { nodes { creator '.repeat(3)}{ username } ${'} } }'.repeat(3)} }`;

const attacks: readonly Attack[] = [
  { row: 'D1', what: 'a query that is too deep, refused', limit: 20, ask: graphql(deep) },
  { row: 'D9', what: 'ten thousand directives, refused', limit: 50, ask: graphql(`{ __typename ${'@a '.repeat(10_000)} }`) },
  { row: 'D9', what: 'fifty-one directives, refused', limit: 50, ask: graphql(`{ __typename ${'@include(if: true) '.repeat(51)} }`) },
  { row: 'D10', what: 'one field five hundred times', limit: 60, ask: graphql(`{ ${'__typename '.repeat(500)} }`) },
  { row: 'D10', what: 'one field three thousand times, refused', limit: 60, ask: graphql(`{ ${'__typename '.repeat(3_000)} }`) },
  { row: 'D14', what: '99 KB of spaces', limit: 20, ask: graphql(`{ __typename ${' '.repeat(99_000)} }`) },
  {
    row: 'Q7',
    what: 'a page a million rows in',
    limit: 250,
    ask: { method: 'GET', path: '/api/v2/shop/products?limit=10&offset=999990' },
  },
];

/** Measures what the attack catalogue gives a time for: the ratios of the test suite say that it holds, these say how long it takes. */
export async function measureAttacks(bench: Bench, say: (result: Result) => void): Promise<Result[]> {
  const results: Result[] = [];
  const add = (result: Result) => {
    results.push(result);
    say(result);
  };
  const ours = await bench.ours('1m', { LOGIN_FAILURES_PER_ADDRESS: '1000000' });
  for (const attack of attacks) add(await single(bench, ours, attack));
  add(await storm(bench, ours));
  add(await slowSockets(bench, ours));
  await bench.clear();
  return results;
}

async function single(bench: Bench, ours: Measured, { row, what, limit, ask }: Attack): Promise<Result> {
  const times: number[] = [];
  await timed(ours, ask);
  for (let count = 0; count < bench.pace.rounds * TRIES; count++) times.push((await timed(ours, ask)).ms);
  return withinLimit(row, what, limit, times);
}

// Row B7: what is refused, is refused at once, and reads go on.
async function storm(bench: Bench, ours: Measured): Promise<Result> {
  const reads = works.find(({ name }) => name === 'rest-product');
  if (!reads) throw new Error('there is no work rest-product');
  const asks = Array.from({ length: reads.different }, (_, index) => reads.ask(index));
  const logins = allLogins().slice(0, STORM);
  const rounds: { refused: number[]; p99: number }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const reading = load(ours.port, asks, bench.pace.seconds, 4);
    const answers = await Promise.all(logins.map((login) => timed(ours, login)));
    rounds.push({ refused: answers.filter(({ status }) => status === 503).map(({ ms }) => ms), p99: (await reading).p99 });
  }
  const refused = rounds.flatMap((round) => round.refused);
  const p99 = median(rounds.map((round) => round.p99));
  return {
    name: 'B7',
    what: `${STORM} logins at once: those refused, and reads meanwhile`,
    goal: 'refused within 50 ms, reads within 200 ms (p99)',
    reached: `${median(refused).toFixed(1)} ms; ${p99.toFixed(1)} ms`,
    met: median(refused) <= 50 && p99 <= 200,
    beside: `${(refused.length / rounds.length).toFixed(0)} refused of ${STORM}`,
    rounds,
  };
}

// Row H10: who sends a header line now and then keeps nobody else waiting.
async function slowSockets(bench: Bench, ours: Measured): Promise<Result> {
  const sockets = await Promise.all(Array.from({ length: SLOW_SOCKETS }, () => slowSocket(ours.port)));
  const times: number[] = [];
  try {
    for (let count = 0; count < bench.pace.rounds * TRIES; count++)
      times.push((await timed(ours, { method: 'GET', path: '/api/v1/shop/product/1' })).ms);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  return withinLimit('H10', `a product beside ${whole(SLOW_SOCKETS)} slow connections`, 100, times);
}

async function slowSocket(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ');
  return socket;
}

async function timed({ port }: Measured, { method, path, headers = {}, body }: Ask): Promise<{ status: number; ms: number }> {
  const began = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, headers, body: body ?? null });
  await answer.arrayBuffer();
  return { status: answer.status, ms: performance.now() - began };
}

function graphql(query: string): Ask {
  return { method: 'POST', path: '/graphql', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ query }) };
}
