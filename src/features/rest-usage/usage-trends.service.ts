import { requireScope } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { deprecatedPaths } from '../../core/deprecation.ts';
import { badInput } from '../../core/errors.ts';
import { execute, join, literal, readJson, readTime, sql, type Sql } from '../../database/sql.ts';
import { MAX_PAGE } from '../../pagination/keyset.ts';
import { firstDay, OWN_CLIENTS, USAGE_DAYS } from './rest-usage.service.ts';

/** Number of days that are compared with as many days before. */
const TREND_DAYS = 14;
/** Maximum number of usernames of a line. */
const MAX_USERNAMES = 10;
/** Maximum number of lines to skip. */
const MAX_SKIP = 1_000_000;

/** How the number of calls changes. */
export enum RestUsageTrend {
  GROWING = 'GROWING',
  STEADY = 'STEADY',
  DWINDLING = 'DWINDLING',
  GONE = 'GONE',
}

/** Columns by which lines can be grouped. */
export const TREND_GROUPINGS = ['endpoint', 'client'] as const;

type Grouping = (typeof TREND_GROUPINGS)[number];

/** Filter, grouping and part of the list. */
export interface TrendsInput {
  /** One line per endpoint or client; by default, one per combination. */
  by?: Grouping | undefined;
  /** Whether only calls of deprecated endpoints count. */
  deprecatedOnly?: boolean | undefined;
  /** Whether to include the contract tests and the browser pages. */
  includeOwn?: boolean | undefined;
  /** Maximum number of lines. */
  first: number;
  /** Number of lines to skip. */
  skip?: number | undefined;
}

/** Calls of an endpoint by a client in the last 90 days. */
export interface TrendLine {
  /** Method and path template; null if grouped by client. */
  endpoint: string | null;
  /** Null if grouped by endpoint. */
  client: string | null;
  /** Whether an endpoint of the line is deprecated. */
  deprecated: boolean;
  /** Users with whose credentials the client called, at most ten, in alphabetical order. */
  usernames: string[];
  calls: number;
  /** Calls by UTC day, the oldest first; the last day is today. */
  days: number[];
  /** Calls in the last 14 days, today included. */
  recentCalls: number;
  /** Calls in the 14 days before. */
  earlierCalls: number;
  trend: RestUsageTrend;
  /** Time of the last call; the start of its day (UTC) if only the day is known. */
  lastAt: Date;
}

/** Lines with recent calls first, then those with the most calls. */
export interface Trends {
  lines: TrendLine[];
  /** Number of lines without `first` and `skip`. */
  totalCount: number;
  /** Number of those with calls in the last 14 days. */
  activeCount: number;
  /** First of the days of each line, as 2027-01-31. */
  firstDay: string;
  /** Beginnings of the deprecated paths, such as `/api/v1/`. */
  deprecatedPaths: string[];
}

/**
 * Returns a page of at most 100 lines. Requires `users:read`, because it contains user agents and
 * usernames. Throws BAD_USER_INPUT.
 */
export async function page(ctx: Context, input: TrendsInput): Promise<Trends> {
  requireScope(ctx, 'users:read');
  const { first, skip = 0 } = input;
  if (first < 1 || first > MAX_PAGE) throw badInput('first', `must be from 1 to ${MAX_PAGE}`);
  if (skip < 0 || skip > MAX_SKIP) throw badInput('skip', `must be from 0 to ${MAX_SKIP}`);
  return trends(ctx, input);
}

