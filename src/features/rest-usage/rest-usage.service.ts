import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { execute, join, readTime, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { OTHERS, type CallCounter, type Calls } from './call-counter.ts';

/**
 * Maximum number of stored rows, each with and without a user. New clients above it are counted as
 * others, so that nobody can fill the table.
 */
const MAX_STORED = 10_000;

/**
 * Maximum number of rows per day. Clients with a user can be stored up to twice as many rows, so
 * that anonymous calls do not displace them. Others are counted together for the day.
 */
const MAX_STORED_PER_DAY = 1_000;

/** Number of days for which calls are kept by day, today included. */
export const USAGE_DAYS = 90;

/**
 * POSIX regular expression of the project's own clients: the contract tests and the browser pages.
 */
export const OWN_CLIENTS = '^shopfront-(contract|pages)(/|$)';

/** Columns by which a report can be grouped. */
export const GROUPINGS = ['endpoint', 'client', 'subject'] as const;

type Grouping = (typeof GROUPINGS)[number];

/** Filter, grouping and length of a report. */
export interface ReportInput {
  /** Only clients that have called since. */
  since?: Date | undefined;
  /** Only endpoints whose method and path contain this text. */
  endpoint?: string | undefined;
  /** Whether to include the contract tests and the browser pages. */
  includeOwn?: boolean | undefined;
  /** One line per endpoint, client or user; by default, one per combination. */
  by?: Grouping | undefined;
  /** Maximum number of lines. */
  limit: number;
}

/**
 * A line of a report, without the columns that are not grouped by. `subject` is null if anonymous.
 */
interface ReportLine {
  endpoint?: string;
  client?: string;
  subject?: string | null;
  first: Date;
  last: Date;
  calls: number;
}

/** Lines with the most calls first, and totals that include the lines above the limit. */
export interface Report {
  lines: ReportLine[];
  total: { lines: number; calls: number };
}

/**
 * Adds the counts of the counter to the stored ones, in one statement. On an error, returns them to
 * the counter: if the outcome is unknown, calls are counted twice rather than lost.
 */
export async function store(ctx: Context, counter: CallCounter): Promise<void> {
  const counts = counter.take();
  if (counts.length === 0) return;
  try {
    await execute(ctx.em, upsertStatement(counts));
  } catch (error) {
    counter.putBack(counts);
    throw error;
  }
}

/** Reports which clients call which endpoints, since when and how often. */
export async function report(
  ctx: Context,
  { since, endpoint, includeOwn = false, by, limit }: ReportInput,
): Promise<Report> {
  const keys = join(
    (by === undefined ? GROUPINGS : [by]).map((key) => COLUMNS[key]),
    ', ',
  );
  const { rows } = await execute(
    ctx.em,
    sql`
    select ${keys}, min(first_at) as first_at, max(last_at) as last_at, sum(calls) as calls,
      count(*) over () as all_lines, sum(sum(calls)) over () as all_calls
    from rest_call
    where ${includeOwn ? sql`true` : sql`client !~ ${OWN_CLIENTS}`}
      and ${since === undefined ? sql`true` : sql`last_at >= ${since}`} and ${endpoint === undefined ? sql`true` : sql`position(${endpoint} in endpoint) > 0`}
    group by ${keys} order by sum(calls) desc, ${keys} limit ${limit}`,
  );
  return {
    lines: rows.map(lineOf),
    total: {
      lines: Number(rows[0]?.['all_lines'] ?? 0),
      calls: Number(rows[0]?.['all_calls'] ?? 0),
    },
  };
}

/**
 * Deletes the stored calls of a client by its exact name. Returns the number of rows. Throws
 * NOT_FOUND.
 */
export async function forget(ctx: Context, client: string): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`
    with days as (delete from rest_call_day where client = ${client})
    delete from rest_call where client = ${client}`,
  );
  if (affected === 0)
    throw new DomainError('NOT_FOUND', 'No calls recorded for a client with this name');
  return affected;
}

