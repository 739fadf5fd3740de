import { type Agent, request } from 'node:http';
import { expect } from './jest.ts';
import { mannWhitneyP, median } from './medians.ts';

/** Number of rounds: TIMING_PAIRS, or the number in the catalogue. */
const PAIRS = Number(process.env['TIMING_PAIRS'] || 200);
/** Default limit of the ratio of two medians that count as alike. */
const ALIKE = 1.05;
/** Significance level: one false positive in ten thousand. */
const SIGNIFICANT = 1e-4;
/** Significance level at which a control group counts as noisy. */
const SUSPICIOUS = 0.01;
/** Orders of the three measurements of a round; each follows each other one equally often. */
const ORDERS = [
  ['one', 'other', 'control'],
  ['other', 'one', 'control'],
  ['control', 'one', 'other'],
  ['control', 'other', 'one'],
  ['one', 'control', 'other'],
  ['other', 'control', 'one'],
] as const;

/** The ratio of two medians, and its p-value. */
interface Difference {
  ratio: number;
  p: number;
}

/** The comparison of both, and of the first with itself. */
export interface Comparison {
  difference: Difference;
  control: Difference;
}

export type Verdict = 'alike' | 'different' | 'inconclusive';

/** Measures one duration, in ms; `attempt` is unique. */
export type Measure = (attempt: number) => Promise<number>;

/**
 * Measures the first, the second and the first again (the control), by turns. Every measurement has
 * its own attempt number.
 */
export async function compare(one: Measure, other: Measure, rounds = PAIRS): Promise<Comparison> {
  const measures = { one, other, control: one };
  const times = { one: [] as number[], other: [] as number[], control: [] as number[] };
  let attempt = 0;
  for (const measure of [one, other, other, one]) await measure(attempt++);
  for (let round = 0; round < rounds; round++) {
    for (const which of ORDERS[round % ORDERS.length] ?? ORDERS[0])
      times[which].push(await measures[which](attempt++));
  }
  return {
    difference: differenceOf(times.other, times.one),
    control: differenceOf(times.control, times.one),
  };
}

/**
 * Returns whether both are alike: within this ratio of each other. Inconclusive if the control
 * group differs by more than the square root of the ratio, or if a difference may be chance.
 */
export function verdictOf({ difference, control }: Comparison, most = ALIKE): Verdict {
  if (!isWithin(control.ratio, Math.sqrt(most)) || control.p < SUSPICIOUS) return 'inconclusive';
  if (isWithin(difference.ratio, most)) return 'alike';
  return difference.p < SIGNIFICANT ? 'different' : 'inconclusive';
}

/** Returns whether the second takes at most `most` times as long as the first; it may take less. */
function limitVerdictOf(comparison: Comparison, most: number): Verdict {
  return verdictOf(
    {
      ...comparison,
      difference: { ...comparison.difference, ratio: Math.max(1, comparison.difference.ratio) },
    },
    most,
  );
}

/** Expects the verdict. An inconclusive one is written to stdout and does not fail. */
export function expectVerdict(
  comparison: Comparison,
  verdict: Verdict,
  expected: Exclude<Verdict, 'inconclusive'>,
): void {
  const { currentTestName } = expect.getState();
  if (verdict === 'inconclusive') {
    process.stdout.write(
      `inconclusive: ${currentTestName}: the other ${textOf(comparison.difference)}, the control ${textOf(comparison.control)}\n`,
    );
    return;
  }
  expect({ verdict, ...comparison }).toEqual({ verdict: expected, ...comparison });
}

/** Expects both to take the same time. */
export function expectAlike(comparison: Comparison): void {
  expectVerdict(comparison, verdictOf(comparison), 'alike');
}

/** Expects the second to take at most `most` times as long as the first. */
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

/** A request to time. */
export interface TimedRequest {
  method: string;
  path: string;
  type?: string;
  authorization?: string;
  body?: string;
}

/** Returns the ms from sending the request to the end of its response. */
export function timeOf(
  agent: Agent,
  port: number,
  { method, path, type, authorization, body = '' }: TimedRequest,
): Promise<number> {
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
