import { createRunner } from 'jest-light-runner';

const NEEDS_SERVER = /\.pg\.(\w+\.)*test\.js$/;
const NO_SERVER =
  'This file needs a PostgreSQL server: node dist/test/on-server.js jest FILE, or set TEST_DATABASE_URL';

/**
 * Runs the files of a worker in one process. The first file runs alone: a worker requests its data
 * with its first file, and the runner then sends the data to every worker that has a file. One that
 * was still loading would miss it and wait for ever (jest-light-runner 0.8.2).
 */
export default class Runner extends createRunner({ runtime: 'child_process' }) {
  async runTests(all, watcher, onStart, onResult, onFailure) {
    const hasServer = Boolean(process.env.TEST_DATABASE_URL);
    const tests = all.filter(({ path }) => hasServer || !NEEDS_SERVER.test(path));
    for (const test of all.filter((each) => !tests.includes(each))) {
      await onStart(test);
      await onFailure(test, { message: NO_SERVER, stack: NO_SERVER });
    }
    if (tests.length === 0) return undefined;
    const first = Promise.withResolvers();
    const once = (listener) => (test, outcome) => {
      first.resolve();
      return listener(test, outcome);
    };
    const start = async (test) => {
      if (test !== shortest) await first.promise;
      return onStart(test);
    };
    // Jest sorts the files by their last durations.
    const [shortest] = tests.slice(-1);
    const ordered = [...tests.slice(-1), ...tests.slice(0, -1)];
    return super.runTests(ordered, watcher, start, once(onResult), once(onFailure));
  }
}
