import { run, type Columns } from '../../database/kysely.ts';
import { withContext, type Context } from '../../request/context.ts';
import {
  AuditActorKind,
  AuditSubjectKind,
  type AuditEntry,
  type AuditedChange,
} from './audit.entity.ts';

// The audit trail: who did what to accounts and products. Services write an entry in the
// transaction of the action: no action is without its entry, and rejected or rolled-back actions
// have none. Passwords, hashes, keys and tokens are never passed to it.

/** Audited actions, described in `docs/operations.md`. */
export const ACTIONS = [
  'account.created',
  'account.registered',
  'account.disabled',
  'account.enabled',
  'account.scopes_changed',
  'account.password_changed',
  'account.password_reset',
  'account.sessions_ended',
  'api_key.created',
  'api_key.revoked',
  'product.created',
  'product.changed',
  'product.deleted',
  'products.imported',
  'demo.seeded',
  'audit.pruned',
] as const;

export type Action = (typeof ACTIONS)[number];

/** The parts of the context that an entry records: actor, time and request. */
export type Actor = Pick<Context, 'now' | 'caller' | 'operator' | 'requestId' | 'network'>;

/** Subject of an action. */
export interface Subject {
  kind: AuditSubjectKind;
  /** Primary key, or the `keyId` of an API key. */
  key: number | string;
  name: string;
}

/** The table of entries. Changes are JSON text: the driver would write a list as an SQL array. */
interface AuditTable {
  audit_entry: Omit<Columns<AuditEntry>, 'changes'> & { changes: string };
}

/** Values as text by field; null and undefined for none. */
type Values = Readonly<Record<string, string | null | undefined>>;

/** Records an action in the current transaction. */
export async function record(
  tx: Actor & Pick<Context, 'em'>,
  action: Action,
  subject?: Subject,
  changes: readonly AuditedChange[] = [],
): Promise<void> {
  await recordAll(tx, action, [{ subject, changes }]);
}

/** Records an action on each of these subjects, by one statement. */
export async function recordAll(
  tx: Actor & Pick<Context, 'em'>,
  action: Action,
  entries: readonly { subject?: Subject | undefined; changes: readonly AuditedChange[] }[],
): Promise<void> {
  if (entries.length === 0) return;
  const rows = entries.map(({ subject, changes }) => entryOf(tx, action, subject, changes));
  await run(tx, tx.em.getKysely<AuditTable>().insertInto('audit_entry').values(rows));
}

/** Returns the columns of an entry. */
export function entryOf(
  ctx: Actor,
  action: Action,
  subject: Subject | undefined,
  changes: readonly AuditedChange[],
) {
  return {
    at: ctx.now(),
    ...actorOf(ctx),
    action,
    subject_kind: subject?.kind ?? null,
    subject_key: subject ? String(subject.key) : null,
    subject_name: subject?.name ?? null,
    changes: JSON.stringify(changes),
  };
}

/** Returns the fields whose values differ. */
export function diff(before: Values, after: Values): AuditedChange[] {
  return Object.keys({ ...before, ...after })
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

/** Returns the account of a user as subject. */
export function accountOf({ pk, username }: { pk: number; username: string }): Subject {
  return { kind: AuditSubjectKind.USER, key: pk, name: username };
}

/**
 * Returns the context with the owner of a mail token as caller, and therefore as recorded actor.
 */
export function asUser(ctx: Context, { pk, username }: { pk: number; username: string }): Context {
  return withContext(ctx, { caller: { pk, username, scopes: new Set() } });
}

function actorOf({ operator, caller, requestId, network }: Actor) {
  const request = { request_id: requestId, network: network ?? null };
  if (operator !== undefined) return { actor_kind: AuditActorKind.OPERATOR, actor_name: operator };
  if (!caller) return { actor_kind: AuditActorKind.ANONYMOUS, ...request };
  const { username, pk, apiKeyId: apiKey } = caller;
  const kind = apiKey === undefined ? AuditActorKind.USER : AuditActorKind.API_KEY;
  return {
    actor_kind: kind,
    actor_name: username,
    actor_pk: pk,
    api_key: apiKey ?? null,
    ...request,
  };
}