/** Deletes clients without a recent call, and counts of old days. Returns the number of rows. */
export async function sweep(ctx: Context): Promise<number> {
  const cutoff = new Date(ctx.now().getTime() - ctx.config.restUsageRetentionDays * DAY_MS);
  const clients = await execute(ctx.em, sql`delete from rest_call where last_at < ${cutoff}`);
  const days = await execute(
    ctx.em,
    sql`delete from rest_call_day where day < ${firstDay(ctx)}::date`,
  );
  return clients.affected + days.affected;
}

/** Returns the first of the days up to today for which calls are kept by day, as 2027-01-31. */
export function firstDay(ctx: Context): string {
  return new Date(ctx.now().getTime() - (USAGE_DAYS - 1) * DAY_MS).toISOString().slice(0, 10);
}

const COLUMNS: Readonly<Record<Grouping, Sql>> = {
  endpoint: sql`endpoint`,
  client: sql`client`,
  subject: sql`subject`,
};

// Sorts the rows, because instances update the same rows concurrently and would otherwise deadlock.
// Corrects times that a clock change has put out of order.
function upsertStatement(counts: readonly Calls[]): Sql {
  const rows = counts.flatMap(({ days, ...count }) =>
    [...days].map(([day, calls]) => ({ ...count, day, calls })),
  );
  const column = <Name extends keyof (typeof rows)[number]>(name: Name) =>
    rows.map((row) => row[name]);
  return sql`
    with given as (
      select * from unnest(${column('endpoint')}::text[], ${column('client')}::text[], ${column('subject')}::text[],
        ${column('firstAt')}::timestamptz[], ${column('lastAt')}::timestamptz[], ${column('day')}::integer[], ${column('calls')}::bigint[])
        as given (endpoint, client, subject, first_at, last_at, day, calls)
    ), stored as (
      select count(*) filter (where subject = '') as nameless, count(*) filter (where subject <> '') as named from rest_call
    ), checked as (
      select given.*, known.client is not null or case when given.subject = '' then nameless else named end < ${MAX_STORED} as has_place
      from given cross join stored left join rest_call as known using (endpoint, client, subject)
    ), placed as (
      select endpoint, case when has_place then client else ${OTHERS} end as client, case when has_place then subject else '' end as subject,
        first_at, last_at, date '1970-01-01' + day as day, calls
      from checked
    ), stored_by_day as (
      select day, count(*) as day_rows from rest_call_day where day in (select day from placed) group by day
    ), daily as (
      insert into rest_call_day (day, endpoint, client, calls)
      select day, endpoint,
        case when known.calls is not null or coalesce(day_rows, 0) < case when subject = '' then 1 else 2 end * ${MAX_STORED_PER_DAY}
          then client else ${OTHERS} end,
        sum(placed.calls)
      from placed left join stored_by_day using (day) left join rest_call_day as known using (day, endpoint, client)
      group by 1, 2, 3 order by 1, 2, 3
      on conflict (day, endpoint, client) do update set calls = rest_call_day.calls + excluded.calls
    )
    insert into rest_call (endpoint, client, subject, first_at, last_at, calls)
    select endpoint, client, subject, min(least(first_at, last_at)), max(greatest(first_at, last_at)), sum(calls)
    from placed group by 1, 2, 3 order by 1, 2, 3
    on conflict (endpoint, client, subject) do update set
      first_at = least(rest_call.first_at, excluded.first_at),
      last_at = greatest(rest_call.last_at, excluded.last_at),
      calls = rest_call.calls + excluded.calls`;
}

function lineOf({
  endpoint,
  client,
  subject,
  first_at: first,
  last_at: last,
  calls,
}: Record<string, unknown>): ReportLine {
  return {
    ...(typeof endpoint === 'string' && { endpoint }),
    ...(typeof client === 'string' && { client }),
    ...(typeof subject === 'string' && { subject: subject === '' ? null : subject }),
    first: readTime(first),
    last: readTime(last),
    calls: Number(calls),
  };
}
