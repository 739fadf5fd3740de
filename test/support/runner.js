import { createRunner } from 'jest-light-runner';

/**
 * Runs the files of a worker in one process. The first file runs alone: a worker requests its data
 * with its first file, and the runner then sends the data to every worker that has a file. One that
 * was still loading would miss it and wait for ever (jest-light-runner 0.8.2).
 */
export default class Runner extends createRunner({ runtime: 'child_process' }) {
  runTests(tests, watcher, onStart, onResult, onFailure) {
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
