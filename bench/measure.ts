import { setTimeout } from 'node:timers/promises';
import type { Pace } from './bench.ts';
import { ask, load, type Ask, type Load } from './load.ts';
import type { Measured } from './processes.ts';
import type { Work } from './works.ts';

/** One server's share of a round. */
interface Turn extends Load {
  /** Milliseconds of the server's processor time for each request. */
  cpuMs: number;
  /** MiB at most. */
  memory: number;
}

/** Both servers in turn. */
interface Round {
  ours: Turn;
  bare: Turn;
}

const CHECKED = 200;
const CHECK_EVERY_MS = 50;

/** Measures a kind of request on both servers in turn. Throws where they differ by a byte, or one answers an error. */
export async function measure(work: Work, ours: Measured, bare: Measured, { rounds, seconds }: Pace): Promise<Round[]> {
  const expected = work.writes ? new Map<Ask, string>() : await agreed(work, ours, bare);
  const asks = () => Array.from({ length: work.different }, (_, index) => work.ask(index));
  const fixed = work.writes ? undefined : asks();
  for (const server of [bare, ours]) await load(server.port, fixed ?? asks(), Math.min(2, seconds));
  const found: Round[] = [];
  for (let round = 0; round < rounds; round++) {
    const turn = (server: Measured) => takeTurn(server, fixed ?? asks(), seconds, expected);
    // Who goes first changes, so that neither gains by it.
    const first = round % 2 === 0 ? await turn(bare) : undefined;
    const mine = await turn(ours);
    found.push({ ours: mine, bare: first ?? (await turn(bare)) });
  }
  return found;
}

/** One load of one server, with what it cost. While it runs, answers are compared with those expected. */
export async function takeTurn(
  server: Measured,
  asks: readonly Ask[],
  seconds: number,
  expected: Map<Ask, string> = new Map(),
): Promise<Turn> {
  const before = server.cpu();
  const running = load(server.port, asks, seconds);
  await watch(server, expected, running);
  const done = await running;
  if (done.failed > 0) throw new Error(`${done.failed} requests failed`);
  return { ...done, cpuMs: ((server.cpu() - before) / (done.rate * seconds)) * 1000, memory: server.memory().peak };
}

// GraphQL answers errors with 200, and a load generator would count them.
async function watch(server: Measured, expected: Map<Ask, string>, until: Promise<unknown>): Promise<void> {
  let over = false;
  const end = () => (over = true);
  void until.then(end, end);
  for (const [asked, body] of [...expected, ...expected]) {
    await setTimeout(CHECK_EVERY_MS);
    if (over) return;
    if ((await ask(server.port, asked)) !== body) throw new Error(`another answer under load to ${asked.path}`);
  }
}

async function agreed(work: Work, ours: Measured, bare: Measured): Promise<Map<Ask, string>> {
  const answers = new Map<Ask, string>();
  for (let index = 0; index < Math.min(CHECKED, work.different); index++) {
    const asked = work.ask(index);
    const [mine, theirs] = await Promise.all([ask(ours.port, asked), ask(bare.port, asked)]);
    if (mine !== theirs) throw new Error(`${work.name}: not the same answer.\nours ${mine}\nbare ${theirs}`);
    answers.set(asked, mine);
  }
  return answers;
}

/** The middle one; of an even number, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2;
}

/** The median, with the least and the most. */
export function ratioText(values: readonly number[]): string {
  return `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
}

/** A whole number, with its thousands apart. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
