import { createHash } from 'node:crypto';
import { z } from 'zod';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { execute, sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { countStored } from './stored-bytes.ts';
import { inTurn } from './key-lock.ts';

/** How long a key is remembered, in ms. */
const REMEMBERED_MS = DAY_MS;

/** An `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/)
  .optional()
  .meta({ description: 'Any text of your own, 1 to 255 visible characters: sent again with the same body, the request is done once.' });

interface Stored extends Record<string, unknown> {
  fingerprint: Buffer;
  answer: unknown;
}

/**
 * Does the work once for each key of the caller, in one transaction with keeping its answer: the same key and input again
 * answers as the first time; the same key with another input is BAD_USER_INPUT. Of several at once, one
 * works and the others wait for it. Without a key, it just does the work.
 */
export async function once<T>(ctx: Context, key: string | undefined, input: unknown, work: (ctx: Context) => Promise<T>): Promise<T> {
  if (key === undefined) return work(ctx);
  const caller = ctx.caller ? `user:${ctx.caller.pk}` : `anonymous:${ctx.network ?? ''}`;
  const fingerprint = fingerprintOf(input);
  // Waiting for another in the database takes a connection. Equal ones of this process wait here.
  return inTurn(ctx, `${caller} ${key}`, fingerprint.toString('base64'), () => kept(ctx, caller, key, fingerprint, work));
}

function fingerprintOf(input: unknown): Buffer {
  try {
    return createHash('sha256').update(JSON.stringify(input, inOrder)).digest();
  } catch (error) {
    // Values can nest deeper than the stack allows to write them.
    if (error instanceof RangeError) throw keyError('nested_too_deeply', 'The input is nested too deeply');
    throw error;
  }
}

function kept<T>(ctx: Context, caller: string, key: string, fingerprint: Buffer, work: (ctx: Context) => Promise<T>): Promise<T> {
  return inTransaction(ctx, async (tx) => {
    const taken = await execute(
      tx.em,
      sql`
      insert into idempotency_key (caller, key, fingerprint, created_at) values (${caller}, ${key}, ${fingerprint}, ${tx.now()})
      on conflict (caller, key) do update set fingerprint = excluded.fingerprint, created_at = excluded.created_at
      where idempotency_key.created_at <= ${horizon(tx)} returning 1`,
    );
    if (taken.rows.length === 0) {
      const { rows } = await execute(tx.em, sql`select fingerprint, answer from idempotency_key where caller = ${caller} and key = ${key}`);
      const stored = rows[0] as Stored | undefined;
      if (!stored?.fingerprint.equals(fingerprint)) throw keyError('idempotency_key_reused', 'The key was used for another request');
      // The same input was answered by the same work.
      return stored.answer as T;
    }
    const answer = await work(tx);
    const text = JSON.stringify(answer);
    await countStored(caller, Buffer.byteLength(text));
    await execute(tx.em, sql`update idempotency_key set answer = ${text}::jsonb where caller = ${caller} and key = ${key}`);
    return answer;
  });
}

/** Forgets the keys that are older than a day. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from idempotency_key where created_at <= ${horizon(ctx)}`);
  return affected;
}

// The order of the members of an object means nothing.
function inOrder(_name: string, value: unknown): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;
}

function keyError(type: string, message: string): DomainError {
  return new DomainError('BAD_USER_INPUT', message, [{ field: 'idempotency-key', type, message, part: 'header' }]);
}

function horizon(ctx: Context): Date {
  return new Date(ctx.now().getTime() - REMEMBERED_MS);
}
