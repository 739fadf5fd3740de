/**
 * The tests run as compiled, like the app itself: the decorators' metadata comes from tsc. The tags in the names of files (test/all.ts)
 * say what runs where; the command chooses among them.
 */
export default {
  testMatch: ['<rootDir>/dist/{packages,test}/**/*.test.js'],
  testEnvironment: 'node',
  transform: {},
  // Runs the files of a worker in one process, as plain Node does: what is imported is loaded once.
  runner: './test/support/runner.js',
  maxWorkers: 2,
  globalSetup: './dist/test/support/global-setup.js',
  globalTeardown: './dist/test/support/global-teardown.js',
  reporters: ['default', './test/support/closing-line-reporter.js'],
};
