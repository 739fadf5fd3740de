import type { Context } from '../../request/context.ts';
import { fingerprint, readCursor, writeCursor, type OrderColumn } from '../../pagination/cursor.ts';
import { inPieces, PIECE } from '../../database/batches.ts';
import { readRows, type Reader } from '../../database/row-mapper.ts';
import { execute, literal, readJson, readTime, sql, type Cell, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';

// The log of changes: what triggers note of products and sessions, in the transaction that writes them. A transaction that was begun earlier may be
// committed later, so that rows do not become visible in the order of their numbers. Read is what no transaction can add to any more: rows of transactions before
// the oldest one that is still under way, in the order of transaction and number. A reader who remembers the place of the last row misses none. The price is that a
// transaction which writes for a minute, in whatever database of the server, holds back for a minute what others write meanwhile.

const ORDER: readonly OrderColumn[] = [
  { property: 'tx', kind: 'transaction' },
  { property: 'pk', kind: 'serial' },
];
const PRINT = fingerprint('changes', ORDER);

/** What can be noted. `products.changed` stands for many at once, too many to be noted each: whoever keeps products reads them anew. */
export const CHANGE_KINDS = ['product.created', 'product.changed', 'product.deleted', 'products.changed', 'session.ended'] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

/** A place in the log: everything up to there has been read. */
export interface Place {
  tx: string;
  pk: string;
}

/** Something that has happened. */
export interface Change extends Place {
  at: Date;
  kind: ChangeKind;
  /** The primary key of the product, the `sid` of the session; null for many products. */
  subject: string | null;
  /** The product as it became, or as it was before it was deleted; the session's `userPk`; the `count` of many products. */
  state: Readonly<Record<string, unknown>> | null;
}

/** A piece of the log, and the place up to which nothing can be added to what has been read. */
export interface Piece {
  changes: Change[];
  place: Place;
}

/** The entries that follow a place in the log and that nothing can be put before any more, in their order, `limit` at most: a query. */
export function entriesAfter({ tx, pk }: Place, limit: number): Sql {
  return sql`
    select tx, pk, at, kind, subject, state from change
    where (tx, pk) > (${tx}::xid8, ${pk}::bigint) and tx < pg_snapshot_xmin(pg_current_snapshot())
    order by tx, pk limit ${literal(limit)}`;
}

/** Whether a transaction is yet to come: its number is another server's, and a backup has brought it here. */
export function isForeign(tx: Sql): Sql {
  return sql`${tx} >= pg_snapshot_xmax(pg_current_snapshot())`;
}

/** What follows this place in the log, `limit` changes at most. The place is beyond what was read, where that is all there is. */
export async function readAfter(ctx: Reader, from: Place, limit: number): Promise<Piece> {
  const rows = await readRows(
    ctx,
    sql`
    select horizon, entry.* from (select pg_snapshot_xmin(pg_current_snapshot()) as horizon) as now
    left join (${entriesAfter(from, limit)}) as entry on true
    order by entry.tx, entry.pk`,
    true,
  );
  const changes = rows.filter(([, found]) => found !== null).map(([, ...cells]) => changeOf(cells));
  const last = changes.at(-1);
  return { changes, place: last && changes.length === limit ? last : { tx: String(rows[0]?.[0]), pk: '0' } };
}

/** The place after everything that has been committed up to now, or before what has only just been. */
export async function readHead(ctx: Reader): Promise<Place> {
  const [row] = await readRows(ctx, sql`select pg_snapshot_xmin(pg_current_snapshot())`, true);
  return { tx: String(row?.[0]), pk: '0' };
}

/** Whether this place is before the other. */
export function isBefore(one: Place, other: Place): boolean {
  return one.tx === other.tx ? BigInt(one.pk) < BigInt(other.pk) : BigInt(one.tx) < BigInt(other.tx);
}

/** The place of a change as opaque text for clients. */
export function cursorOf({ tx, pk }: Place): string {
  return writeCursor(ORDER, PRINT, [tx, pk]);
}

/** The place of a cursor. Throws BAD_USER_INPUT for the argument where it is none of ours. */
export function placeOf(argument: string, cursor: string): Place {
  const [tx, pk] = readCursor(ORDER, PRINT, argument, cursor);
  return { tx: String(tx), pk: String(pk) };
}

/** Whether the log still has the change at this place, and with it all that came after. */
export async function reachesBackTo(ctx: Reader, { tx, pk }: Place): Promise<boolean> {
  const rows = await readRows(ctx, sql`select 1 from change where tx = ${tx}::xid8 and pk = ${pk}::bigint`, true);
  return rows.length > 0;
}

/**
 * Deletes what is older than CHANGES_KEPT_DAYS, from the oldest on, a few thousand at a time and a quarter of a million at most, and what is of transactions that are
 * yet to come: a backup of another server brings such rows. Returns how many.
 */
export async function sweep(ctx: Context): Promise<number> {
  const foreign = await execute(ctx.em, sql`delete from change where ${isForeign(sql`tx`)}`);
  return foreign.affected + (await inPieces(() => sweepOldest(ctx)));
}

async function sweepOldest(ctx: Context): Promise<number> {
  const horizon = new Date(ctx.now().getTime() - ctx.config.changesKeptDays * DAY_MS);
  const { affected } = await execute(
    ctx.em,
    sql`
    delete from change using (
      select tx, pk, bool_and(at < ${horizon}) over (order by tx, pk) as is_old
      from (select tx, pk, at from change order by tx, pk limit ${literal(PIECE)}) as oldest
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
    // Only our triggers write here.
    kind: kind as ChangeKind,
    subject: subject as string | null,
    state: readJson(state) as Change['state'],
  };
}
