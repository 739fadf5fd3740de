import type { Agent } from 'node:http';
import { request } from 'node:http';
import { expect } from './jest.ts';
import { mannWhitneyP, median } from './medians.ts';

/** How many rounds are measured: TIMING_PAIRS, or as many as the catalogue says. */
const PAIRS = Number(process.env['TIMING_PAIRS'] || 200);
/** Two medians whose ratio is within this are alike, where no other limit is named. */
const ALIKE = 1.05;
/** Two samples of the same thing differ as much as this by chance once in ten thousand times. */
const SIGNIFICANT = 1e-4;
/** A control group that differs this much counts as noisy. */
const SUSPICIOUS = 0.01;
/** In which order the three of a round are measured, so that none of them is more often behind a certain other one. */
const ORDERS = [
  ['one', 'other', 'control'],
  ['other', 'one', 'control'],
  ['control', 'one', 'other'],
  ['control', 'other', 'one'],
  ['one', 'control', 'other'],
  ['other', 'control', 'one'],
] as const;

/** How two samples differ: `ratio` of the first one's median to that of the second, and how likely that is by chance. */
interface Difference {
  ratio: number;
  p: number;
}

/** What was measured: the one against the other, and the one against itself. */
export interface Comparison {
  difference: Difference;
  control: Difference;
}

export type Verdict = 'alike' | 'different' | 'inconclusive';

/** Measures the one thing, in ms; `attempt` is another number each time. */
export type Measure = (attempt: number) => Promise<number>;

/**
 * Measures the one, the other and the one again, the control, by turns. An attempt has the same number for the one and the control in no
 * round.
 */
export async function compare(one: Measure, other: Measure, rounds = PAIRS): Promise<Comparison> {
  const measures = { one, other, control: one };
  const times = { one: [] as number[], other: [] as number[], control: [] as number[] };
  let attempt = 0;
  for (const measure of [one, other, other, one]) await measure(attempt++);
  for (let round = 0; round < rounds; round++) {
    for (const which of ORDERS[round % ORDERS.length] ?? ORDERS[0]) times[which].push(await measures[which](attempt++));
  }
  return { difference: differenceOf(times.other, times.one), control: differenceOf(times.control, times.one) };
}

/**
 * Whether the one and the other are alike: within this ratio of each other. Inconclusive where the control group is not alike
 * itself, within the square root of the ratio, or where a difference may be chance.
 */
export function verdictOf({ difference, control }: Comparison, most = ALIKE): Verdict {
  if (!isWithin(control.ratio, Math.sqrt(most)) || control.p < SUSPICIOUS) return 'inconclusive';
  if (isWithin(difference.ratio, most)) return 'alike';
  return difference.p < SIGNIFICANT ? 'different' : 'inconclusive';
}

/** Whether the other takes at most so many times as long as the one; it may take less. */
export function limitVerdictOf(comparison: Comparison, most: number): Verdict {
  return verdictOf({ ...comparison, difference: { ...comparison.difference, ratio: Math.max(1, comparison.difference.ratio) } }, most);
}

/** Expects the verdict. One that is inconclusive is written to stdout, and fails nothing. */
export function expectVerdict(comparison: Comparison, verdict: Verdict, expected: Exclude<Verdict, 'inconclusive'>): void {
  const { currentTestName } = expect.getState();
  if (verdict === 'inconclusive') {
    process.stdout.write(
      `inconclusive: ${currentTestName}: the other ${textOf(comparison.difference)}, the control ${textOf(comparison.control)}\n`,
    );
    return;
  }
  expect({ verdict, ...comparison }).toEqual({ verdict: expected, ...comparison });
}

/** Expects the one and the other to take the same time. */
export function expectAlike(comparison: Comparison): void {
  expectVerdict(comparison, verdictOf(comparison), 'alike');
}

/** Expects the other to take at most so many times as long as the one. */
export function expectAtMost(comparison: Comparison, most: number): void {
  expectVerdict(comparison, limitVerdictOf(comparison, most), 'alike');
}

function differenceOf(first: readonly number[], second: readonly number[]): Difference {
  return { ratio: median(first) / median(second), p: mannWhitneyP(first, second) };
}

function isWithin(ratio: number, most: number): boolean {
  return ratio <= most && ratio >= 1 / most;
}

function textOf({ ratio, p }: Difference): string {
  return `${ratio.toFixed(3)} times as long (p = ${p.toPrecision(2)})`;
}

/** A request to be timed. */
export interface Timed {
  method: string;
  path: string;
  type?: string;
  authorization?: string;
  body?: string;
}

/** Milliseconds from the request to the end of its answer, over the agent's connection. */
export function timeOf(agent: Agent, port: number, { method, path, type, authorization, body = '' }: Timed): Promise<number> {
  const headers = {
    'Content-Length': Buffer.byteLength(body),
    ...(type !== undefined && { 'Content-Type': type }),
    ...(authorization !== undefined && { Authorization: authorization }),
  };
  return new Promise((done, fail) => {
    const start = performance.now();
    const sent = request({ agent, host: '127.0.0.1', port, method, path, headers }, (answer) => {
      answer.resume().once('end', () => done(performance.now() - start));
    });
    sent.once('error', fail).end(body);
  });
}
