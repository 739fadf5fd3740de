import type { Context } from '../request/context.ts';
import { BATCH_SIZE, inBatches } from '../database/batches.ts';
import { HISTORY } from '../database/history.ts';
import { readRows, type Reader } from '../database/row-mapper.ts';
import {
  execute,
  identifier,
  literal,
  sql,
  type Cell,
  type Sql,
  type Statements,
} from '../database/sql.ts';

// Triggers count the rows of an unbounded table in the transaction that adds or removes them, by
// ranges of 65,536 primary keys and by ranges of 256 (migrations: `product_row_count`,
// `product_row_count_fine`). The counts give the total and the start of an offset page without reading
// the rows before it. Each row also counts the statements that wrote to its range. Their sum, the
// version, changes with every commit, so it shows whether cached data is current.

const FINE_RANGE = 256;
const COARSE_RANGE = 65_536;

/** Maximum age of a cached version, in ms. */
const MAX_AGE_MS = 40;
/** Age from which a request for the cached version refreshes it in the background, in ms. */
const REFRESH_AGE_MS = 15;

/** Version of a table: at most MAX_AGE_MS old, and never older than this process's last commit. */
export interface TableVersion {
  /** Increases with every commit that writes to the table. */
  version: number;
  count: number;
}

/** A version with the identity of its server. */
export interface ReadVersion extends TableVersion {
  /**
   * Changes with every such commit, and differs between servers, because a new primary may lack
   * commits and count others instead.
   */
  revision: string;
}

/** Position of a row: `skip` rows after the first row whose primary key is at least `pk`. */
export interface RowPosition {
  pk: number;
  skip: number;
}

interface CachedVersion extends ReadVersion {
  at: number;
  commits: number;
}

interface Ranks extends TableVersion {
  coarse: readonly Range[];
  /** Fine ranges by coarse bucket, loaded on demand. */
  fine: Map<number, readonly Range[]>;
}

/** Number of rows in a range of primary keys, and in all ranges before it. */
interface Range {
  bucket: number;
  rows: number;
  before: number;
}

/** Cached data of one table. */
interface TableCache {
  server?: string;
  version?: CachedVersion;
  reading?: { commits: number; result: Promise<CachedVersion> };
  ranks?: Ranks;
  /** The last version for which ranks were requested but not loaded. */
  requestedVersion?: number;
  isReadingRanks?: boolean;
}

/** Identity of the running server: differs after a failover, a restore or a restart. */
const SERVER = sql`concat_ws(' ', ${HISTORY}, pg_postmaster_start_time())`;

const caches = new WeakMap<Statements, Map<string, TableCache>>();

/** Returns the version of the table, from the cache if possible. */
export async function versionOf(ctx: Context, table: string): Promise<ReadVersion> {
  const { statements } = ctx;
  if (!statements) return readVersion(ctx, table);
  return (
    cachedVersion(ctx, table) ?? (await readOnce(statements, table, cacheOf(statements, table)))
  );
}

/** Returns the cached version of the table, or undefined without a current one. */
export function cachedVersion(
  ctx: Pick<Context, 'statements'>,
  table: string,
): ReadVersion | undefined {
  const { statements } = ctx;
  if (!statements) return undefined;
  const cache = cacheOf(statements, table);
  const { version } = cache;
  if (!version || version.commits !== statements.commits) return undefined;
  const age = performance.now() - version.at;
  if (age > MAX_AGE_MS) return undefined;
  // Nothing waits for this refresh. Errors are ignored: a later read throws them.
  if (age > REFRESH_AGE_MS && !cache.reading)
    void readOnce(statements, table, cache).catch(() => undefined);
  return version;
}

/** Returns a version string that changes with every write and differs between restored copies. */
export async function revisionOf(ctx: Context, table: string): Promise<string> {
  const [row] = await readRows(
    ctx,
    sql`
      select coalesce(${versionColumn(table)}, '') || ' ' || ${table}::regclass::oid || ' ' || ${SERVER}`,
  );
  return String(row?.[0]);
}

/** Returns the current number of rows in the table. */
export async function countOf(ctx: Context, table: string): Promise<number> {
  const [row] = await readRows(
    ctx,
    sql`select coalesce(sum(rows), 0) from ${identifier(table)}`,
    true,
  );
  return Number(row?.[0]);
}

/** SQL of the table's version as a column, with the same snapshot as the selected rows. */
export function versionColumn(table: string): Sql {
  return sql`(select sum(writes) || ' ' || sum(rows) from ${identifier(table)})`;
}

