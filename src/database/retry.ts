import pRetry from 'p-retry';

/** Maximum number of retries. */
const RETRIES = 3;
/**
 * Delay of the first retry, in ms. Randomized to up to twice as long, so that the same transactions
 * do not conflict again. Each further delay is longer.
 */
const FIRST_DELAY_MS = 20;

/**
 * Runs a whole transaction. Retries it if PostgreSQL has rolled it back because of concurrent
 * transactions. Throws other errors: after a lost connection, the outcome is unknown.
 */
export function withRetries<T>(transaction: () => Promise<T>): Promise<T> {
  return pRetry(transaction, {
    retries: RETRIES,
    minTimeout: FIRST_DELAY_MS,
    randomize: true,
    shouldRetry: ({ error }) => isConflict(error),
  });
}

/**
 * Returns whether a transaction was rolled back because of others: a serialization failure or a
 * deadlock (PostgreSQL, appendix A, 40001 and 40P01).
 */
export function isConflict(error: Error): boolean {
  return 'code' in error && (error.code === '40001' || error.code === '40P01');
}
