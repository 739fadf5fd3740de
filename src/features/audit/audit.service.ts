import { z } from 'zod';
import { holds, requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import { readPage, type Listing, type Page, type PageArgs } from '../../pagination/keyset.ts';
import { inOrder, selectEntities } from '../../database/row-mapper.ts';
import { execute, join, literal, sql, type Sql } from '../../database/sql.ts';
import { isStorable } from '../../core/text.ts';
import { check } from '../../core/validation.ts';
import { AuditEntry } from './audit.entity.ts';
import { ACTIONS, differences, note, type Subject } from './audit.log.ts';
import { auditFilter } from './audit.rules.ts';

/** How many entries one transaction deletes at most: others write meanwhile. */
const PRUNED_AT_ONCE = 5_000;
const SERIAL = /^[1-9]\d{0,17}$/;

/** Which entries: those that meet every condition given. */
export interface AuditFilter {
  /** A username, or the name of an operator. */
  actor?: string | null | undefined;
  action?: string | null | undefined;
  subject?: Pick<Subject, 'kind' | 'key'> | null | undefined;
  /** Then or later. */
  since?: Date | null | undefined;
  /** Before then. */
  until?: Date | null | undefined;
}

/** As `AuditFilter`, where the subject is named by its global id, and nobody has checked anything. */
export type AuditFilterById = Pick<AuditFilter, 'actor' | 'action'> & { subject?: string | null; since?: unknown; until?: unknown };

const asked = z.object({ filter: auditFilter.nullish() });

/** The entries that meet the filter, the latest first, in pages by cursor. Needs `audit:read`. Throws BAD_USER_INPUT. */
export async function page(ctx: Context, args: PageArgs, filter?: AuditFilterById): Promise<Page<AuditEntry>> {
  requireScope(ctx, 'audit:read');
  const checked = check(asked, { filter }).filter;
  // Cursors are bound to the JSON text of the filter, in which an absent subject is null.
  return readPage(ctx, listingOf(checked ? { ...checked, subject: checked.subject ?? null } : undefined), args);
}

/** Finds entries for `node(id:)`; none without `audit:read`. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(AuditEntry | null)[]> {
  const pks = holds(ctx, 'audit:read') ? keys.filter((key) => SERIAL.test(key)) : [];
  return inOrder(await selectEntities(ctx, AuditEntry, sql`pk = any(${pks}::bigint[])`), 'pk', keys);
}

/** The entries that meet the filter, the latest first, so many at most: for the operator. Throws BAD_USER_INPUT. */
export function list(ctx: Context, filter: AuditFilter, limit: number): Promise<AuditEntry[]> {
  const where = join([sql`true`, ...equalities(filter), ...times(filter)], ' and ');
  return selectEntities(ctx, AuditEntry, sql`${where} order by at desc, pk desc limit ${literal(limit)}`);
}

/**
 * Deletes the entries from before that time, some thousands to a transaction, each of which leaves an entry that says so. Returns how many. For the operator.
 * Throws BAD_USER_INPUT for a time to come.
 */
export async function prune(ctx: Context, before: Date): Promise<number> {
  if (before > ctx.now()) throw badInput('before', 'must be in the past');
  for (let sum = 0; ;) {
    const pruned = await inTransaction(ctx, (tx) => pruneSome(tx, before));
    sum += pruned;
    if (pruned < PRUNED_AT_ONCE) return sum;
  }
}

async function pruneSome(tx: Context, before: Date): Promise<number> {
  // For this transaction only, and what the trigger lets a DELETE through for.
  await execute(tx.em, sql`select set_config('shopfront.audit_prune', 'on', true)`);
  const { affected } = await execute(
    tx.em,
    sql`
    delete from audit_entry where pk in (
      select pk from audit_entry where at < ${before} order by at, pk limit ${literal(PRUNED_AT_ONCE)})`,
  );
  if (affected > 0)
    await note(tx, 'audit.pruned', undefined, differences({}, { entries: String(affected), olderThan: before.toISOString() }));
  return affected;
}

// What is the same in all has an index in the order of time; where several are given, the one of which there are the fewest comes first.
function listingOf(filter: AuditFilter | undefined): Listing<AuditEntry> {
  const [first, ...others] = equalities(filter ?? {});
  const range = [...(first ? [first] : []), ...times(filter ?? {})];
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
  if (actor != null && !isStorable(actor)) throw badInput('filter.actor', 'has a NUL or is not well-formed Unicode');
  if (action != null && !ACTIONS.some((known) => known === action)) throw badInput('filter.action', `is one of ${ACTIONS.join(', ')}`);
  return [
    ...(subject ? [sql`subject_kind = ${subject.kind} and subject_key = ${String(subject.key)}`] : []),
    ...(actor == null ? [] : [sql`actor_name = ${actor}`]),
    ...(action == null ? [] : [sql`action = ${action}`]),
  ];
}

function times({ since, until }: AuditFilter): Sql[] {
  return [...(since == null ? [] : [sql`at >= ${since}::timestamptz`]), ...(until == null ? [] : [sql`at < ${until}::timestamptz`])];
}
