import { sql } from 'kysely';
import type { Context } from '../../request/context.ts';
import { fingerprint, readCursor, writeCursor, type OrderColumn } from '../../pagination/cursor.ts';
import { inBatches, BATCH_SIZE } from '../../core/batches.ts';
import { run, type Columns, readRows, type Reader } from '../../database/kysely.ts';
import { DAY_MS } from '../../core/time.ts';
import type { ChangeRow } from './change.entity.ts';

// The change log: triggers write changes of products and sessions in the same transaction. Because
// an earlier transaction may commit later, rows do not become visible in the order of their
// numbers. Readers see only the rows of transactions before the oldest running one, ordered by
// transaction and number. A reader that stores the position of the last row therefore misses none.
// The cost: a transaction that writes for a minute, in any database of the server, delays the
// changes of all others by a minute.

/**
 * Identity of the history of a database: another one after a failover, once the new primary has
 * written its first checkpoint, and after a restore. The same after a restart.
 */
const HISTORY = sql<string>`concat_ws(' ', (pg_control_system()).system_identifier, (pg_control_checkpoint()).timeline_id)`;

interface Tables {
  change: Columns<ChangeRow>;
}

const ORDER: readonly OrderColumn[] = [
  { property: 'tx', kind: 'serial' },
  { property: 'pk', kind: 'serial' },
];
const FINGERPRINT = fingerprint({ name: 'changes', order: ORDER });

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

/** A row of a read: the head, and an entry if there is one. */
type Row = { cutoff: string; history: string } & (Change | { tx: null });

/**
 * Reads at most `limit` changes after a position, without those of running transactions. At the end
 * of the log, returns the head as position.
 */
export async function readAfter(
  ctx: Reader,
  { tx, pk }: LogPosition,
  limit: number,
): Promise<LogBatch> {
  // For a LIMIT parameter the planner assumes a tenth of the table.
  const rows = await readRows(
    ctx,
    sql<Row>`
      select cutoff, history, entry.*
      from (select pg_snapshot_xmin(pg_current_snapshot()) as cutoff, ${HISTORY} as history) as now
      left join (
        select tx, pk::text, at, kind, subject, state from change
        where (tx, pk) > (${tx}::xid8, ${pk}::bigint) and tx < pg_snapshot_xmin(pg_current_snapshot())
        order by change.tx, change.pk limit ${sql.lit(limit)}) as entry on true
      order by entry.tx, entry.pk::bigint`,
    true,
  );
  const changes = rows.filter((row) => row.tx !== null);
  const last = changes.at(-1);
  const { cutoff = '', history = '' } = rows[0] ?? {};
  return {
    changes,
    position: last && changes.length === limit ? last : { tx: cutoff, pk: '0' },
    history,
  };
}

/** Returns the current head: the position after everything that readers can see. */
export async function readHead(ctx: Reader): Promise<LogPosition & Pick<LogBatch, 'history'>> {
  const select = sql<{ tx: string; history: string }>`
    select pg_snapshot_xmin(pg_current_snapshot()) as tx, ${HISTORY} as history`;
  const [{ tx, history } = { tx: '', history: '' }] = await readRows(ctx, select, true);
  return { tx, pk: '0', history };
}

/** Whether the first position is before the second. */
export function isBefore(one: LogPosition, other: LogPosition): boolean {
  return one.tx === other.tx
    ? BigInt(one.pk) < BigInt(other.pk)
    : BigInt(one.tx) < BigInt(other.tx);
}

/** Returns a position as opaque cursor. */
export function cursorOf({ tx, pk }: LogPosition): string {
  return writeCursor(FINGERPRINT, [tx, pk]);
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
  const select = sql<object>`select 1 from change where tx = ${tx}::xid8 and pk = ${pk}::bigint`;
  return (await readRows(ctx, select, true)).length > 0;
}

/**
 * Deletes entries older than CHANGE_LOG_RETENTION_DAYS, oldest first, in batches and at most a
 * quarter of a million, and entries that a restored backup brought from another server. Returns
 * their number.
 */
export async function sweep(ctx: Context): Promise<number> {
  const [foreign] = await run(
    ctx,
    // Their transactions are in the future of this server.
    ctx.em
      .getKysely<Tables>()
      .deleteFrom('change')
      .where('tx', '>=', ({ fn }) => fn('pg_snapshot_xmax', [fn('pg_current_snapshot')])),
  );
  return Number(foreign?.numDeletedRows) + (await inBatches(() => sweepOldest(ctx)));
}

async function sweepOldest(ctx: Context): Promise<number> {
  const cutoff = new Date(ctx.now().getTime() - ctx.config.changeLogRetentionDays * DAY_MS);
  const db = ctx.em.getKysely<Tables>();
  const oldest = db
    .selectFrom('change')
    .select(['tx', 'pk', 'at'])
    .orderBy('tx')
    .orderBy('pk')
    .limit(BATCH_SIZE);
  const marked = db
    .selectFrom(oldest.as('oldest'))
    .select(['tx', 'pk'])
    .select((eb) =>
      eb.fn
        .agg<boolean>('bool_and', [eb('at', '<', cutoff)])
        .over((over) => over.orderBy('tx').orderBy('pk'))
        .as('is_old'),
    );
  const [deleted] = await run(
    ctx,
    db
      .deleteFrom('change')
      .using(marked.as('marked'))
      .where('is_old', '=', true)
      .whereRef('change.tx', '=', 'marked.tx')
      .whereRef('change.pk', '=', 'marked.pk'),
  );
  return Number(deleted?.numDeletedRows);
}
