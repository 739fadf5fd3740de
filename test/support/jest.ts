// Decorators of entities and resolvers need it before the first of them is loaded.
import 'reflect-metadata';
import type * as jestGlobals from '@jest/globals';

/** Default timeout of tests and hooks, in ms: long enough for a busy machine. */
export const TIMEOUT_MS = 300_000;

type Globals = Pick<
  typeof jestGlobals,
  'afterAll' | 'afterEach' | 'beforeAll' | 'beforeEach' | 'describe' | 'expect' | 'jest' | 'test'
>;
type Work = (...args: unknown[]) => unknown;

// The runner (jest-light-runner) sets jest's globals and has no timeouts. @jest/globals works under
// jest's own runner only.
const globals = globalThis as unknown as Globals;
export const { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest } = globals;

/** jest's `test`, with a timeout. */
export const test = Object.assign(limiting(globals.test as unknown as Register), {
  each: (...table: unknown[]) =>
    limiting((globals.test.each as unknown as (...table: unknown[]) => Register)(...table)),
}) as unknown as Globals['test'];

type Register = (name: string, work: Work) => void;

function limiting(register: Register): (name: string, work: Work, timeout?: number) => void {
  return (name, work, timeout = TIMEOUT_MS) =>
    register(name, (...args) => within(timeout, () => work(...args)));
}

async function within(timeout: number, work: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const failure = new Promise<never>((_done, fail) => {
    failTest = fail;
    timer = setTimeout(
      () => fail(new Error(`The test did not end within ${timeout / 1000} s`)),
      timeout,
    );
  });
  try {
    await Promise.race([work(), failure]);
  } finally {
    clearTimeout(timer);
    failTest = undefined;
  }
}

// Uncaught errors fail the running test. Without a handler they would end the worker with all its
// files.
let failTest: ((error: unknown) => void) | undefined;
for (const event of ['uncaughtException', 'unhandledRejection']) {
  process.on(event, (error) => {
    if (!failTest) throw error;
    failTest(error);
  });
}
