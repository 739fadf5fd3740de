import { randomBytes, randomUUID } from 'node:crypto';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import type { TellEvent } from '../../api/event-serializer.ts';
import { selectEntities } from '../../database/row-mapper.ts';
import { execute, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { check } from '../../core/validation.ts';
import { changeAll, NEW_MID } from './delivery.service.ts';
import { refusalOf } from './url-policy.ts';
import { Webhook } from './webhook.entity.ts';
import { newWebhook, type NewWebhook } from './webhook.rules.ts';

const TEST = 'webhook.test';
const SECRET_BYTES = 32;
/** For how long messages are signed with the secret before, too, in ms. */
const OVERLAP_MS = DAY_MS;

/** What is told by what an operator sends to try a webhook. */
export const events: Readonly<Record<string, TellEvent>> = { [TEST]: ({ subject }) => ({ webhook: subject }) };

/** A webhook's id, and the secret that its messages are signed with from now on, which is shown once. */
export interface Given {
  wid: string;
  secret: string;
}

/** Adds a webhook, which is told of what happens from now on. Throws BAD_USER_INPUT, also for an address that nothing may be sent to. */
export async function add(ctx: Context, input: NewWebhook): Promise<Given> {
  const { url, description, events: kinds } = check(newWebhook, input);
  const refusal = refusalOf(url, ctx.config);
  if (refusal !== undefined) throw badInput('url', refusal);
  const given = { wid: randomUUID(), secret: newSecret() };
  await execute(
    ctx.em,
    sql`
    insert into webhook (wid, url, description, events, secret, created_at)
    values (${given.wid}::uuid, ${new URL(url).href}, ${description ?? null}, ${[...new Set(kinds)]}::text[], ${given.secret}, ${ctx.now()})`,
  );
  return given;
}

/** All webhooks, the first first. Their secrets are not read. */
export function listAll(ctx: Context): Promise<Webhook[]> {
  return selectEntities(ctx, Webhook, sql`true order by created_at, pk`);
}

/** Has it told of what happens from now on, and of what still waited for it. Throws NOT_FOUND. */
export async function enable(ctx: Context, wid: string): Promise<void> {
  const since = sql`case when is_enabled then since else pg_current_snapshot() end`;
  await inTransaction(ctx, async (tx) => {
    // From now on it waits for the receiver; until now it waited for this.
    const now = tx.now();
    await changeAll(tx, sql`update webhook_delivery set due_at = ${now}`, sql`wid::text = ${wid} and not is_enabled and due_at < ${now}`);
    await change(tx, wid, sql`update webhook set is_enabled = true, since = ${since}`);
  });
}

/** Has it told of nothing any more. What waits for it stays. Throws NOT_FOUND. */
export async function disable(ctx: Context, wid: string): Promise<void> {
  await change(ctx, wid, sql`update webhook set is_enabled = false`);
}

/** Forgets it, and all that was on its way there. Throws NOT_FOUND. */
export async function remove(ctx: Context, wid: string): Promise<void> {
  await changeAll(ctx, sql`delete from webhook_delivery`, sql`wid::text = ${wid}`);
  await change(ctx, wid, sql`delete from webhook`);
}

/** Gives it another secret. For a day, messages are signed with the one before, too. Throws NOT_FOUND. */
export async function rotateSecret(ctx: Context, wid: string): Promise<Given> {
  const secret = newSecret();
  const until = new Date(ctx.now().getTime() + OVERLAP_MS);
  await change(ctx, wid, sql`update webhook set previous_secret = secret, previous_until = ${until}, secret = ${secret}`);
  return { wid, secret };
}

/** Asks for a message to try it with, whatever events it is told of, and answers the message's id. Throws NOT_FOUND. */
export async function test(ctx: Context, wid: string): Promise<string> {
  const now = ctx.now();
  const { rows } = await execute(
    ctx.em,
    sql`
    insert into webhook_delivery (mid, webhook_pk, kind, at, subject, due_at)
    select ${NEW_MID}, pk, ${TEST}, ${now}::timestamptz, wid::text, ${now}::timestamptz from webhook where wid::text = ${wid} returning mid`,
  );
  if (!rows[0]) throw noSuchWebhook(wid);
  return String(rows[0]['mid']);
}

async function change(ctx: Context, wid: string, statement: Sql): Promise<void> {
  const { affected } = await execute(ctx.em, sql`${statement} where wid::text = ${wid}`);
  if (affected === 0) throw noSuchWebhook(wid);
}

function noSuchWebhook(wid: string): DomainError {
  return new DomainError('NOT_FOUND', `There is no webhook ${wid}`);
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
