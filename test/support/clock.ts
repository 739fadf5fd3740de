import { afterEach } from './jest.ts';

/**
 * Replaces `performance.now` until the end of the test. It stands still until `pass` moves it, so that what a cache holds for
 * some milliseconds is held for as long as the test needs.
 */
export function stopClock(): { pass(ms: number): void } {
  let now = performance.now();
  performance.now = () => now;
  return { pass: (ms) => void (now += ms) };
}

// An own property hides the method of the prototype.
afterEach(() => void Reflect.deleteProperty(performance, 'now'));
