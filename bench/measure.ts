import { setTimeout } from 'node:timers/promises';
import type { Pace } from './bench.ts';
import { send, load, type BenchRequest, type Load } from './load.ts';
import type { MeasuredServer } from './processes.ts';
import type { Work } from './works.ts';

/** The load of one server in a round. */
export interface Turn extends Load {
  /** Processor time of the server per request, in ms. */
  cpuMs: number;
  /** Peak memory in MiB. */
  memory: number;
}

/**
 * Length of the load before the first round, in rounds. Until V8 has optimized a server, a request
 * takes up to twice the time: with rounds of 4 s, for some 12 s of load.
 */
export const WARM_UP = 3;
const CHECKED = 200;
const CHECK_EVERY_MS = 50;

/**
 * Measures a kind of request on each server by turns, from the first to the last and back. Throws
 * if their responses differ or a request fails.
 */
export async function measure<Name extends string>(
  work: Work,
  servers: Readonly<Record<Name, MeasuredServer>>,
  { rounds, seconds }: Pace,
): Promise<Record<Name, Turn>[]> {
  const named = Object.entries(servers) as [Name, MeasuredServer][];
  const all = named.map(([, server]) => server);
  const expected = work.writes
    ? new Map<BenchRequest, string>()
    : await assertSameResponses(work, all);
  const makeRequests = () =>
    Array.from({ length: work.different }, (_, index) => work.request(index));
  const fixed = work.writes ? undefined : makeRequests();
  const { clients } = work;
  for (const server of all)
    await load(server.port, fixed ?? makeRequests(), WARM_UP * seconds, clients);
  const found: Record<Name, Turn>[] = [];
  for (let round = 0; round < rounds; round++) {
    const turns: [Name, Turn][] = [];
    // Alternates the order, so that none gains by it.
    for (const [name, server] of round % 2 === 0 ? named : named.toReversed())
      turns.push([
        name,
        await takeTurn(server, fixed ?? makeRequests(), seconds, { expected, clients }),
      ]);
    found.push(Object.fromEntries(turns) as Record<Name, Turn>);
  }
  return found;
}

/** Loads one server and measures its cost. Meanwhile, compares responses with the expected ones. */
export async function takeTurn(
  server: MeasuredServer,
  requests: readonly BenchRequest[],
  seconds: number,
  {
    expected = new Map(),
    clients,
  }: { expected?: Map<BenchRequest, string>; clients?: number | undefined } = {},
): Promise<Turn> {
  const before = server.cpu();
  const running = load(server.port, requests, seconds, clients);
  await compareUnderLoad(server, expected, running);
  const done = await running;
  if (done.failed > 0) throw new Error(`${done.failed} requests failed`);
  return {
    ...done,
    cpuMs: ((server.cpu() - before) / (done.rate * seconds)) * 1000,
    memory: server.memory().peak,
  };
}

// GraphQL may return errors with 200, which the load generator counts as successes.
async function compareUnderLoad(
  server: MeasuredServer,
  expected: Map<BenchRequest, string>,
  until: Promise<unknown>,
): Promise<void> {
  let over = false;
  const end = () => (over = true);
  void until.then(end, end);
  for (const [request, body] of [...expected, ...expected]) {
    await setTimeout(CHECK_EVERY_MS);
    if (over) return;
    if ((await send(server.port, request)) !== body)
      throw new Error(`Different response under load: ${request.path}`);
  }
}

async function assertSameResponses(
  work: Work,
  servers: readonly MeasuredServer[],
): Promise<Map<BenchRequest, string>> {
  const answers = new Map<BenchRequest, string>();
  for (let index = 0; index < Math.min(CHECKED, work.different); index++) {
    const request = work.request(index);
    const [expected = '', ...others] = await Promise.all(
      servers.map(({ port }) => send(port, request)),
    );
    const different = others.find((body) => body !== expected);
    if (different !== undefined)
      throw new Error(`${work.name}: responses differ.\n${expected}\n${different}`);
    answers.set(request, expected);
  }
  return answers;
}

/** Returns the median. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return (
    ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2
  );
}

/** Formats the median, the minimum and the maximum. */
export function ratioText(values: readonly number[]): string {
  return `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
}

/** Formats a whole number with thousands separators. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
