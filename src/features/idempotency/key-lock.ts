import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';

/** Work in progress for a key. */
interface KeyLock {
  input: string;
  done: Promise<unknown>;
}

const locksByConnection = new WeakMap<object, Map<string, KeyLock>>();

/**
 * Runs the work of each key one at a time in this process. A caller that waited for the same key
 * and input shares the result; if that work failed or its request was cancelled, the next caller
 * runs its own.
 */
export async function withKeyLock<T>(
  ctx: Context,
  key: string,
  input: string,
  work: () => Promise<T>,
): Promise<T> {
  const locks = locksOf(ctx);
  for (let current = locks.get(key); current; current = locks.get(key)) {
    const { input: currentInput, done } = current;
    const outcome = await done.then(
      (result) => ({ result }),
      () => undefined,
    );
    // The same input was processed by the same work, so the type matches.
    if (outcome && currentInput === input) return outcome.result as T;
    // The client would not receive the result.
    if (ctx.request?.signal.aborted) throw new DomainError('TIMEOUT', 'The request was cancelled');
  }
  const lock = { input, done: work() };
  locks.set(key, lock);
  try {
    return await lock.done;
  } finally {
    if (locks.get(key) === lock) locks.delete(key);
  }
}

// Keys belong to one database.
function locksOf({ em }: Context): Map<string, KeyLock> {
  const connection = em.getConnection();
  const locks = locksByConnection.get(connection) ?? new Map<string, KeyLock>();
  locksByConnection.set(connection, locks);
  return locks;
}