/** Parses a cell of `versionColumn`. */
export function parseVersion(cell: Cell): TableVersion {
  const [version = '0', count = '0'] = (typeof cell === 'string' ? cell : '').split(' ');
  return { version: Number(version), count: Number(count) };
}

/**
 * Returns the position of the row of this rank, from 0, with the version and row count it is valid
 * for. Returns undefined if loading the ranks is not worthwhile: `positionQuery` then finds the
 * position within the statement that reads the rows.
 */
export async function positionOf(
  ctx: Context,
  table: string,
  rank: number,
): Promise<(RowPosition & TableVersion) | undefined> {
  const { version, count } = await versionOf(ctx, table);
  if (rank === 0 || rank >= count) return { pk: 1, skip: rank, version, count };
  const ranks =
    ctx.statements && (await ranksOf(ctx, table, version, cacheOf(ctx.statements, table)));
  const coarse = ranks && rangeAt(ranks.coarse, rank);
  const position = coarse && (await locate(ctx, table, ranks, coarse, rank - coarse.before));
  return position && { ...position, version: ranks.version, count: ranks.count };
}

/** SQL that selects the position of the row of this rank as `pk` and `skip`, or no row. */
export function positionQuery(table: string, rank: number): Sql {
  const fineRanges = literal(COARSE_RANGE / FINE_RANGE);
  return sql`
    select bucket * ${literal(FINE_RANGE)} + 1 as pk, (${rank}::bigint - before)::bigint as skip
    from (
      select fine.bucket, fine.rows, wide.before + sum(fine.rows) over (order by fine.bucket) - fine.rows as before
      from (
        select bucket, before
        from (
          select bucket, rows, sum(rows) over (order by bucket) - rows as before
          from (select bucket, sum(rows) as rows from ${identifier(table)} group by bucket) as counted
        ) as coarse
        where before + rows > ${rank}::bigint order by bucket limit 1
      ) as wide
      cross join lateral (
        select bucket, sum(rows) as rows from ${identifier(`${table}_fine`)}
        where bucket >= wide.bucket * ${fineRanges} and bucket < (wide.bucket + 1) * ${fineRanges} group by bucket
      ) as fine
    ) as narrow
    where before + rows > ${rank}::bigint order by bucket limit 1`;
}

/** Invalidates the cached version, so that the next request reads it from the database. */
export function invalidateVersion(
  { statements }: Pick<Context, 'statements'>,
  table: string,
): void {
  if (!statements) return;
  const cache = cacheOf(statements, table);
  delete cache.version;
  delete cache.reading;
}

/**
 * Merges the rows of each range, of which concurrent writers have added several. Skips rows that a
 * writer is changing. Returns the number of rows that this saves.
 */
export async function mergeRowCounts(ctx: Context, table: string): Promise<number> {
  let saved = 0;
  for (const name of [identifier(table), identifier(`${table}_fine`)]) {
    saved += await inBatches(async () => {
      const { rows } = await execute(
        ctx.em,
        sql`
        with merged as (
          delete from ${name} where pk in (
            select pk from ${name} where bucket in (
              select bucket from ${name} group by bucket having count(*) > 1 limit ${literal(BATCH_SIZE)}
            ) for update skip locked
          ) returning bucket, rows, writes
        ), added as (
          insert into ${name} (bucket, rows, writes)
          select bucket, sum(rows), sum(writes) from merged group by bucket returning pk
        )
        select (select count(*) from merged)::int - (select count(*) from added)::int as saved`,
      );
      return Number(rows[0]?.['saved']);
    });
  }
  return saved;
}

// Loads ranks only on the second request for a version: under constant writes, each version would
// be out of date before its ranks are used.
async function ranksOf(
  ctx: Context,
  table: string,
  version: number,
  cache: TableCache,
): Promise<Ranks | undefined> {
  if (cache.ranks && cache.ranks.version >= version) return cache.ranks;
  if (cache.requestedVersion !== version || cache.isReadingRanks) {
    cache.requestedVersion = version;
    return undefined;
  }
  cache.isReadingRanks = true;
  try {
    return (cache.ranks = await readRanks(ctx, table));
  } finally {
    cache.isReadingRanks = false;
  }
}

