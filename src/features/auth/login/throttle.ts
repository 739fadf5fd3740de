import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { openLimiter } from '../../../database/rate-limiter.ts';
import { counter } from '../../../core/metrics.ts';
import { readRows } from '../../../database/row-mapper.ts';
import { execute, sql } from '../../../database/sql.ts';
import { Flights } from './reservations.ts';

// Failures of logins are counted, by account and network and by network alone, in the database, where all instances see
// them. A right password from elsewhere always works: nobody can lock somebody else out by failing in that one's name. What is
// refused is not counted again, so that one account's failures do not use up what its network may fail. Each instance lets as many be
// looked at as may still fail, so several at once may look at more: what is found out beyond the limit is told to nobody.

/** How long a failure counts, in seconds. */
const WINDOW_SECONDS = 10 * 60;
const MAX_RETRY_AFTER = 60;
const TABLE = 'login_failure';
/** How many keys are remembered as refused, and for how long at most before the database is asked again, in ms. */
const MAX_REFUSED = 10_000;
const REFUSED_MS = 1_000;

const refusals = counter(
  'shopfront_login_refusals_total',
  'Logins refused with 429, as too many of the account or from the network had failed.',
);

interface Throttle {
  byAccount: RateLimiterPostgres;
  byNetwork: RateLimiterPostgres;
  /** Keys that have failed too often, with the time from which they may try again: they cost the database nothing more. */
  refused: LRUCache<string, number>;
  flights: Flights;
}

/** What an attempt counts for, and by which count. */
interface Limit {
  key: string;
  limiter: RateLimiterPostgres;
}

/** By account and network, and by network alone. */
type Limits = readonly [Limit, Limit];

/**
 * Looks at a password, counts it if it is wrong, and forgets the account's failures from this network if it is right. Throws
 * RATE_LIMITED after too many failures of this account from this network, or of any from there, the same for names that nobody
 * has. Of several at once, no more are looked at than may still fail: the others wait. Where other instances have used up the limit
 * meanwhile, it throws RATE_LIMITED whatever the password was.
 */
export async function limited(ctx: Context, username: string, isRight: () => Promise<boolean>): Promise<boolean> {
  const limits = limitsOf(ctx, username);
  const land = await throttleOf(ctx).flights.start(
    limits.map(({ key }) => key),
    () => left(ctx, limits),
  );
  try {
    const right = await isRight();
    if (right) await forgive(ctx, limits);
    else await count(ctx, limits);
    return right;
  } finally {
    land();
  }
}

/** Throws RATE_LIMITED for what has just been refused, without asking the database. */
export function refuseRefused(ctx: Context, username: string): void {
  refuseKnown(ctx, limitsOf(ctx, username));
}

/** Deletes what no longer counts. Returns how much. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from login_failure where expire <= ${Date.now()}`);
  return affected;
}

/** Forgets what this process remembers of refusals, as their rows have gone. */
export function forget(ctx: Context): void {
  throttleOf(ctx).refused.clear();
}

function refuseKnown(ctx: Context, limits: Limits): void {
  const { refused } = throttleOf(ctx);
  for (const { key } of limits) {
    const until = refused.get(key);
    if (until !== undefined) throw tooMany(ctx, limits, until);
  }
}

// How often each may still fail. Throws RATE_LIMITED where that is not at all.
async function left(ctx: Context, limits: Limits): Promise<number[]> {
  // Others may have been refused while this one waited.
  refuseKnown(ctx, limits);
  return (await unspent(ctx, limits)).map(({ remaining }) => remaining);
}

// A password that turns out to be right when others have used up the limit is one that was guessed beyond it.
async function forgive(ctx: Context, limits: Limits): Promise<void> {
  const [account] = await unspent(ctx, limits);
  const [{ key, limiter }] = limits;
  if (account?.isCounted) await limiter.delete(key);
}

// The account first: what is beyond its limit is not counted for its network.
async function count(ctx: Context, limits: Limits): Promise<void> {
  for (const { key, limiter } of limits) {
    const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
    const state = stateOf(key, limiter, consumedPoints, Date.now() + msBeforeNext);
    refuseUsed(ctx, limits, state.remaining < 0 ? [state] : []);
  }
}

interface State {
  key: string;
  /** How often it may still fail; less than nothing where it has failed once too often. */
  remaining: number;
  /** When it may try again. */
  until: number;
  isCounted: boolean;
}

// The states of the limits. Throws RATE_LIMITED where one of them is used up.
async function unspent(ctx: Context, limits: Limits): Promise<State[]> {
  const states = await statesOf(ctx, limits);
  refuseUsed(
    ctx,
    limits,
    states.filter(({ remaining }) => remaining <= 0),
  );
  return states;
}

async function statesOf(ctx: Context, limits: Limits): Promise<State[]> {
  const stored = limits.map(({ key, limiter }) => limiter.getKey(key));
  const rows = await readRows(ctx, sql`select key, points, expire from login_failure where key = any(${stored}::text[])`, true);
  return limits.map(({ key, limiter }, index) => {
    const [, points, expire] = rows.find(([found]) => found === stored[index]) ?? [];
    return stateOf(key, limiter, Number(points ?? 0), Number(expire ?? 0));
  });
}

function stateOf(key: string, { points }: RateLimiterPostgres, failed: number, until: number): State {
  const counts = until > Date.now();
  return { key, remaining: counts ? points - failed : points, until, isCounted: counts };
}

function refuseUsed(ctx: Context, limits: Limits, used: readonly State[]): void {
  if (used.length === 0) return;
  const { refused } = throttleOf(ctx);
  for (const { key, until } of used) refused.set(key, until, { ttl: Math.min(REFUSED_MS, Math.max(1, until - Date.now())) });
  throw tooMany(ctx, limits, Math.max(...used.map(({ until }) => until)));
}

function tooMany(ctx: Context, [{ key }]: Limits, until: number): DomainError {
  refusals.value++;
  // A name that is logged may be a password typed in the wrong place.
  const account = key.slice(0, 8);
  ctx.log.warn({ event: 'auth.throttle', outcome: 'failure', user: null, account }, 'too many logins failed');
  const wait = Math.ceil((until - Date.now()) / 1000);
  return new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], Math.min(Math.max(wait, 1), MAX_RETRY_AFTER));
}

const known = new WeakMap<object, Throttle>();

// One for each pool, whoever asks.
function throttleOf({ em, config }: Context): Throttle {
  const connection = em.getConnection();
  const found = known.get(connection);
  if (found) return found;
  const limiter = (keyPrefix: string, points: number) => openLimiter(em, { table: TABLE, keyPrefix, points, duration: WINDOW_SECONDS });
  const made = {
    byAccount: limiter('account', config.loginFailuresPerAccount),
    byNetwork: limiter('network', config.loginFailuresPerAddress),
    refused: new LRUCache<string, number>({ max: MAX_REFUSED, ttl: REFUSED_MS }),
    flights: new Flights(),
  };
  known.set(connection, made);
  return made;
}

function limitsOf(ctx: Context, username: string): Limits {
  const { byAccount, byNetwork } = throttleOf(ctx);
  const { network = 'unknown' } = ctx;
  const account = createHash('sha256').update(`${network} ${username}`).digest('base64url');
  return [
    { key: account, limiter: byAccount },
    { key: network, limiter: byNetwork },
  ];
}
