import type { Context } from '../request/context.ts';
import { readRows, type Reader } from '../database/row-mapper.ts';
import { identifier, literal, sql, type Cell, type Sql, type Statements } from '../database/sql.ts';

// A table that grows without end has its rows counted by the database, in the transaction that adds or removes them: by
// ranges of 65,536 primary keys, and by ranges of 256 (migrations: `product_tally`, `product_tally_fine`). From those follow the count of the whole, and
// where a page by number starts, without reading what comes before it. Each row of a tally also holds how many statements have
// written to its range. The sum of those moves with every commit, and so tells whether what was read a moment ago still holds.

const FINE_RANGE = 256;
const COARSE_RANGE = 65_536;

/** For how long what was seen of a table is taken to hold, in ms. */
const HOLDS_MS = 40;
/** From this age on, in ms, it is looked at again in the background while it is asked for. */
const RENEWED_MS = 15;

/** How far a table has come, as of a moment ago: HOLDS_MS at most, and never before this process's own last commit. */
export interface Seen {
  /** Moves with every commit that writes to the table. */
  version: number;
  count: number;
}

/** The same, as the server itself says. */
export interface Looked extends Seen {
  /** Another after each such commit, and on each server: one that took over may lack commits, and count others in their place. */
  revision: string;
}

/** Where the row of a certain rank stands: this many rows after the first one whose primary key is `pk` or more. */
export interface Place {
  pk: number;
  skip: number;
}

interface Dated extends Looked {
  at: number;
  commits: number;
}

interface Ranks extends Seen {
  coarse: readonly Range[];
  /** By the number of the coarse range; filled as they are asked for. */
  fine: Map<number, readonly Range[]>;
}

/** The rows in a range of primary keys, and in all ranges before it. */
interface Range {
  bucket: number;
  rows: number;
  before: number;
}

/** What one process knows of one table. */
interface Memory {
  server?: string;
  seen?: Dated;
  asking?: { commits: number; answer: Promise<Dated> };
  ranks?: Ranks;
  /** The last version that places were asked for at, without ranks. */
  asked?: number;
  isReading?: boolean;
}

/** Which server it is, and since when it runs: another one, or the same from a backup, has another. */
const SERVER = sql`concat_ws(' ', (pg_control_system()).system_identifier, (pg_control_checkpoint()).timeline_id, pg_postmaster_start_time())`;

const memories = new WeakMap<Statements, Map<string, Memory>>();

/** How far the table of this tally has come. */
export async function tallyOf(ctx: Context, table: string): Promise<Looked> {
  const { statements } = ctx;
  if (!statements) return look(ctx, table);
  return freshOf(ctx, table) ?? (await ask(statements, table, memoryOf(statements, table)));
}

/** As `tallyOf`, where that is known without asking the database; else undefined. */
export function freshOf(ctx: Pick<Context, 'statements'>, table: string): Looked | undefined {
  const { statements } = ctx;
  if (!statements) return undefined;
  const memory = memoryOf(statements, table);
  const { seen } = memory;
  if (!seen || seen.commits !== statements.commits) return undefined;
  const age = performance.now() - seen.at;
  if (age > HOLDS_MS) return undefined;
  // Nobody waits for this one, so an error is left to those who will.
  if (age > RENEWED_MS && !memory.asking) void ask(statements, table, memory).catch(() => undefined);
  return seen;
}

/** A text that is another after each write to the table, and on each database that the table was ever restored to. */
export async function revisionOf(ctx: Context, table: string): Promise<string> {
  const [row] = await readRows(
    ctx,
    sql`
      select coalesce(${stampOf(table)}, '') || ' ' || ${table}::regclass::oid || ' ' || ${SERVER}`,
  );
  return String(row?.[0]);
}

/** The count of the whole, as of now. */
export async function countOf(ctx: Context, table: string): Promise<number> {
  const [row] = await readRows(ctx, sql`select coalesce(sum(rows), 0) from ${identifier(table)}`, true);
  return Number(row?.[0]);
}

/** How far the table has come, as one column of a statement: read with rows, it tells of the same moment as they do. */
export function stampOf(table: string): Sql {
  return sql`(select sum(writes) || ' ' || sum(rows) from ${identifier(table)})`;
}

/** What the column of `stampOf` says. */
export function readStamp(cell: Cell): Seen {
  const [version = '0', count = '0'] = (typeof cell === 'string' ? cell : '').split(' ');
  return { version: Number(version), count: Number(count) };
}