/** Returns calls by endpoint, client and day in the last 90 days with their trend, for operators. */
export async function trends(
  ctx: Context,
  { by, deprecatedOnly = false, includeOwn = false, first, skip = 0 }: TrendsInput,
): Promise<Trends> {
  const prefixes = deprecatedPaths(ctx.config).map(({ prefix }) => prefix);
  const isDeprecated = sql`split_part(endpoint, ' ', 2) like any(${prefixes.map((prefix) => `${prefix}%`)}::text[])`;
  const keys = join(
    TREND_GROUPINGS.filter((key) => by === undefined || by === key).map((key) => COLUMNS[key]),
    ', ',
  );
  const from = firstDay(ctx);
  const inDays = sql`day between ${from}::date and ${from}::date + ${literal(USAGE_DAYS - 1)}`;
  const isIncluded = sql`
    ${includeOwn ? sql`true` : sql`client !~ ${OWN_CLIENTS}`} and ${deprecatedOnly ? isDeprecated : sql`true`}`;
  const { rows } = await execute(
    ctx.em,
    sql`
    with line as (
      select ${keys}, sum(calls) as total, bool_or(${isDeprecated}) as deprecated,
        bool_or(day >= ${from}::date + ${literal(USAGE_DAYS - TREND_DAYS)}) as active
      from rest_call_day where ${inDays} and ${isIncluded} group by ${keys}
    ), line_page as (
      select * from line order by active desc, total desc, ${keys} limit ${first} offset ${skip}
    ), daily as (
      select ${keys}, day, sum(calls) as calls from line_page join rest_call_day using (${keys})
      where ${inDays} and ${isIncluded} group by ${keys}, day
    ), days as (
      select ${keys}, json_object_agg(day - ${from}::date, calls) as days, max(day)::timestamp at time zone 'UTC' as last_day
      from daily group by ${keys}
    ), caller as (
      select ${keys}, max(last_at) as last_at,
        to_json((array_agg(distinct subject order by subject) filter (where subject <> ''))[:${literal(MAX_USERNAMES)}]) as usernames
      from line_page join rest_call using (${keys})
      where last_at >= ${from}::timestamp at time zone 'UTC' and ${isIncluded} group by ${keys}
    )
    select *, coalesce(last_at, last_day) as last_call
    from (select count(*) as all_lines, count(*) filter (where active) as active_lines from line) as count
      left join (line_page join days using (${keys}) left join caller using (${keys})) on true
    order by active desc, total desc, ${keys}`,
  );
  return {
    lines: rows.filter(({ total }) => total !== null).map(lineOf),
    totalCount: Number(rows[0]?.['all_lines']),
    activeCount: Number(rows[0]?.['active_lines']),
    firstDay: from,
    deprecatedPaths: prefixes,
  };
}

const COLUMNS: Readonly<Record<Grouping, Sql>> = { endpoint: sql`endpoint`, client: sql`client` };

function lineOf({
  endpoint,
  client,
  deprecated,
  usernames,
  last_call: lastAt,
  days: callsByDay,
}: Record<string, unknown>): TrendLine {
  const found = readJson(callsByDay) as Readonly<Record<number, number>>;
  const days = Array.from({ length: USAGE_DAYS }, (_, index) => found[index] ?? 0);
  const recentCalls = sum(days.slice(-TREND_DAYS));
  const earlierCalls = sum(days.slice(-2 * TREND_DAYS, -TREND_DAYS));
  return {
    endpoint: typeof endpoint === 'string' ? endpoint : null,
    client: typeof client === 'string' ? client : null,
    deprecated: deprecated === true || deprecated === 't',
    usernames: (readJson(usernames) ?? []) as string[],
    calls: sum(days),
    days,
    recentCalls,
    earlierCalls,
    trend: trendOf(recentCalls, earlierCalls),
    lastAt: readTime(lastAt),
  };
}

/**
 * Returns the trend of the calls in the last 14 days against those in the 14 days before: GONE
 * without recent calls, GROWING from 4/3 of the earlier calls on, DWINDLING up to 3/4 of them, else
 * STEADY.
 */
function trendOf(recent: number, earlier: number): RestUsageTrend {
  if (recent === 0) return RestUsageTrend.GONE;
  if (3 * recent >= 4 * earlier) return RestUsageTrend.GROWING;
  return 4 * recent <= 3 * earlier ? RestUsageTrend.DWINDLING : RestUsageTrend.STEADY;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
