import { withContext, type Context } from '../../request/context.ts';
import { execute, join, raw, sql, type Sql } from '../../database/sql.ts';
import { AuditActorKind, AuditSubjectKind, type AuditedChange } from './audit.entity.ts';

// The audit trail: who did what to accounts and products. Services write an entry in the
// transaction of the action, or in the same statement: no action is without its entry, and rejected
// or rolled-back actions have none. Passwords, hashes, keys and tokens are never passed to it.

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

/** Columns of the rows of a statement. Each row is a subject. */
export interface SubjectRows {
  from: Sql;
  kind: AuditSubjectKind;
  key: Sql;
  name: Sql;
  changes: Sql;
}

/** Values as text by field; null and undefined for none. */
type Values = Readonly<Record<string, string | null | undefined>>;

/** Records an action in the current transaction. */
export async function record(
  tx: Actor & Pick<Context, 'em'>,
  action: Action,
  subject?: Subject,
  changes?: readonly AuditedChange[],
): Promise<void> {
  await execute(tx.em, recordStatement(tx, action, subject, changes));
}

/** Returns the statement that records an action. */
export function recordStatement(
  ctx: Actor,
  action: Action,
  subject?: Subject,
  changes: readonly AuditedChange[] = [],
): Sql {
  const { kind, key, name } = subject ?? {};
  return insertEntries(
    ctx,
    action,
    kind,
    sql`${key?.toString() ?? null}::text, ${name ?? null}::text, ${JSON.stringify(changes)}::jsonb`,
  );
}

/**
 * Returns the statement that records an action for each row. As part of the statement of the
 * action, it needs no explicit transaction.
 */
export function recordEach(
  ctx: Actor,
  action: Action,
  { from, kind, key, name, changes }: SubjectRows,
): Sql {
  return insertEntries(ctx, action, kind, sql`${key}::text, ${name}, ${changes} ${from}`);
}

/** Returns the fields whose values differ. */
export function diff(before: Values, after: Values): AuditedChange[] {
  return Object.keys({ ...before, ...after })
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

/**
 * Like `diff`, in SQL, for values that were all added or all removed. `optional` values may be null.
 */
export function changesOf(
  side: 'before' | 'after',
  values: Readonly<Record<string, Sql>>,
  optional: Readonly<Record<string, Sql>> = {},
): Sql {
  const other = side === 'before' ? 'after' : 'before';
  const changeOf = ([field, value]: [string, Sql]) =>
    sql`jsonb_build_object(${raw(`'field', '${field}', '${other}', null, '${side}'`)}, ${value})`;
  return Object.entries(optional).reduce(
    (changes, [field, value]) =>
      sql`${changes} || case when ${value} is null then '[]' else ${changeOf([field, value])} end`,
    sql`jsonb_build_array(${join(Object.entries(values).map(changeOf))})`,
  );
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

function insertEntries(
  ctx: Actor,
  action: Action,
  kind: AuditSubjectKind | undefined,
  rest: Sql,
): Sql {
  return sql`
    insert into audit_entry (at, actor_kind, actor_name, actor_pk, api_key, request_id, network, action, subject_kind, subject_key, subject_name, changes)
    select ${ctx.now()}::timestamptz, ${actorOf(ctx)}, ${action}::text, ${kind ?? null}::text, ${rest}`;
}

// Returns the columns for kind, name, primary key, API key, request and network.
function actorOf({ operator, caller, requestId, network }: Actor): Sql {
  if (operator !== undefined)
    return sql`${AuditActorKind.OPERATOR}::text, ${operator}::text, null::bigint, null::uuid, null, null`;
  const request = sql`${requestId}::text, ${network ?? null}::text`;
  if (!caller)
    return sql`${AuditActorKind.ANONYMOUS}::text, null, null::bigint, null::uuid, ${request}`;
  const { username, pk, apiKeyId } = caller;
  const kind = apiKeyId === undefined ? AuditActorKind.USER : AuditActorKind.API_KEY;
  return sql`${kind}::text, ${username}::text, ${pk}::bigint, ${apiKeyId ?? null}::uuid, ${request}`;
}
