import { createHash } from 'node:crypto';
import { z } from 'zod';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { KeyedLimit } from '../../core/keyed-limit.ts';
import { deleteUntil, run, type Columns } from '../../database/kysely.ts';
import { DAY_MS } from '../../core/time.ts';
import { IdempotencyKey } from './idempotency-key.entity.ts';
import { countStored } from './stored-bytes.ts';

/** Retention of a key, in ms. */
const RETENTION_MS = DAY_MS;

/** Running calls by key, for each database. */
const locks = new WeakMap<object, KeyedLimit>();

/** An `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/)
  .optional()
  .meta({
    description:
      'A unique text of 1 to 255 visible ASCII characters. A request repeated with the same key and body is executed once.',
  });

/**
 * Runs the work once per key of the caller and stores its result in the same transaction. A
 * repeated key with the same input returns the stored result; with another input it throws
 * BAD_USER_INPUT. Concurrent calls wait for the first one. Without a key, the work simply runs.
 */
export async function idempotent<T>(
  ctx: Context,
  key: string | undefined,
  input: unknown,
  work: (ctx: Context) => Promise<T>,
): Promise<T> {
  if (key === undefined) return work(ctx);
  const caller = ctx.caller ? `user:${ctx.caller.pk}` : `anonymous:${ctx.network ?? ''}`;
  const fingerprint = fingerprintOf(input);
  // Calls with the same key wait in the process, because waiting in the database takes a
  // connection.
  const connection = ctx.em.getConnection();
  const lock = locks.get(connection) ?? new KeyedLimit();
  locks.set(connection, lock);
  return lock.run(`${caller} ${key}`, () => {
    // The client would not receive the result.
    if (ctx.request?.signal.aborted) throw new DomainError('TIMEOUT', 'The request was cancelled');
    return runOnce(ctx, caller, key, fingerprint, work);
  });
}

function fingerprintOf(input: unknown): Buffer {
  try {
    return createHash('sha256').update(JSON.stringify(input, sortMembers)).digest();
  } catch (error) {
    // JSON.stringify overflows the stack on deeply nested values.
    if (error instanceof RangeError)
      throw keyError('nested_too_deeply', 'The input is nested too deeply');
    throw error;
  }
}

// Inserts the key, runs the work and stores its result, or returns the stored result.
function runOnce<T>(
  ctx: Context,
  caller: string,
  key: string,
  fingerprint: Buffer,
  work: (ctx: Context) => Promise<T>,
): Promise<T> {
  return inTransaction(ctx, async (tx) => {
    const keys = tx.em.getKysely<{ idempotency_key: Columns<IdempotencyKey> }>();
    const insert = keys
      .insertInto('idempotency_key')
      .values({ caller, key, fingerprint, created_at: tx.now() })
      .onConflict((taken) =>
        taken
          .columns(['caller', 'key'])
          .doUpdateSet({ fingerprint, created_at: tx.now() })
          .where('idempotency_key.created_at', '<=', cutoff(tx)),
      )
      .returning('key');
    if ((await run(tx, insert)).length === 0) {
      const [stored] = await run(
        tx,
        keys
          .selectFrom('idempotency_key')
          .select(['fingerprint', 'answer'])
          .where((eb) => eb.and({ caller, key })),
      );
      if (!stored?.fingerprint.equals(fingerprint))
        throw keyError('idempotency_key_reused', 'The key was used for another request');
      // The same input was processed by the same work, so the type matches.
      return stored.answer as T;
    }
    const result = await work(tx);
    const answer = JSON.stringify(result);
    await countStored(caller, Buffer.byteLength(answer));
    await run(
      tx,
      keys
        .updateTable('idempotency_key')
        .set({ answer })
        .where((eb) => eb.and({ caller, key })),
    );
    return result;
  });
}

/** Deletes the keys older than a day. Returns their number. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'idempotency_key', 'created_at', cutoff(ctx));
}

// A JSON.stringify replacer that sorts members, because their order is irrelevant.
function sortMembers(_name: string, value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}

function keyError(type: string, message: string): DomainError {
  return new DomainError('BAD_USER_INPUT', message, [
    { field: 'idempotency-key', type, message, part: 'header' },
  ]);
}

function cutoff(ctx: Context): Date {
  return new Date(ctx.now().getTime() - RETENTION_MS);
}
