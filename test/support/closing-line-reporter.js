/** Prints a last line that any tool can parse. */
export default class ClosingLineReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites }) {
    // A file that could not run counts as failed.
    // At the exit, because the summary of other reporters follows this call.
    process.once('exit', () =>
      console.log(`${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed`),
    );
  }
}
