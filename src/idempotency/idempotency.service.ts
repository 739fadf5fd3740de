import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { z } from 'zod';
import { inTransaction, type Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';

/** How long a key is remembered, in ms. */
const REMEMBERED_MS = 24 * 3_600_000;

/** An `Idempotency-Key`: 1 to 255 visible ASCII characters. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/)
  .optional();

interface Stored {
  fingerprint: Buffer;
  answer: unknown;
}

/**
 * Does the work once for each key of the caller, in one transaction with keeping its answer: the same key and input again
 * answers as the first time, with `again` true; the same key with another input is BAD_USER_INPUT. Of several at once, one
 * works and the others wait for it. Without a key, it just does the work.
 */
export async function once<T>(
  ctx: Context,
  key: string | undefined,
  input: unknown,
  work: (tx: Context) => Promise<T>,
): Promise<T | { answered: unknown }> {
  if (key === undefined) return inTransaction(ctx, work);
  const caller = ctx.caller ? `user:${ctx.caller.pk}` : 'anonymous';
  const fingerprint = createHash('sha256').update(JSON.stringify(input)).digest();
  return inTransaction(ctx, async (tx) => {
    const db = tx.em.getKysely();
    await sql`delete from idempotency_key where caller = ${caller} and key = ${key} and created_at <= ${horizon(tx)}`.execute(db);
    const taken = await sql`
      insert into idempotency_key (caller, key, fingerprint, created_at) values (${caller}, ${key}, ${fingerprint}, ${tx.now()})
      on conflict do nothing returning key`.execute(db);
    if (taken.rows.length === 0) {
      const { rows } = await sql<Stored>`select fingerprint, answer from idempotency_key where caller = ${caller} and key = ${key}`.execute(
        db,
      );
      if (!rows[0]?.fingerprint.equals(fingerprint)) throw reused();
      return { answered: rows[0].answer };
    }
    const answer = await work(tx);
    await sql`update idempotency_key set answer = ${JSON.stringify(answer)}::jsonb where caller = ${caller} and key = ${key}`.execute(db);
    return answer;
  });
}

/** Forgets the keys that are older than a day. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { numAffectedRows } = await sql`delete from idempotency_key where created_at <= ${horizon(ctx)}`.execute(ctx.em.getKysely());
  return Number(numAffectedRows ?? 0);
}

function reused(): DomainError {
  const message = 'The key was used for another request';
  return new DomainError('BAD_USER_INPUT', message, [
    { field: 'idempotency-key', type: 'idempotency_key_reused', message, part: 'header' },
  ]);
}

function horizon(ctx: Context): Date {
  return new Date(ctx.now().getTime() - REMEMBERED_MS);
}