async function locate(
  ctx: Context,
  table: string,
  { fine: fineByBucket }: Ranks,
  coarse: Range,
  rankInCoarse: number,
): Promise<RowPosition | undefined> {
  // A full range has no gaps, so the rank determines the primary key.
  if (coarse.rows === COARSE_RANGE) return { pk: firstOf(coarse) + rankInCoarse, skip: 0 };
  const fineRanges = fineByBucket.get(coarse.bucket) ?? (await readFine(ctx, table, coarse.bucket));
  if (totalOf(fineRanges) !== coarse.rows) return undefined;
  fineByBucket.set(coarse.bucket, fineRanges);
  const fine = rangeAt(fineRanges, rankInCoarse);
  if (!fine) return undefined;
  const rankInFine = rankInCoarse - fine.before;
  const start = fine.bucket * FINE_RANGE + 1;
  return fine.rows === FINE_RANGE
    ? { pk: start + rankInFine, skip: 0 }
    : { pk: start, skip: rankInFine };
}

function firstOf({ bucket }: Range): number {
  return bucket * COARSE_RANGE + 1;
}

function rangeAt(ranges: readonly Range[], rank: number): Range | undefined {
  let low = 0;
  for (let high = ranges.length; low < high;) {
    const middle = (low + high) >> 1;
    const range = ranges[middle];
    if (range && range.before + range.rows <= rank) low = middle + 1;
    else high = middle;
  }
  return ranges[low];
}

function totalOf(ranges: readonly Range[]): number {
  const last = ranges.at(-1);
  return last ? last.before + last.rows : 0;
}

async function readRanks(ctx: Context, table: string): Promise<Ranks> {
  const rows = await readRows(
    ctx,
    sql`select bucket, sum(rows), sum(writes) from ${identifier(table)} group by bucket order by bucket`,
    true,
  );
  const coarse = rangesOf(rows);
  return {
    version: rows.reduce((sum, [, , writes]) => sum + Number(writes), 0),
    count: totalOf(coarse),
    coarse,
    fine: new Map(),
  };
}

async function readFine(ctx: Context, table: string, bucket: number): Promise<Range[]> {
  const first = (bucket * COARSE_RANGE) / FINE_RANGE;
  return rangesOf(
    await readRows(
      ctx,
      sql`select bucket, sum(rows) from ${identifier(`${table}_fine`)} where bucket >= ${first} and bucket < ${first + COARSE_RANGE / FINE_RANGE}
        group by bucket order by bucket`,
      true,
    ),
  );
}

function rangesOf(rows: readonly (readonly unknown[])[]): Range[] {
  let before = 0;
  return rows.map(([bucket, count]) => {
    const range = { bucket: Number(bucket), rows: Number(count), before };
    before += range.rows;
    return range;
  });
}

// Concurrent requests share one read, so it is not cancelled with the request that started it.
function readOnce(
  statements: Statements,
  table: string,
  cache: TableCache,
): Promise<CachedVersion> {
  const { commits } = statements;
  if (cache.reading?.commits === commits) return cache.reading.result;
  const reading = { commits, result: refreshVersion(statements, table, cache) };
  cache.reading = reading;
  return reading.result.finally(() => {
    if (cache.reading === reading) delete cache.reading;
  });
}

async function refreshVersion(
  statements: Statements,
  table: string,
  cache: TableCache,
): Promise<CachedVersion> {
  const { commits } = statements;
  // The age counts from the start of the query.
  const at = performance.now();
  const { server, ...readFromServer } = await readVersion({ statements }, table);
  const version = { ...readFromServer, at, commits };
  if (cache.server !== server) {
    cache.server = server;
    delete cache.ranks;
    delete cache.requestedVersion;
  }
  if ((cache.version?.at ?? 0) <= at) cache.version = version;
  return version;
}

async function readVersion(ctx: Reader, table: string): Promise<ReadVersion & { server: string }> {
  const [row] = await readRows(
    ctx,
    sql`select coalesce(sum(writes), 0) as version, coalesce(sum(rows), 0) as count, ${SERVER} as server from ${identifier(table)}`,
    true,
  );
  const [version, count, server] = [Number(row?.[0]), Number(row?.[1]), String(row?.[2])];
  return { version, count, server, revision: `${version} ${server}` };
}

function cacheOf(statements: Statements, table: string): TableCache {
  const tables = caches.get(statements) ?? new Map<string, TableCache>();
  caches.set(statements, tables);
  const cache = tables.get(table) ?? {};
  tables.set(table, cache);
  return cache;
}
