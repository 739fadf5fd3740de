import { sql } from 'kysely';
import { badInput, DomainError } from '../../core/errors.ts';
import { deprecatedPaths } from '../../core/deprecation.ts';
import { DAY_MS } from '../../core/time.ts';
import { run, runStatement, statementOf, type Columns } from '../../database/kysely.ts';
import { MAX_PAGE } from '../../pagination/keyset.ts';
import { requireScope } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { OTHERS, type CallCounter } from './call-counter.ts';
import { RestCall } from './rest-call.entity.ts';

/**
 * Maximum number of stored rows, each with and without a user. New clients above it are counted as
 * others, so that nobody can fill the table.
 */
const MAX_STORED = 10_000;

/**
 * POSIX regular expression of the project's own clients: the contract tests and the browser pages.
 * Reports leave them out.
 */
const OWN_CLIENTS = '^shopfront-(contract|pages)(/|$)';

/** Filter and length of a report. */
export interface ReportInput {
  /** Only endpoints whose method and path contain this text. */
  endpoint?: string | undefined;
  /** Only clients that have called since. */
  since?: Date | undefined;
  /** Maximum number of lines. */
  limit: number;
}

/** A line of a report. */
export type Line = Awaited<ReturnType<typeof report>>[number];

/**
 * Adds the counts of the counter to the stored ones, in one statement. On an error, returns them to
 * the counter: if the outcome is unknown, calls are counted twice rather than lost.
 */
export async function store(ctx: Context, counter: CallCounter): Promise<void> {
  const counts = counter.take();
  if (counts.length === 0) return;
  const list = JSON.stringify(
    counts.map(({ firstAt, lastAt, ...count }) => ({
      ...count,
      first_at: firstAt,
      last_at: lastAt,
    })),
  );
  // Sorts the rows, because instances update the same rows concurrently and would otherwise deadlock.
  // One statement, because the place of a row depends on those that other instances have stored.
  const upsert = sql`
    insert into rest_call (endpoint, client, subject, first_at, last_at, calls)
    select endpoint, case when has_place then client else ${OTHERS} end, case when has_place then subject else '' end,
      min(least(first_at, last_at)), max(greatest(first_at, last_at)), sum(calls)
    from (
      select given.*, known.client is not null or
        case when given.subject = '' then anonymous else named end < ${MAX_STORED} as has_place
      from json_populate_recordset(null::rest_call, ${list}) as given
        cross join (
          select count(*) filter (where subject = '') as anonymous, count(*) filter (where subject <> '') as named
          from rest_call
        ) as stored
        left join rest_call as known using (endpoint, client, subject)
    ) as checked
    group by 1, 2, 3 order by 1, 2, 3
    on conflict (endpoint, client, subject) do update set
      first_at = least(rest_call.first_at, excluded.first_at),
      last_at = greatest(rest_call.last_at, excluded.last_at),
      calls = rest_call.calls + excluded.calls`;
  try {
    await runStatement(ctx, statementOf(upsert));
  } catch (error) {
    for (const count of counts) counter.add(count);
    throw error;
  }
}

/**
 * Returns a report of at most 100 lines. Requires `users:read`, because it contains user agents and
 * usernames. Throws BAD_USER_INPUT.
 */
export async function page(ctx: Context, input: ReportInput): Promise<Line[]> {
  requireScope(ctx, 'users:read');
  if (input.limit < 1 || input.limit > MAX_PAGE)
    throw badInput('first', `must be from 1 to ${MAX_PAGE}`);
  return report(ctx, input);
}

/** Reports which clients call which endpoints, the most calls first. For operators. */
export async function report(ctx: Context, { since, endpoint, limit }: ReportInput) {
  let lines = ctx.em
    .getKysely<{ rest_call: Columns<RestCall> }>()
    .selectFrom('rest_call')
    .selectAll()
    .where('client', '!~', OWN_CLIENTS)
    .orderBy('calls', 'desc')
    .orderBy('endpoint')
    .orderBy('client')
    .orderBy('subject')
    .limit(limit);
  if (since !== undefined) lines = lines.where('last_at', '>=', since);
  if (endpoint !== undefined)
    lines = lines.where((eb) => eb.fn<number>('strpos', ['endpoint', eb.val(endpoint)]), '>', 0);
  const prefixes = deprecatedPaths(ctx.config).map(({ prefix }) => prefix);
  return (await run(ctx, lines)).map((row) => ({
    endpoint: row.endpoint,
    client: row.client,
    username: row.subject === '' ? null : row.subject,
    isDeprecated: prefixes.some((prefix) => row.endpoint.includes(` ${prefix}`)),
    calls: Number(row.calls),
    firstAt: row.first_at,
    lastAt: row.last_at,
  }));
}

/**
 * Deletes the stored calls of a client by its exact name. Returns the number of rows. Throws
 * NOT_FOUND.
 */
export async function forget(ctx: Context, client: string): Promise<number> {
  const affected = await ctx.em.nativeDelete(RestCall, { client });
  if (affected === 0)
    throw new DomainError('NOT_FOUND', 'No calls recorded for a client with this name');
  return affected;
}

/** Deletes clients without a recent call. Returns the number of rows. */
export async function sweep(ctx: Context): Promise<number> {
  const cutoff = new Date(ctx.now().getTime() - ctx.config.restUsageRetentionDays * DAY_MS);
  return ctx.em.nativeDelete(RestCall, { lastAt: { $lt: cutoff } });
}
