/** The tests run as compiled, like the app itself: the decorators' metadata comes from tsc. */
export default {
  testMatch: ['<rootDir>/dist/test/**/*.test.js'],
  testPathIgnorePatterns: [
    // What only a PostgreSQL server has: on the embedded database there is nothing of it to test.
    ...(process.env.TEST_DATABASE_URL ? [] : ['\\.pg\\.test\\.js$']),
    // What needs a browser: see `npm run test:browser`.
    ...(process.env.TEST_BROWSER ? [] : ['dist/test/browser/']),
    // What takes its time, or knows nothing of shortcuts.
    ...(process.env.TEST_SHORTCUTS
      ? [
          '\\.(slow|timing|deep|memory)\\.test\\.js$',
          'attacks/(fuzz|logins|passwords|throttling|http)',
          'test/(cli|contract|database|docs|examples|process)/',
        ]
      : []),
  ],
  testEnvironment: 'node',
  transform: {},
  maxWorkers: 2,
  // A hang is caught; a busy machine is not taken for one.
  testTimeout: 60_000,
  setupFilesAfterEnv: ['./dist/test/support/retries.js'],
  globalSetup: './dist/test/support/global-setup.js',
  globalTeardown: './dist/test/support/global-teardown.js',
  reporters: ['default', './test/support/attack-reporter.js', './test/support/closing-line-reporter.js'],
};
