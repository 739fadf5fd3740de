import { expressionBuilder, type Expression, type SqlBool } from 'kysely';
import { z } from 'zod';
import { hasScope, requireScope } from '../../request/access.ts';
import { inTransaction, withContext, type Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import {
  findInList,
  readPage,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { BATCH_SIZE, inBatches } from '../../core/batches.ts';
import { run, type Columns } from '../../database/kysely.ts';
import { DAY_MS } from '../../core/time.ts';
import { check } from '../../core/validation.ts';
import { AuditEntry } from './audit.entity.ts';
import { diff, record } from './audit.log.ts';
import { auditFilter } from './audit.rules.ts';

/** Recorded as the operator who pruned the trail because of AUDIT_RETENTION_DAYS. */
const RETENTION_OPERATOR = 'shopfront';
const eb = expressionBuilder<{ audit_entry: Columns<AuditEntry> }, 'audit_entry'>();

/** Filter of entries. An entry must meet all given conditions. */
export type AuditFilter = z.output<typeof auditFilter>;

const pageInput = z.object({ filter: auditFilter.nullish() });

/**
 * Returns a page of filtered entries, newest first. Requires `audit:read`. Throws BAD_USER_INPUT.
 */
export async function page(
  ctx: Context,
  args: PageArgs,
  filter?: unknown,
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
  return hasScope(ctx, 'audit:read')
    ? findInList(ctx, listDefinition(undefined), keys)
    : keys.map(() => null);
}

/** Lists at most `limit` filtered entries, newest first, for operators. Throws BAD_USER_INPUT. */
export async function list(
  ctx: Context,
  filter: AuditFilter,
  limit: number,
): Promise<AuditEntry[]> {
  const entries = ctx.em
    .getKysely<{ audit_entry: Columns<AuditEntry> }>()
    .selectFrom('audit_entry')
    .selectAll()
    .where(eb.and([...equalities(filter), ...timeConditions(filter)]))
    .orderBy('at', 'desc')
    .orderBy('pk', 'desc')
    .limit(limit);
  return (await run(ctx, entries)).map((row) => ctx.em.map(AuditEntry, row));
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
  const trail = tx.em.getKysely<{ audit_entry: Columns<AuditEntry> }>();
  // Local to this transaction; the trigger requires it for a DELETE.
  const allow = trail.selectNoFrom(
    eb.fn('set_config', [eb.val('shopfront.audit_prune'), eb.val('on'), eb.lit(true)]).as('value'),
  );
  await run(tx, allow);
  const oldest = trail
    .selectFrom('audit_entry')
    .select('pk')
    .where('at', '<', before)
    .orderBy('at')
    .orderBy('pk')
    .limit(BATCH_SIZE);
  const [deleted] = await run(tx, trail.deleteFrom('audit_entry').where('pk', 'in', oldest));
  const affected = Number(deleted?.numDeletedRows);
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
      { property: 'pk', kind: 'pk' },
    ],
    descending: true,
    ...(range.length > 0 && { range: eb.and(range) }),
    ...(others.length > 0 && { where: eb.and(others) }),
    filter,
  };
}

function equalities({ actor, action, subject }: AuditFilter): Expression<SqlBool>[] {
  return [
    ...(subject ? [eb.and({ subject_kind: subject.kind, subject_key: String(subject.key) })] : []),
    ...(actor == null ? [] : [eb('actor_name', '=', actor)]),
    ...(action == null ? [] : [eb('action', '=', action)]),
  ];
}

function timeConditions({ since, until }: AuditFilter): Expression<SqlBool>[] {
  return [...(since ? [eb('at', '>=', since)] : []), ...(until ? [eb('at', '<', until)] : [])];
}
