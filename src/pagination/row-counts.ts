import { sql } from 'kysely';
import type { Context } from '../request/context.ts';
import { builder, readRows, type Reader } from '../database/kysely.ts';
import type { Statements } from '../database/sql.ts';

// Triggers count the rows of an unbounded table in the transaction that adds or removes them, by
// ranges of primary keys (migrations: `product_row_count`). The counts give the total and the start
// of an offset page without reading all rows before it. Each row also counts the statements that
// wrote to its range. Their sum changes with every commit, so it shows whether cached data is
// current.

/** Number of primary keys of a range, as in the migrations. */
const RANGE = 16_384;

/** Maximum age of a cached revision, in ms. */
const MAX_AGE_MS = 40;
/** Age from which a request for the cached revision refreshes it in the background, in ms. */
const REFRESH_AGE_MS = 15;

/** The cached revision of a table. */
interface Cached {
  last?: { revision: string; at: number; commits: number };
  reading?: { revision: Promise<string>; commits: number };
}

const caches = new WeakMap<Statements, Map<string, Cached>>();

/**
 * Returns a text that changes with every commit that writes to the table, and with every start of a
 * server, because a new primary or a restored copy may lack commits and count others instead.
 */
async function revisionOf(ctx: Reader, table: string): Promise<string> {
  const select = sql<{ revision: string }>`
    select concat_ws(' ', sum(writes), pg_postmaster_start_time()) as revision from ${sql.table(table)}`;
  const [row] = await readRows(ctx, select, true);
  return String(row?.revision);
}

/** Like `revisionOf`, at most MAX_AGE_MS old, and never older than this process's last commit. */
export async function recentRevision(ctx: Context, table: string): Promise<string> {
  const { statements } = ctx;
  if (!statements) return revisionOf(ctx, table);
  return cachedRevision(ctx, table) ?? refresh(statements, table);
}

/** Like `recentRevision`, but returns undefined without such a revision in the cache. */
export function cachedRevision(
  { statements }: Pick<Context, 'statements'>,
  table: string,
): string | undefined {
  const cache = statements && cacheOf(statements, table);
  if (!cache?.last || cache.last.commits !== statements?.commits) return undefined;
  const age = performance.now() - cache.last.at;
  if (age > MAX_AGE_MS) return undefined;
  // Nothing waits for this refresh. Errors are ignored: a later read throws them.
  if (age > REFRESH_AGE_MS && !cache.reading)
    void refresh(statements, table).catch(() => undefined);
  return cache.last.revision;
}

// Concurrent requests share one read, so it is not cancelled with the request that started it.
function refresh(statements: Statements, table: string): Promise<string> {
  const cache = cacheOf(statements, table);
  const { commits } = statements;
  if (cache.reading?.commits === commits) return cache.reading.revision;
  // The age counts from the start of the query.
  const at = performance.now();
  const read = revisionOf({ statements }, table).then((revision) => {
    if ((cache.last?.at ?? 0) <= at) cache.last = { revision, at, commits };
    return revision;
  });
  const forget = () => void (cache.reading === reading && delete cache.reading);
  const reading = { commits, revision: read.finally(forget) };
  cache.reading = reading;
  return reading.revision;
}

/** Returns the current number of rows in the table. */
export async function countOf(ctx: Context, table: string): Promise<number> {
  const [row] = await readRows<{ count: number | null }>(ctx, selectCount(table), true);
  return row?.count ?? 0;
}

/** Selects the number of rows as `count`. */
export function selectCount(table: string) {
  return builder.selectFrom(table).select(({ fn }) => fn.sum<number | null>('rows').as('count'));
}

/**
 * Selects the place of the row of this rank, from 0: `skip` rows after the first row whose primary
 * key is at least `pk`. A range without gaps needs no skipping. Has no place if the table has fewer
 * rows.
 */
export function placeOf(table: string, rank: number) {
  // As text, which is a third of the same by a query builder.
  return sql<{ pk: number; skip: number }>`(
    select bucket * ${sql.lit(RANGE)} + 1 + case when is_full then rest else 0 end as pk,
      case when is_full then 0 else rest end as skip
    from (
      select bucket, sum(rows) as rows, sum(rows) = ${sql.lit(RANGE)} as is_full,
        (${rank}::bigint + sum(rows) - sum(sum(rows)) over (order by bucket))::bigint as rest
      from ${sql.table(table)} group by bucket
    ) as range
    where rest < rows order by bucket limit 1)`;
}

function cacheOf(statements: Statements, table: string): Cached {
  const tables = caches.get(statements) ?? new Map<string, Cached>();
  caches.set(statements, tables);
  const cache = tables.get(table) ?? {};
  tables.set(table, cache);
  return cache;
}
