import { z } from 'zod';
import { hasScope, requireScope } from '../../request/access.ts';
import { inTransaction, withContext, type Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import {
  readPage,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { BATCH_SIZE, inBatches } from '../../database/batches.ts';
import { inOrder, selectEntities } from '../../database/row-mapper.ts';
import { execute, join, literal, sql, type Sql } from '../../database/sql.ts';
import { isStorable } from '../../core/text.ts';
import { DAY_MS } from '../../core/time.ts';
import { check } from '../../core/validation.ts';
import { AuditEntry } from './audit.entity.ts';
import { ACTIONS, diff, record, type Subject } from './audit.log.ts';
import { auditFilter } from './audit.rules.ts';

/** Recorded as the operator who pruned the trail because of AUDIT_RETENTION_DAYS. */
const RETENTION_OPERATOR = 'shopfront';
const SERIAL = /^[1-9]\d{0,17}$/;

/** Filter of entries. An entry must meet all given conditions. */
export interface AuditFilter {
  /** A username, or the name of an operator. */
  actor?: string | null | undefined;
  action?: string | null | undefined;
  subject?: Pick<Subject, 'kind' | 'key'> | null | undefined;
  /** Earliest time, inclusive. */
  since?: Date | null | undefined;
  /** Latest time, exclusive. */
  until?: Date | null | undefined;
}

/** Unchecked `AuditFilter` with the global id of the subject. */
export type AuditFilterById = Pick<AuditFilter, 'actor' | 'action'> & {
  subject?: string | null;
  since?: unknown;
  until?: unknown;
};

const pageInput = z.object({ filter: auditFilter.nullish() });

/**
 * Returns a page of filtered entries, newest first. Requires `audit:read`. Throws BAD_USER_INPUT.
 */
export async function page(
  ctx: Context,
  args: PageArgs,
  filter?: AuditFilterById,
): Promise<Page<AuditEntry>> {
  requireScope(ctx, 'audit:read');
  const checked = check(pageInput, { filter }).filter;
  // Cursors are bound to the JSON of the filter, in which a missing subject is null.
  return readPage(
    ctx,
    listDefinition(checked ? { ...checked, subject: checked.subject ?? null } : undefined),
    args,
  );
}

/** Finds entries for `node(id:)`. Without `audit:read`, returns only nulls. */
export async function findNodes(
  ctx: Context,
  keys: readonly string[],
): Promise<(AuditEntry | null)[]> {
  const pks = hasScope(ctx, 'audit:read') ? keys.filter((key) => SERIAL.test(key)) : [];
  return inOrder(
    await selectEntities(ctx, AuditEntry, sql`pk = any(${pks}::bigint[])`),
    'pk',
    keys,
  );
}

/** Lists at most `limit` filtered entries, newest first, for operators. Throws BAD_USER_INPUT. */
export function list(ctx: Context, filter: AuditFilter, limit: number): Promise<AuditEntry[]> {
  const where = join([sql`true`, ...equalities(filter), ...timeConditions(filter)], ' and ');
  return selectEntities(
    ctx,
    AuditEntry,
    sql`${where} order by at desc, pk desc limit ${literal(limit)}`,
  );
}

/**
 * Deletes the entries before a time, for operators. Each batch is a transaction that records
 * itself. Returns the number of deleted entries. Throws BAD_USER_INPUT for a time in the future.
 */
export async function prune(ctx: Context, before: Date): Promise<number> {
  if (before > ctx.now()) throw badInput('before', 'must be in the past');
  return inBatches(() => inTransaction(ctx, (tx) => pruneSome(tx, before)), Infinity);
}

/**
 * Deletes entries older than AUDIT_RETENTION_DAYS, if set, in batches and at most a quarter of a
 * million. Returns their number.
 */
export async function sweep(ctx: Context): Promise<number> {
  const { auditRetentionDays: days } = ctx.config;
  if (days === undefined) return 0;
  const before = new Date(ctx.now().getTime() - days * DAY_MS);
  const operator = withContext(ctx, { operator: RETENTION_OPERATOR });
  return inBatches(() => inTransaction(operator, (tx) => pruneSome(tx, before)));
}

async function pruneSome(tx: Context, before: Date): Promise<number> {
  // Local to this transaction; the trigger requires it for a DELETE.
  await execute(tx.em, sql`select set_config('shopfront.audit_prune', 'on', true)`);
  const { affected } = await execute(
    tx.em,
    sql`
    delete from audit_entry where pk in (
      select pk from audit_entry where at < ${before} order by at, pk limit ${literal(BATCH_SIZE)})`,
  );
  if (affected > 0)
    await record(
      tx,
      'audit.pruned',
      undefined,
      diff({}, { entries: String(affected), olderThan: before.toISOString() }),
    );
  return affected;
}

// Each equality condition has an index ordered by time. Of several, the most selective one is first
// and becomes the range.
function listDefinition(filter: AuditFilter | undefined): ListDefinition<AuditEntry> {
  const [first, ...others] = equalities(filter ?? {});
  const range = [...(first ? [first] : []), ...timeConditions(filter ?? {})];
  return {
    name: 'auditEntries',
    entity: AuditEntry,
    order: [
      { property: 'at', kind: 'time' },
      { property: 'pk', kind: 'serial' },
    ],
    descending: true,
    ...(range.length > 0 && { range: join(range, ' and ') }),
    ...(others.length > 0 && { where: join(others, ' and ') }),
    filter,
  };
}

function equalities({ actor, action, subject }: AuditFilter): Sql[] {
  if (actor != null && !isStorable(actor))
    throw badInput('filter.actor', 'has a NUL or is not well-formed Unicode');
  if (action != null && !ACTIONS.some((known) => known === action))
    throw badInput('filter.action', `must be one of ${ACTIONS.join(', ')}`);
  return [
    ...(subject
      ? [sql`subject_kind = ${subject.kind} and subject_key = ${String(subject.key)}`]
      : []),
    ...(actor == null ? [] : [sql`actor_name = ${actor}`]),
    ...(action == null ? [] : [sql`action = ${action}`]),
  ];
}

function timeConditions({ since, until }: AuditFilter): Sql[] {
  return [
    ...(since == null ? [] : [sql`at >= ${since}::timestamptz`]),
    ...(until == null ? [] : [sql`at < ${until}::timestamptz`]),
  ];
}
