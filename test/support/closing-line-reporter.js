/** Ends a run with one plain line that any tool can read. */
export default class ClosingLineReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numRuntimeErrorTestSuites }) {
    // A file that could not be run has failed, though none of its tests did.
    // At the exit, because the summary of other reporters follows this call.
    process.once('exit', () => console.log(`${numPassedTests} passed, ${numFailedTests + numRuntimeErrorTestSuites} failed`));
  }
}
