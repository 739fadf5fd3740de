import pRetry from 'p-retry';

const RETRIES = 3;
/** How long the first retry waits, in ms: up to twice as long by chance, so that those who met do not meet again; each further one waits longer. */
const FIRST_MS = 20;

/**
 * Does a whole transaction, and again, three times at most, where PostgreSQL has undone it because of others at work at the same time.
 * What else goes wrong is thrown: where a connection is lost, nobody knows what has been done.
 */
export function retried<T>(transaction: () => Promise<T>): Promise<T> {
  return pRetry(transaction, {
    retries: RETRIES,
    minTimeout: FIRST_MS,
    randomize: true,
    shouldRetry: ({ error }) => isConflict(error),
  });
}

/** Whether a transaction was undone for the sake of others: a failed serialization, or a deadlock (PostgreSQL's appendix A, 40001 and 40P01). */
export function isConflict(error: Error): boolean {
  return 'code' in error && (error.code === '40001' || error.code === '40P01');
}
