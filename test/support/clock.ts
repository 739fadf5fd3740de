import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach } from './jest.ts';

const real = performance.now.bind(performance);
/** The time of the stopped clock. */
let stopped: number | undefined;
/** Offset from the system clock, so that time never goes back. */
let ahead = 0;

/** The stopped `performance.now` of this process. */
export interface StoppedClock {
  advance(ms: number): void;
  /** Advances the clock in steps, in ms, until the promise settles. */
  advanceUntil<T>(end: Promise<T>, step: number): Promise<T>;
}

/**
 * Stops `performance.now` during each test of a file, so that values with a lifetime of
 * milliseconds do not expire while a test runs, and a busy machine delays nothing.
 */
export function useStoppedClock(): StoppedClock {
  const advance = (ms: number) => void (stopped = (stopped ?? real() + ahead) + ms);
  beforeEach(() => {
    performance.now = () => stopped ?? real() + ahead;
    stopped = performance.now();
  });
  afterEach(() => {
    ahead = Math.max(ahead, (stopped ?? 0) - real());
    stopped = undefined;
  });
  return {
    advance,
    async advanceUntil(end, step) {
      const state = { isOver: false };
      const over = () => void (state.isOver = true);
      end.then(over, over);
      for (; !state.isOver; await setTimeout(5)) advance(step);
      return end;
    },
  };
}
