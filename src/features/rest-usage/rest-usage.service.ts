import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { execute, join, readTime, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import { OTHERS, type CallCounter, type Calls } from './call-counter.ts';

/** From so many stored lines on, with or without a user, new ones are counted as others: nobody fills the table. */
const MAX_STORED = 10_000;

/** The names of the contract kit and of the pages for browsers, which are no clients of anybody's. A POSIX regular expression. */
const OWN_CLIENTS = '^shopfront-(contract|pages)(/|$)';

/** What the lines of a report can be put together by. */
export const GROUPINGS = ['row', 'client', 'subject'] as const;

type Grouping = (typeof GROUPINGS)[number];

/** Which calls a report is about. */
export interface ReportInput {
  /** Only those who have called since. */
  since?: Date | undefined;
  /** Only rows whose method and path hold this text. */
  row?: string | undefined;
  /** Whether the calls of the contract kit and of the pages for browsers count, too. */
  includeOwn?: boolean | undefined;
  /** One line for each row, client or user; else for each that differs in any. */
  by?: Grouping | undefined;
  /** How many lines at most. */
  limit: number;
}

/** A line of a report. What the lines are not told apart by is absent; `subject` is null where nobody was signed in. */
export interface ReportLine {
  row?: string;
  client?: string;
  subject?: string | null;
  first: Date;
  last: Date;
  calls: number;
}

/** Who calls what, the most calls first, and how much there is of it, also beyond the lines shown. */
export interface Report {
  lines: ReportLine[];
  total: { lines: number; calls: number };
}

/**
 * Adds what was counted to what is stored, in one statement. What cannot be stored goes back to the counter, for the next time; where
 * nobody knows whether it was stored, it is stored again rather than lost.
 */
export async function store(ctx: Context, counter: CallCounter): Promise<void> {
  const taken = counter.take();
  if (taken.length === 0) return;
  try {
    await execute(ctx.em, adding(taken));
  } catch (error) {
    counter.putBack(taken);
    throw error;
  }
}

/** Who calls which rows, since when and how often. */
export async function report(ctx: Context, { since, row, includeOwn = false, by, limit }: ReportInput): Promise<Report> {
  const keys = join(
    (by === undefined ? GROUPINGS : [by]).map((key) => COLUMNS[key]),
    ', ',
  );
  const { rows } = await execute(
    ctx.em,
    sql`
    select ${keys}, min(first_at) as first_at, max(last_at) as last_at, sum(calls) as calls,
      count(*) over () as all_lines, sum(sum(calls)) over () as all_calls
    from legacy_call
    where ${includeOwn ? sql`true` : sql`client !~ ${OWN_CLIENTS}`}
      and ${since === undefined ? sql`true` : sql`last_at >= ${since}`} and ${row === undefined ? sql`true` : sql`position(${row} in "row") > 0`}
    group by ${keys} order by sum(calls) desc, ${keys} limit ${limit}`,
  );
  return {
    lines: rows.map(lineOf),
    total: { lines: Number(rows[0]?.['all_lines'] ?? 0), calls: Number(rows[0]?.['all_calls'] ?? 0) },
  };
}

/** Deletes what is stored of the client with exactly this name. Returns how many lines that was. Throws NOT_FOUND where it is none. */
export async function forget(ctx: Context, client: string): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from legacy_call where client = ${client}`);
  if (affected === 0) throw new DomainError('NOT_FOUND', 'No calls of a client of this name are recorded');
  return affected;
}

/** Forgets those who have not called for LEGACY_CALLS_KEPT_DAYS. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const horizon = new Date(ctx.now().getTime() - ctx.config.legacyCallsKeptDays * DAY_MS);
  const { affected } = await execute(ctx.em, sql`delete from legacy_call where last_at < ${horizon}`);
  return affected;
}

const COLUMNS: Readonly<Record<Grouping, Sql>> = { row: sql`"row"`, client: sql`client`, subject: sql`subject` };

// Instances add to the same rows at the same time, so all take them in one order. Times that a clock has moved back are put right.
function adding(taken: readonly Calls[]): Sql {
  const column = <Name extends keyof Calls>(name: Name): Calls[Name][] => taken.map((calls) => calls[name]);
  return sql`
    with given as (
      select * from unnest(${column('row')}::text[], ${column('client')}::text[], ${column('subject')}::text[],
        ${column('firstAt')}::timestamptz[], ${column('lastAt')}::timestamptz[], ${column('calls')}::bigint[])
        as given ("row", client, subject, first_at, last_at, calls)
    ), stored as (
      select count(*) filter (where subject = '') as nameless, count(*) filter (where subject <> '') as named from legacy_call
    ), placed as (
      select given.*, known.client is not null or case when given.subject = '' then nameless else named end < ${MAX_STORED} as has_place
      from given cross join stored left join legacy_call as known using ("row", client, subject)
    )
    insert into legacy_call ("row", client, subject, first_at, last_at, calls)
    select "row", case when has_place then client else ${OTHERS} end as client, case when has_place then subject else '' end as subject,
      min(least(first_at, last_at)), max(greatest(first_at, last_at)), sum(calls)
    from placed group by 1, 2, 3 order by 1, 2, 3
    on conflict ("row", client, subject) do update set
      first_at = least(legacy_call.first_at, excluded.first_at),
      last_at = greatest(legacy_call.last_at, excluded.last_at),
      calls = legacy_call.calls + excluded.calls`;
}

function lineOf({ row, client, subject, first_at: first, last_at: last, calls }: Record<string, unknown>): ReportLine {
  return {
    ...(typeof row === 'string' && { row }),
    ...(typeof client === 'string' && { client }),
    ...(typeof subject === 'string' && { subject: subject === '' ? null : subject }),
    first: readTime(first),
    last: readTime(last),
    calls: Number(calls),
  };
}
