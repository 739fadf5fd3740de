import { sql } from 'kysely';
import { includesWriteScope } from '../core/scopes.ts';
import type { Context } from '../request/context.ts';
import { readRows, type Reader } from '../database/kysely.ts';
import type { Statements } from '../database/sql.ts';

// Triggers count the rows of an unbounded table in the transaction that adds or removes them, by
// ranges of primary keys (migrations: `product_row_count`). The counts give the total and the start
// of an offset page without reading all rows before it. Each row also counts the statements that
// wrote to its range. Their sum changes with every commit, so it shows whether cached data is
// current.

/** Number of primary keys of a range, as in the migrations. */
const RANGE = 16_384;

/** Maximum age of cached row counts, in ms. */
const MAX_AGE_MS = 40;
/** Age from which a request for cached row counts refreshes them in the background, in ms. */
const REFRESH_AGE_MS = 15;

export interface RowCounts {
  /** Changes with every commit and every start of a server, which may have lost commits. */
  revision: string;
  /** Number of rows in the table. */
  count: number;
  /** By primary key, with the ranks of the first row and of the first row after the range. */
  ranges: readonly { bucket: number; start: number; end: number }[];
}

/** The cached row counts of a table. */
interface Cached {
  last?: { counts: RowCounts; at: number; commits: number };
  reading?: { counts: Promise<RowCounts>; commits: number };
}

const caches = new WeakMap<Statements, Map<string, Cached>>();

// The ranges, which may be many, are only sent if they have changed.
async function read(ctx: Reader, table: string, known?: RowCounts): Promise<RowCounts> {
  const select = sql<{ revision: string; ranges: [bucket: number, rows: number][] | null }>`
    select revision, case when revision <> ${known?.revision ?? ''} then (
      select json_agg(json_build_array(bucket, rows) order by bucket)
      from (select bucket, sum(rows) as rows from ${sql.table(table)} group by bucket) as range
    ) end as ranges from (
      select concat_ws(' ', sum(writes), pg_postmaster_start_time()) as revision from ${sql.table(table)}
    ) as written`;
  const [row] = await readRows(ctx, select, true);
  const { revision = '', ranges: all } = row ?? {};
  if (known?.revision === revision) return known;
  let end = 0;
  const ranges = (all ?? []).map(([bucket, rows]) => ({
    bucket,
    start: end,
    end: (end += rows),
  }));
  return { revision, count: end, ranges };
}

/**
 * Returns row counts that are at most MAX_AGE_MS old, and never older than this process's last
 * commit. They are current in a transaction and for callers who may have written elsewhere.
 */
export async function recentCounts(ctx: Context, table: string): Promise<RowCounts> {
  const { statements, caller } = ctx;
  if (!statements || includesWriteScope(caller?.scopes ?? [])) return read(ctx, table);
  return cachedCounts(ctx, table) ?? refresh(statements, table);
}

/** Like `recentCounts`, but returns undefined without such row counts in the cache. */
export function cachedCounts(
  { statements }: Pick<Context, 'statements'>,
  table: string,
): RowCounts | undefined {
  const cache = statements && cacheOf(statements, table);
  if (!cache?.last || cache.last.commits !== statements?.commits) return undefined;
  const age = performance.now() - cache.last.at;
  if (age > MAX_AGE_MS) return undefined;
  // Nothing waits for this refresh. Errors are ignored: a later read throws them.
  if (age > REFRESH_AGE_MS && !cache.reading)
    void refresh(statements, table).catch(() => undefined);
  return cache.last.counts;
}

// Concurrent requests share one read, so it is not cancelled with the request that started it.
function refresh(statements: Statements, table: string): Promise<RowCounts> {
  const cache = cacheOf(statements, table);
  const { commits } = statements;
  if (cache.reading?.commits === commits) return cache.reading.counts;
  // The age counts from the start of the query.
  const at = performance.now();
  const made = read({ statements }, table, cache.last?.counts).then((counts) => {
    if ((cache.last?.at ?? 0) <= at) cache.last = { counts, at, commits };
    return counts;
  });
  const forget = () => void (cache.reading === reading && delete cache.reading);
  const reading = { commits, counts: made.finally(forget) };
  cache.reading = reading;
  return reading.counts;
}

/**
 * Returns the place of the row of this rank, from 0: `skip` rows after the first row whose primary
 * key is at least `pk`. A range without gaps needs no skipping. Returns undefined if the table has
 * fewer rows.
 */
export function placeOf(
  { ranges }: RowCounts,
  rank: number,
): { pk: number; skip: number } | undefined {
  const range = ranges.find(({ end }) => rank < end);
  if (!range) return undefined;
  const { bucket, start, end } = range;
  const [pk, rest] = [bucket * RANGE + 1, rank - start];
  return end - start === RANGE ? { pk: pk + rest, skip: 0 } : { pk, skip: rest };
}

function cacheOf(statements: Statements, table: string): Cached {
  const tables = caches.get(statements) ?? new Map<string, Cached>();
  caches.set(statements, tables);
  const cache = tables.get(table) ?? {};
  tables.set(table, cache);
  return cache;
}
