import { createHash } from 'node:crypto';
import { z } from 'zod';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { execute, sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { countStored } from './stored-bytes.ts';
import { withKeyLock } from './key-lock.ts';

/** Retention of a key, in ms. */
const RETENTION_MS = DAY_MS;

/** An `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/)
  .optional()
  .meta({
    description:
      'A unique text of 1 to 255 visible ASCII characters. A request repeated with the same key and body is executed once.',
  });

interface Stored extends Record<string, unknown> {
  fingerprint: Buffer;
  answer: unknown;
}

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
  return withKeyLock(ctx, `${caller} ${key}`, fingerprint.toString('base64'), () =>
    runOnce(ctx, caller, key, fingerprint, work),
  );
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
    const inserted = await execute(
      tx.em,
      sql`
      insert into idempotency_key (caller, key, fingerprint, created_at) values (${caller}, ${key}, ${fingerprint}, ${tx.now()})
      on conflict (caller, key) do update set fingerprint = excluded.fingerprint, created_at = excluded.created_at
      where idempotency_key.created_at <= ${cutoff(tx)} returning 1`,
    );
    if (inserted.rows.length === 0) {
      const { rows } = await execute(
        tx.em,
        sql`select fingerprint, answer from idempotency_key where caller = ${caller} and key = ${key}`,
      );
      const stored = rows[0] as Stored | undefined;
      if (!stored?.fingerprint.equals(fingerprint))
        throw keyError('idempotency_key_reused', 'The key was used for another request');
      // The same input was processed by the same work, so the type matches.
      return stored.answer as T;
    }
    const result = await work(tx);
    const text = JSON.stringify(result);
    await countStored(caller, Buffer.byteLength(text));
    await execute(
      tx.em,
      sql`update idempotency_key set answer = ${text}::jsonb where caller = ${caller} and key = ${key}`,
    );
    return result;
  });
}

/** Deletes the keys older than a day. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from idempotency_key where created_at <= ${cutoff(ctx)}`,
  );
  return affected;
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
