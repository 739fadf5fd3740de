/** The tests run as compiled, like the app itself: the decorators' metadata comes from tsc. */
export default {
  testMatch: ['<rootDir>/dist/test/**/*.test.js'],
  // What only a PostgreSQL server has: on the embedded database there is nothing of it to test.
  testPathIgnorePatterns: process.env.TEST_DATABASE_URL ? [] : ['\\.pg\\.test\\.js$'],
  testEnvironment: 'node',
  transform: {},
  maxWorkers: 2,
  testTimeout: 30_000,
  globalSetup: './dist/test/support/global-setup.js',
  globalTeardown: './dist/test/support/global-teardown.js',
  reporters: ['default', './test/support/closing-line-reporter.js'],
};
