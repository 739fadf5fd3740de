import { randomBytes, randomUUID } from 'node:crypto';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import { selectEntities } from '../../database/row-mapper.ts';
import { execute, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { check } from '../../core/validation.ts';
import { changeInBatches, NEW_MESSAGE_ID } from './delivery.service.ts';
import { TEST_EVENT } from './event-serializers.ts';
import { rejectionReason } from './url-policy.ts';
import { Webhook } from './webhook.entity.ts';
import { newWebhook, type NewWebhook } from './webhook.rules.ts';

const SECRET_BYTES = 32;
/** Time for which messages are also signed with the previous secret, in ms. */
const SECRET_OVERLAP_MS = DAY_MS;

/** Id and new signing secret of a webhook. The secret is shown once. */
export interface WebhookSecret {
  webhookId: string;
  secret: string;
}

/**
 * Adds a webhook, which receives the events committed from now on. Throws BAD_USER_INPUT, also for
 * a URL that the URL policy rejects.
 */
export async function add(ctx: Context, input: NewWebhook): Promise<WebhookSecret> {
  const { url, description, events: kinds } = check(newWebhook, input);
  const rejection = rejectionReason(url, ctx.config);
  if (rejection !== undefined) throw badInput('url', rejection);
  const webhook = { webhookId: randomUUID(), secret: newSecret() };
  await execute(
    ctx.em,
    sql`
    insert into webhook (webhook_id, url, description, events, secret, created_at)
    values (${webhook.webhookId}::uuid, ${new URL(url).href}, ${description ?? null}, ${[...new Set(kinds)]}::text[], ${webhook.secret}, ${ctx.now()})`,
  );
  return webhook;
}

/** Lists all webhooks, oldest first, without their secrets. */
export function listAll(ctx: Context): Promise<Webhook[]> {
  return selectEntities(ctx, Webhook, sql`true order by created_at, pk`);
}

/** Enables a webhook for new events and resumes its pending deliveries. Throws NOT_FOUND. */
export async function enable(ctx: Context, webhookId: string): Promise<void> {
  const since = sql`case when is_enabled then since else pg_current_snapshot() end`;
  await inTransaction(ctx, async (tx) => {
    // The time while the webhook was disabled does not count as waiting for the receiver.
    const now = tx.now();
    await changeInBatches(
      tx,
      sql`update webhook_delivery set due_at = ${now}`,
      sql`webhook_id::text = ${webhookId} and not is_enabled and due_at < ${now}`,
    );
    await change(tx, webhookId, sql`update webhook set is_enabled = true, since = ${since}`);
  });
}

/** Disables a webhook. Pending deliveries remain. Throws NOT_FOUND. */
export async function disable(ctx: Context, webhookId: string): Promise<void> {
  await change(ctx, webhookId, sql`update webhook set is_enabled = false`);
}

/** Deletes a webhook and all its deliveries. Throws NOT_FOUND. */
export async function remove(ctx: Context, webhookId: string): Promise<void> {
  await changeInBatches(
    ctx,
    sql`delete from webhook_delivery`,
    sql`webhook_id::text = ${webhookId}`,
  );
  await change(ctx, webhookId, sql`delete from webhook`);
}

/**
 * Replaces the secret of a webhook. Messages are signed with both secrets for a day. Throws
 * NOT_FOUND.
 */
export async function rotateSecret(ctx: Context, webhookId: string): Promise<WebhookSecret> {
  const secret = newSecret();
  const until = new Date(ctx.now().getTime() + SECRET_OVERLAP_MS);
  await change(
    ctx,
    webhookId,
    sql`update webhook set previous_secret = secret, previous_until = ${until}, secret = ${secret}`,
  );
  return { webhookId, secret };
}

/**
 * Enqueues a test message, whatever events the webhook receives. Returns the id of the message.
 * Throws NOT_FOUND.
 */
export async function test(ctx: Context, webhookId: string): Promise<string> {
  const now = ctx.now();
  const { rows } = await execute(
    ctx.em,
    sql`
    insert into webhook_delivery (message_id, webhook_pk, kind, at, subject, due_at)
    select ${NEW_MESSAGE_ID}, pk, ${TEST_EVENT}, ${now}::timestamptz, webhook_id::text, ${now}::timestamptz from webhook where webhook_id::text = ${webhookId} returning message_id`,
  );
  if (!rows[0]) throw notFound(webhookId);
  return String(rows[0]['message_id']);
}

async function change(ctx: Context, webhookId: string, statement: Sql): Promise<void> {
  const { affected } = await execute(
    ctx.em,
    sql`${statement} where webhook_id::text = ${webhookId}`,
  );
  if (affected === 0) throw notFound(webhookId);
}

function notFound(webhookId: string): DomainError {
  return new DomainError('NOT_FOUND', `Webhook ${webhookId} not found`);
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
