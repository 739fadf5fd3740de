import { setTimeout } from 'node:timers/promises';
import type { Pace } from './bench.ts';
import { send, load, type BenchRequest, type Load } from './load.ts';
import type { MeasuredServer } from './processes.ts';
import type { Work } from './works.ts';

/** The load of one server in a round. */
interface Turn extends Load {
  /** Processor time of the server per request, in ms. */
  cpuMs: number;
  /** Peak memory in MiB. */
  memory: number;
}

/** One load of each server. */
interface Round {
  ours: Turn;
  baseline: Turn;
}

const CHECKED = 200;
const CHECK_EVERY_MS = 50;

/**
 * Measures a kind of request on both servers by turns. Throws if their responses differ or a
 * request fails.
 */
export async function measure(
  work: Work,
  ours: MeasuredServer,
  baseline: MeasuredServer,
  { rounds, seconds }: Pace,
): Promise<Round[]> {
  const expected = work.writes
    ? new Map<BenchRequest, string>()
    : await assertSameResponses(work, ours, baseline);
  const makeRequests = () =>
    Array.from({ length: work.different }, (_, index) => work.request(index));
  const fixed = work.writes ? undefined : makeRequests();
  for (const server of [baseline, ours])
    await load(server.port, fixed ?? makeRequests(), Math.min(2, seconds));
  const found: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const turn = (server: MeasuredServer) =>
      takeTurn(server, fixed ?? makeRequests(), seconds, expected);
    // Alternates the order, so that neither gains by it.
    const first = round % 2 === 0 ? await turn(baseline) : undefined;
    const mine = await turn(ours);
    found.push({ ours: mine, baseline: first ?? (await turn(baseline)) });
  }
  return found;
}

/** Loads one server and measures its cost. Meanwhile, compares responses with the expected ones. */
export async function takeTurn(
  server: MeasuredServer,
  requests: readonly BenchRequest[],
  seconds: number,
  expected: Map<BenchRequest, string> = new Map(),
): Promise<Turn> {
  const before = server.cpu();
  const running = load(server.port, requests, seconds);
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
  ours: MeasuredServer,
  baseline: MeasuredServer,
): Promise<Map<BenchRequest, string>> {
  const answers = new Map<BenchRequest, string>();
  for (let index = 0; index < Math.min(CHECKED, work.different); index++) {
    const request = work.request(index);
    const [mine, theirs] = await Promise.all([
      send(ours.port, request),
      send(baseline.port, request),
    ]);
    if (mine !== theirs)
      throw new Error(`${work.name}: responses differ.\nours ${mine}\nbaseline ${theirs}`);
    answers.set(request, mine);
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
