import type { Context } from '../../request/context.ts';
import { fingerprint, readCursor, writeCursor, type OrderColumn } from '../../pagination/cursor.ts';
import { inBatches, BATCH_SIZE } from '../../database/batches.ts';
import { HISTORY } from '../../database/history.ts';
import { readRows, type Reader } from '../../database/row-mapper.ts';
import {
  execute,
  literal,
  readJson,
  readTime,
  sql,
  type Cell,
  type Sql,
} from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';

// The change log: triggers write changes of products and sessions in the same transaction. Because
// an earlier transaction may commit later, rows do not become visible in the order of their
// numbers. Readers see only the rows of transactions before the oldest running one, ordered by
// transaction and number. A reader that stores the position of the last row therefore misses none.
// The cost: a transaction that writes for a minute, in any database of the server, delays the
// changes of all others by a minute.

const ORDER: readonly OrderColumn[] = [
  { property: 'tx', kind: 'transaction' },
  { property: 'pk', kind: 'serial' },
];
const FINGERPRINT = fingerprint('changes', ORDER);

/**
 * Kinds of changes. `products.changed` represents a change of too many products to log each:
 * consumers must reload all products.
 */
export const CHANGE_KINDS = [
  'product.created',
  'product.changed',
  'product.deleted',
  'products.changed',
  'session.ended',
] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** Position of the last entry that was read. */
export interface LogPosition {
  tx: string;
  pk: string;
}

/** An entry of the change log. */
export interface Change extends LogPosition {
  at: Date;
  kind: ChangeKind;
  /** Primary key of the product, or `sid` of the session; null for many products. */
  subject: string | null;
  /**
   * The product after the change, or before its deletion; the `userPk` of the session; the `count`
   * of many products.
   */
  state: Readonly<Record<string, unknown>> | null;
}

/** Consecutive entries, and the position up to which no transaction can add others. */
export interface LogBatch {
  changes: Change[];
  position: LogPosition;
  /** Identity of the log's history. The positions of another one mean other entries. */
  history: string;
}

/**
 * Returns the query of at most `limit` entries after a position, without those of running
 * transactions.
 */
function entriesAfter({ tx, pk }: LogPosition, limit: number): Sql {
  return sql`
    select tx, pk, at, kind, subject, state from change
    where (tx, pk) > (${tx}::xid8, ${pk}::bigint) and tx < pg_snapshot_xmin(pg_current_snapshot())
    order by tx, pk limit ${literal(limit)}`;
}

/**
 * Whether a transaction number is in the future: a restored backup brought it from another server.
 */
function isForeign(tx: Sql): Sql {
  return sql`${tx} >= pg_snapshot_xmax(pg_current_snapshot())`;
}

/**
 * Reads at most `limit` changes after a position. At the end of the log, returns the head as
 * position.
 */
export async function readAfter(ctx: Reader, from: LogPosition, limit: number): Promise<LogBatch> {
  const rows = await readRows(
    ctx,
    sql`
    select cutoff, history, entry.*
    from (select pg_snapshot_xmin(pg_current_snapshot()) as cutoff, ${HISTORY} as history) as now
    left join (${entriesAfter(from, limit)}) as entry on true
    order by entry.tx, entry.pk`,
    true,
  );
  const changes = rows.filter(([, , tx]) => tx !== null).map(([, , ...cells]) => changeOf(cells));
  const last = changes.at(-1);
  return {
    changes,
    position: last && changes.length === limit ? last : { tx: String(rows[0]?.[0]), pk: '0' },
    history: String(rows[0]?.[1]),
  };
}

/** Returns the current head: the position after everything that readers can see. */
export async function readHead(ctx: Reader): Promise<LogPosition & Pick<LogBatch, 'history'>> {
  const [row] = await readRows(
    ctx,
    sql`select pg_snapshot_xmin(pg_current_snapshot()), ${HISTORY}`,
    true,
  );
  return { tx: String(row?.[0]), pk: '0', history: String(row?.[1]) };
}

/** Whether the first position is before the second. */
export function isBefore(one: LogPosition, other: LogPosition): boolean {
  return one.tx === other.tx
    ? BigInt(one.pk) < BigInt(other.pk)
    : BigInt(one.tx) < BigInt(other.tx);
}

/** Returns a position as opaque cursor. */
export function cursorOf({ tx, pk }: LogPosition): string {
  return writeCursor(ORDER, FINGERPRINT, [tx, pk]);
}

/**
 * Returns the position of a cursor. Throws BAD_USER_INPUT, naming the argument, for an invalid
 * cursor.
 */
export function positionOf(argument: string, cursor: string): LogPosition {
  const [tx, pk] = readCursor(ORDER, FINGERPRINT, argument, cursor);
  return { tx: String(tx), pk: String(pk) };
}

/** Whether the log still has the change at this position, and therefore all later ones. */
export async function hasChangeAt(ctx: Reader, { tx, pk }: LogPosition): Promise<boolean> {
  const rows = await readRows(
    ctx,
    sql`select 1 from change where tx = ${tx}::xid8 and pk = ${pk}::bigint`,
    true,
  );
  return rows.length > 0;
}

/**
 * Deletes entries older than CHANGE_LOG_RETENTION_DAYS, oldest first, in batches and at most a
 * quarter of a million, and entries that a restored backup brought from another server. Returns
 * their number.
 */
export async function sweep(ctx: Context): Promise<number> {
  const foreign = await execute(ctx.em, sql`delete from change where ${isForeign(sql`tx`)}`);
  return foreign.affected + (await inBatches(() => sweepOldest(ctx)));
}

async function sweepOldest(ctx: Context): Promise<number> {
  const cutoff = new Date(ctx.now().getTime() - ctx.config.changeLogRetentionDays * DAY_MS);
  const { affected } = await execute(
    ctx.em,
    sql`
    delete from change using (
      select tx, pk, bool_and(at < ${cutoff}) over (order by tx, pk) as is_old
      from (select tx, pk, at from change order by tx, pk limit ${literal(BATCH_SIZE)}) as oldest
    ) as oldest
    where is_old and change.tx = oldest.tx and change.pk = oldest.pk`,
  );
  return affected;
}

function changeOf([tx, pk, at, kind, subject, state]: readonly Cell[]): Change {
  return {
    tx: String(tx),
    pk: String(pk),
    at: readTime(at),
    // Only the triggers write to this table.
    kind: kind as ChangeKind,
    subject: subject as string | null,
    state: readJson(state) as Change['state'],
  };
}