/**
 * Where the row of this rank stands, from 0, in the table as it was at a certain version, with the count of the whole then; undefined where that would
 * have to be read first, and is not worth it: `placeAt` finds it in the statement that reads the rows.
 */
export async function placeOf(ctx: Context, table: string, rank: number): Promise<(Place & Seen) | undefined> {
  const { version, count } = await tallyOf(ctx, table);
  if (rank === 0 || rank >= count) return { pk: 1, skip: rank, version, count };
  const ranks = ctx.statements && (await ranksOf(ctx, table, version, memoryOf(ctx.statements, table)));
  const wide = ranks && rangeAt(ranks.coarse, rank);
  const place = wide && (await locate(ctx, table, ranks, wide, rank - wide.before));
  return place && { ...place, version: ranks.version, count: ranks.count };
}

/** As one row of `pk` and `skip` within a statement, the place of the row of this rank; no row where there is none of it. */
export function placeAt(table: string, rank: number): Sql {
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

/** Has this table looked at anew before anyone is told of it again. */
export function forget({ statements }: Pick<Context, 'statements'>, table: string): void {
  if (!statements) return;
  const memory = memoryOf(statements, table);
  delete memory.seen;
  delete memory.asking;
}

// Read when they are asked for a second time at a version: while others write without a pause, each version is gone before it is of use.
async function ranksOf(ctx: Context, table: string, version: number, memory: Memory): Promise<Ranks | undefined> {
  if (memory.ranks && memory.ranks.version >= version) return memory.ranks;
  if (memory.asked !== version || memory.isReading) {
    memory.asked = version;
    return undefined;
  }
  memory.isReading = true;
  try {
    return (memory.ranks = await readRanks(ctx, table));
  } finally {
    memory.isReading = false;
  }
}

async function locate(ctx: Context, table: string, { fine }: Ranks, wide: Range, inWide: number): Promise<Place | undefined> {
  // A full range has no gaps, so that the rank tells the primary key.
  if (wide.rows === COARSE_RANGE) return { pk: firstOf(wide) + inWide, skip: 0 };
  const narrow = fine.get(wide.bucket) ?? (await readFine(ctx, table, wide.bucket));
  if (totalOf(narrow) !== wide.rows) return undefined;
  fine.set(wide.bucket, narrow);
  const own = rangeAt(narrow, inWide);
  if (!own) return undefined;
  const inOwn = inWide - own.before;
  const start = own.bucket * FINE_RANGE + 1;
  return own.rows === FINE_RANGE ? { pk: start + inOwn, skip: 0 } : { pk: start, skip: inOwn };
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
  return { version: rows.reduce((sum, [, , writes]) => sum + Number(writes), 0), count: totalOf(coarse), coarse, fine: new Map() };
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

// On nobody's behalf: others wait for the same answer, which is not given up with the request that asked first.
function ask(statements: Statements, table: string, memory: Memory): Promise<Dated> {
  const { commits } = statements;
  if (memory.asking?.commits === commits) return memory.asking.answer;
  const asking = { commits, answer: seeAnew(statements, table, memory) };
  memory.asking = asking;
  return asking.answer.finally(() => {
    if (memory.asking === asking) delete memory.asking;
  });
}

async function seeAnew(statements: Statements, table: string, memory: Memory): Promise<Dated> {
  const { commits } = statements;
  // What is seen may be as old as the question.
  const at = performance.now();
  const { server, ...looked } = await look({ statements }, table);
  const seen = { ...looked, at, commits };
  if (memory.server !== server) {
    memory.server = server;
    delete memory.ranks;
    delete memory.asked;
  }
  if ((memory.seen?.at ?? 0) <= at) memory.seen = seen;
  return seen;
}

async function look(ctx: Reader, table: string): Promise<Looked & { server: string }> {
  const [row] = await readRows(
    ctx,
    sql`select coalesce(sum(writes), 0) as version, coalesce(sum(rows), 0) as count, ${SERVER} as server from ${identifier(table)}`,
    true,
  );
  const [version, count, server] = [Number(row?.[0]), Number(row?.[1]), String(row?.[2])];
  return { version, count, server, revision: `${version} ${server}` };
}

function memoryOf(statements: Statements, table: string): Memory {
  const tables = memories.get(statements) ?? new Map<string, Memory>();
  memories.set(statements, tables);
  const memory = tables.get(table) ?? {};
  tables.set(table, memory);
  return memory;
}
