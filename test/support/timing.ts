import type { Agent } from 'node:http';
import { request } from 'node:http';
import { mannWhitneyP, median } from './medians.ts';

/** How many times each is asked in a round: TIMING_PAIRS, or as often as the catalogue says. */
const PAIRS = Number(process.env['TIMING_PAIRS'] || 200);
/** How often the two are measured against each other at most. Whatever else the machine does may tip one round. */
const ROUNDS = 3;

/** A request to be timed. */
export interface Timed {
  method: string;
  path: string;
  type?: string;
  authorization?: string;
  body?: string;
}

/** What one round found. */
export interface Difference {
  /** How much longer the one takes than the other, by their medians. */
  ratio: number;
  p: number;
  alike: boolean;
}

/**
 * Measures the two against each other by turns, each time with the number of the attempt, round after round until one is as is hoped for. Returns what
 * each round found.
 */
export async function differences(
  send: (timed: Timed) => Promise<number>,
  one: (attempt: number) => Timed,
  other: (attempt: number) => Timed,
  isHopedFor = ({ alike }: Difference) => alike,
): Promise<Difference[]> {
  const found: Difference[] = [];
  let attempt = 0;
  for (const timed of [one, other, other, one]) await send(timed(attempt++));
  for (let round = 0; round < ROUNDS && !found.some(isHopedFor); round++) {
    const times: [number[], number[]] = [[], []];
    for (let pair = 0; pair < PAIRS; pair++, attempt++) {
      // By turns, each is the first of its pair.
      const isFirst = pair % 2 === 0;
      const [first, second] = isFirst ? times : times.toReversed();
      first?.push(await send((isFirst ? one : other)(attempt)));
      second?.push(await send((isFirst ? other : one)(attempt)));
    }
    const ratio = median(times[0]) / median(times[1]);
    const p = mannWhitneyP(...times);
    found.push({ ratio, p, alike: Math.abs(ratio - 1) <= 0.05 && p > 0.01 });
  }
  return found;
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
