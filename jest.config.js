/** The tests run as compiled, like the app itself: the decorators' metadata comes from tsc. */
export default {
  testMatch: ['<rootDir>/dist/test/**/*.test.js'],
  testPathIgnorePatterns: [
    // What only a PostgreSQL server has: on the embedded database there is nothing of it to test.
    // What starts the app as a process of its own does so on the embedded database, unless it is named so. What is kept
    // of documents knows nothing of a database.
    ...(process.env.TEST_DATABASE_URL
      ? ['dist/test/(docs|examples|process)/(?!mail)[^/]*(?<!\\.pg)\\.test\\.js$', 'cli/documents', 'abuse\\.memory']
      : ['\\.pg\\.test\\.js$']),
    // What needs a browser: see `npm run test:browser`.
    ...(process.env.TEST_BROWSER ? [] : ['dist/test/browser/']),
    // What knows nothing of shortcuts, and attacks: shortcuts answer only what goes well, so that these go the ordinary way as it is.
    ...(process.env.TEST_SHORTCUTS
      ? [
          'plans\\.pg',
          'auth/(password|throttle)',
          'server/(event-stream|log-lines|openapi|schema|subscriptions|telemetry|web-socket)',
          'products/(import|product\\.rules|seen-barcodes)',
          'test/(accounts|api-keys|attacks|audit|changes|cli|contract|database|deploy|docs|examples|kit|mail|process|webhooks)/',
        ]
      : []),
  ],
  testEnvironment: 'node',
  transform: {},
  // Runs the files of a worker in one process, as plain Node does: what is imported is loaded once.
  runner: ['jest-light-runner', { runtime: 'child_process' }],
  maxWorkers: 2,
  globalSetup: './dist/test/support/global-setup.js',
  globalTeardown: './dist/test/support/global-teardown.js',
  reporters: ['default', './test/support/attack-reporter.js', './test/support/closing-line-reporter.js'],
};
