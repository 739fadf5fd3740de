import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { withinLimit, type Bench, type Result } from './bench.ts';
import { load, type BenchRequest } from './load.ts';
import { median, whole } from './measure.ts';
import type { MeasuredServer } from './processes.ts';
import { allLogins } from './storm.ts';
import { works } from './works.ts';

/** Number of attempts of each attack per round. */
const ATTEMPTS = 20;
const STORM = 200;
const SLOW_SOCKETS = 2_000;

/** An attack of one request, and its time limit in ms (docs/generated/attacks.md). */
interface Attack {
  id: string;
  what: string;
  limit: number;
  request: BenchRequest;
}

const deep = `{ me ${'{ blog { nodes { creator '.repeat(3)}{ username } ${'} } }'.repeat(3)} }`;

const attacks: readonly Attack[] = [
  { id: 'D1', what: 'a query that is too deep, rejected', limit: 20, request: graphql(deep) },
  {
    id: 'D9',
    what: 'ten thousand directives, rejected',
    limit: 50,
    request: graphql(`{ __typename ${'@a '.repeat(10_000)} }`),
  },
  {
    id: 'D9',
    what: 'fifty-one directives, rejected',
    limit: 50,
    request: graphql(`{ __typename ${'@include(if: true) '.repeat(51)} }`),
  },
  {
    id: 'D10',
    what: 'one field five hundred times',
    limit: 60,
    request: graphql(`{ ${'__typename '.repeat(500)} }`),
  },
  {
    id: 'D10',
    what: 'one field three thousand times, rejected',
    limit: 60,
    request: graphql(`{ ${'__typename '.repeat(3_000)} }`),
  },
  {
    id: 'D14',
    what: '99 KB of spaces',
    limit: 20,
    request: graphql(`{ __typename ${' '.repeat(99_000)} }`),
  },
  {
    id: 'Q7',
    what: 'a page at offset one million',
    limit: 250,
    request: { method: 'GET', path: '/api/v2/shop/products?limit=10&offset=999990' },
  },
];

/**
 * Measures the attacks that have a time limit in the catalogue; the test suite checks their ratios
 * only.
 */
export async function measureAttacks(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = [];
  const add = (result: Result) => {
    results.push(result);
    print(result);
  };
  const ours = await bench.ours('1m', {
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1000000',
  });
  for (const attack of attacks) add(await single(bench, ours, attack));
  add(await storm(bench, ours));
  add(await slowSockets(bench, ours));
  await bench.clear();
  return results;
}

async function single(
  bench: Bench,
  ours: MeasuredServer,
  { id, what, limit, request }: Attack,
): Promise<Result> {
  const times: number[] = [];
  await timed(ours, request);
  for (let count = 0; count < bench.pace.rounds * ATTEMPTS; count++)
    times.push((await timed(ours, request)).ms);
  return withinLimit(id, what, limit, times);
}

// Attack B7: rejections are immediate, and reads are not affected.
async function storm(bench: Bench, ours: MeasuredServer): Promise<Result> {
  const reads = works.find(({ name }) => name === 'rest-product');
  if (!reads) throw new Error('There is no work rest-product');
  const requests = Array.from({ length: reads.different }, (_, index) => reads.request(index));
  const logins = allLogins().slice(0, STORM);
  const rounds: { rejected: number[]; p99: number }[] = [];
  for (let round = 0; round < bench.pace.rounds; round++) {
    const reading = load(ours.port, requests, bench.pace.seconds, 4);
    const answers = await Promise.all(logins.map((login) => timed(ours, login)));
    rounds.push({
      rejected: answers.filter(({ status }) => status === 503).map(({ ms }) => ms),
      p99: (await reading).p99,
    });
  }
  const rejected = rounds.flatMap((round) => round.rejected);
  const p99 = median(rounds.map((round) => round.p99));
  return {
    name: 'B7',
    what: `${STORM} logins at once: those rejected, and reads meanwhile`,
    goal: 'rejected within 50 ms, reads within 200 ms (p99)',
    reached: `${median(rejected).toFixed(1)} ms; ${p99.toFixed(1)} ms`,
    met: median(rejected) <= 50 && p99 <= 200,
    beside: `${(rejected.length / rounds.length).toFixed(0)} rejected of ${STORM}`,
    rounds,
  };
}

// Attack H10: slow clients do not delay others.
async function slowSockets(bench: Bench, ours: MeasuredServer): Promise<Result> {
  const sockets = await Promise.all(
    Array.from({ length: SLOW_SOCKETS }, () => slowSocket(ours.port)),
  );
  const times: number[] = [];
  try {
    for (let count = 0; count < bench.pace.rounds * ATTEMPTS; count++)
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

async function timed(
  { port }: MeasuredServer,
  { method, path, headers = {}, body }: BenchRequest,
): Promise<{ status: number; ms: number }> {
  const began = performance.now();
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers,
    body: body ?? null,
  });
  await answer.arrayBuffer();
  return { status: answer.status, ms: performance.now() - began };
}

function graphql(query: string): BenchRequest {
  return {
    method: 'POST',
    path: '/graphql',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  };
}
