/** Returns `full` if TEST_FULL is "true" (`npm run test:all`), else the smaller `sample`. */
export function sized(full: number, sample: number): number {
  return process.env['TEST_FULL'] === 'true' ? full : sample;
}
