import { changed, type Context } from '../../request/context.ts';
import { execute, join, raw, sql, type Sql } from '../../database/sql.ts';
import { AuditActorKind, AuditSubjectKind, type AuditedChange } from './audit.entity.ts';

// The audit trail: who did what to accounts and products. The services write it in the transaction of the deed, or in its very statement: there is no deed
// without its entry, and no entry of what was refused or undone. Passwords, hashes, keys and tokens are never handed to it.

/** What is noted. `docs/audit.md` says when. */
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

/** What an entry takes from the context: who acts, when, and in which request. */
export type Acting = Pick<Context, 'now' | 'caller' | 'operator' | 'requestId' | 'network'>;

/** What something is done to. */
export interface Subject {
  kind: AuditSubjectKind;
  /** What tells it from others of its kind: a primary key, or a `kid`. */
  key: number | string;
  name: string;
}

/** Rows of the statement at hand, each of them a subject, by their columns. */
export interface SubjectRows {
  from: Sql;
  kind: AuditSubjectKind;
  key: Sql;
  name: Sql;
  changes: Sql;
}

/** Facts as text, by what they are about; null and undefined for none. */
type Facts = Readonly<Record<string, string | null | undefined>>;

/** Notes a deed in the transaction at hand. */
export async function note(
  tx: Acting & Pick<Context, 'em'>,
  action: Action,
  subject?: Subject,
  changes?: readonly AuditedChange[],
): Promise<void> {
  await execute(tx.em, noting(tx, action, subject, changes));
}

/** The statement that notes a deed. */
export function noting(ctx: Acting, action: Action, subject?: Subject, changes: readonly AuditedChange[] = []): Sql {
  const { kind, key, name } = subject ?? {};
  return entries(ctx, action, kind, sql`${key?.toString() ?? null}::text, ${name ?? null}::text, ${JSON.stringify(changes)}::jsonb`);
}

/** The statement that notes a deed for each of the rows: a part of the one that does it, which then needs no transaction around it. */
export function notingEach(ctx: Acting, action: Action, { from, kind, key, name, changes }: SubjectRows): Sql {
  return entries(ctx, action, kind, sql`${key}::text, ${name}, ${changes} ${from}`);
}

/** What these facts were and what they have become, where that differs. */
export function differences(before: Facts, after: Facts): AuditedChange[] {
  return Object.keys({ ...before, ...after })
    .map((field) => ({ field, before: before[field] ?? null, after: after[field] ?? null }))
    .filter((change) => change.before !== change.after);
}

/** As `differences`, in SQL, of facts that all come, or all go. */
export function changesOf(side: 'before' | 'after', facts: Readonly<Record<string, Sql>>): Sql {
  const other = side === 'before' ? 'after' : 'before';
  const each = Object.entries(facts).map(
    ([field, fact]) => sql`jsonb_build_object(${raw(`'field', '${field}', '${other}', null, '${side}'`)}, ${fact})`,
  );
  return sql`jsonb_build_array(${join(each)})`;
}

/** The account of a user, as a subject. */
export function accountOf({ pk, username }: { pk: number; username: string }): Subject {
  return { kind: AuditSubjectKind.USER, key: pk, name: username };
}

/** The context of a user who came with a token from a mail in place of credentials: what is done is that one's own deed. */
export function asUser(ctx: Context, { pk, username }: { pk: number; username: string }): Context {
  return changed(ctx, { caller: { pk, username, scopes: new Set() } });
}

function entries(ctx: Acting, action: Action, kind: AuditSubjectKind | undefined, rest: Sql): Sql {
  return sql`
    insert into audit_entry (at, actor_kind, actor_name, actor_pk, api_key, request_id, network, action, subject_kind, subject_key, subject_name, changes)
    select ${ctx.now()}::timestamptz, ${actorOf(ctx)}, ${action}::text, ${kind ?? null}::text, ${rest}`;
}

// Kind, name, primary key, API key, request and network.
function actorOf({ operator, caller, requestId, network }: Acting): Sql {
  if (operator !== undefined) return sql`${AuditActorKind.OPERATOR}::text, ${operator}::text, null::integer, null::uuid, null, null`;
  const request = sql`${requestId}::text, ${network ?? null}::text`;
  if (!caller) return sql`${AuditActorKind.ANONYMOUS}::text, null, null::integer, null::uuid, ${request}`;
  const { username, pk, apiKeyId } = caller;
  const kind = apiKeyId === undefined ? AuditActorKind.USER : AuditActorKind.API_KEY;
  return sql`${kind}::text, ${username}::text, ${pk}::integer, ${apiKeyId ?? null}::uuid, ${request}`;
}
