import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach } from './jest.ts';

const real = performance.now.bind(performance);
/** The time at which the clock stands still. */
let stopped: number | undefined;
/** How far it is ahead of the machine's, so that it never goes back. */
let ahead = 0;

/** The clock of this process, `performance.now`, in the hands of a test. */
export interface StoppedClock {
  pass(ms: number): void;
  /** Passes as much time as it takes until this has ended, in steps of so many ms. */
  passUntil<T>(end: Promise<T>, step: number): Promise<T>;
}

/**
 * Stops `performance.now` during each test of a file, so that what holds for some milliseconds holds for as long as the test needs,
 * and nothing is late because the machine is busy.
 */
export function useStoppedClock(): StoppedClock {
  const pass = (ms: number) => void (stopped = (stopped ?? real() + ahead) + ms);
  beforeEach(() => {
    performance.now = () => stopped ?? real() + ahead;
    stopped = performance.now();
  });
  afterEach(() => {
    ahead = Math.max(ahead, (stopped ?? 0) - real());
    stopped = undefined;
  });
  return {
    pass,
    async passUntil(end, step) {
      const state = { isOver: false };
      const over = () => void (state.isOver = true);
      end.then(over, over);
      for (; !state.isOver; await setTimeout(5)) pass(step);
      return end;
    },
  };
}
