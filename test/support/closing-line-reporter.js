/** Names the tests that did not pass at their first try, and ends the run with one plain line that any tool can read. */
export default class ClosingLineReporter {
  onRunComplete(_contexts, { testResults, numPassedTests, numFailedTests, numRuntimeErrorTestSuites }) {
    const again = testResults.flatMap(({ testResults: tests }) => tests).filter(({ invocations = 1 }) => invocations > 1);
    // A file that could not be run has failed, though none of its tests did.
    // At the exit, for the summary of other reporters follows this call.
    process.once('exit', () => {
      for (const { status, fullName } of again) console.log(`${status} at a further try: ${fullName}`);
      console.log(`${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed`);
    });
  }
}
