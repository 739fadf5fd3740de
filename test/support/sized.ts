/** `full` where TEST_FULL is "true" (`npm run test:all`), else `sample`: a smaller count for which the same rule holds. */
export function sized(full: number, sample: number): number {
  return process.env['TEST_FULL'] === 'true' ? full : sample;
}
