import { AsyncLocalStorage } from 'node:async_hooks';
import { databaseChannel, type DatabaseCall } from '../core/tracing-channels.ts';

const counts = new AsyncLocalStorage<{ statements: number }>();
/** Number of running works that are counted. Without any, the channel has no subscriber. */
let running = 0;

/** Runs the work, within which `countedStatements` returns the number of its statements. */
export async function countStatements<T>(work: () => Promise<T>): Promise<T> {
  if (running++ === 0) databaseChannel.start.subscribe(count);
  try {
    return await counts.run({ statements: 0 }, work);
  } finally {
    if (--running === 0) databaseChannel.start.unsubscribe(count);
  }
}

/** Returns the number of database statements so far; undefined if they are not counted. */
export function countedStatements(): number | undefined {
  return counts.getStore()?.statements;
}

function count(message: unknown): void {
  const current = counts.getStore();
  // The statements of a transaction are published one by one.
  if (current && (message as DatabaseCall).kind !== 'transaction') current.statements++;
}
