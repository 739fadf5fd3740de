/** Maximum number of rows per statement. More could exceed the time limit of a statement. */
export const BATCH_SIZE = 5_000;
/** Maximum number of batches per sweep. The next sweep continues. */
const MAX_BATCHES = 50;

/**
 * Runs batches until one has fewer rows than BATCH_SIZE or `maxBatches` have run. Returns the total
 * number of rows.
 */
export async function inBatches(
  runBatch: () => Promise<number>,
  maxBatches = MAX_BATCHES,
): Promise<number> {
  let total = 0;
  for (let batch = 0; batch < maxBatches; batch++) {
    const count = await runBatch();
    total += count;
    if (count < BATCH_SIZE) break;
  }
  return total;
}
