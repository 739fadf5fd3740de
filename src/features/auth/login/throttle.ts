import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { createRateLimiter } from '../../../database/rate-limiter.ts';
import { counter } from '../../../core/metrics.ts';
import { readRows } from '../../../database/row-mapper.ts';
import { execute, sql } from '../../../database/sql.ts';
import { usernameKey } from '../../users/username.ts';
import { Reservations } from './reservations.ts';

// Failed logins are counted per account and network, and per network, in the database that all
// instances share. A correct password from another network always works, so that nobody can lock
// out another user. Rejected logins are not counted again, so that the failures of one account do
// not use up the limit of its network. Each instance checks at most as many passwords at once as
// failures remain. Several instances together may check more, but results beyond the limit are not
// revealed.

/** Time for which a failure counts, in seconds. */
const WINDOW_SECONDS = 10 * 60;
/** Maximum value of Retry-After, in seconds. */
const MAX_RETRY_AFTER = 60;
const TABLE = 'login_failure';
/** Maximum number of cached blocked keys. */
const MAX_BLOCKED = 10_000;
/** Maximum time for which a blocked key is cached, in ms. */
const BLOCKED_TTL_MS = 1_000;

const rejections = counter(
  'shopfront_login_refusals_total',
  'Logins rejected with 429 because of too many failures of the account or network.',
);

interface Throttle {
  byAccount: RateLimiterPostgres;
  byNetwork: RateLimiterPostgres;
  /** Keys with too many failures, and when their block ends. They need no more queries. */
  blocked: LRUCache<string, number>;
  reservations: Reservations;
}

/** A key under which an attempt counts, and its limiter. */
interface Limit {
  key: string;
  limiter: RateLimiterPostgres;
}

/** The limit of the account and network, and the limit of the network. */
type Limits = readonly [Limit, Limit];

/**
 * Checks a password. Counts a failure if it is wrong, and resets the account's failures from this
 * network if it is correct. Throws RATE_LIMITED after too many failures of this account from this
 * network, or of all accounts from this network; unknown usernames are treated alike. At most as
 * many passwords as failures remain are checked at once; other attempts wait. If other instances
 * have used up the limit meanwhile, throws RATE_LIMITED whether or not the password is correct.
 */
export async function throttled(
  ctx: Context,
  username: string,
  checkPassword: () => Promise<boolean>,
): Promise<boolean> {
  const limits = limitsOf(ctx, username);
  const release = await throttleOf(ctx).reservations.reserve(
    limits.map(({ key }) => key),
    () => remainingFailures(ctx, limits),
  );
  try {
    const isCorrect = await checkPassword();
    if (isCorrect) await reset(ctx, limits);
    else await count(ctx, limits);
    return isCorrect;
  } finally {
    release();
  }
}

/** Throws RATE_LIMITED if the account or network is cached as blocked. Makes no query. */
export function rejectIfBlocked(ctx: Context, username: string): void {
  rejectCached(ctx, limitsOf(ctx, username));
}

/** Deletes failures that no longer count. Returns the number of rows. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from login_failure where expire <= ${Date.now()}`,
  );
  return affected;
}

/** Clears the cache of blocked keys, after their rows were deleted. */
export function clearBlocked(ctx: Context): void {
  throttleOf(ctx).blocked.clear();
}

function rejectCached(ctx: Context, limits: Limits): void {
  const { blocked } = throttleOf(ctx);
  for (const { key } of limits) {
    const until = blocked.get(key);
    if (until !== undefined) throw tooMany(ctx, limits, until);
  }
}

// Returns the remaining failures of each limit. Throws RATE_LIMITED if none remain.
async function remainingFailures(ctx: Context, limits: Limits): Promise<number[]> {
  // The keys may have been blocked while this attempt waited.
  rejectCached(ctx, limits);
  return (await checkLimits(ctx, limits)).map(({ remaining }) => remaining);
}

// Rejects a correct password if the limit was used up meanwhile: it was guessed beyond the limit.
async function reset(ctx: Context, limits: Limits): Promise<void> {
  const [account] = await checkLimits(ctx, limits);
  const [{ key, limiter }] = limits;
  if (account?.isCounted) await limiter.delete(key);
}

// The account first: failures beyond its limit are not counted for its network.
async function count(ctx: Context, limits: Limits): Promise<void> {
  for (const { key, limiter } of limits) {
    const { consumedPoints, msBeforeNext } = await limiter.penalty(key);
    const state = stateOf(key, limiter, consumedPoints, Date.now() + msBeforeNext);
    rejectUsedUp(ctx, limits, state.remaining < 0 ? [state] : []);
  }
}

interface State {
  key: string;
  /** Remaining failures; negative beyond the limit. */
  remaining: number;
  /** When the failures stop counting, in ms since 1970. */
  until: number;
  isCounted: boolean;
}

// Returns the states of the limits. Throws RATE_LIMITED if one of them is used up.
async function checkLimits(ctx: Context, limits: Limits): Promise<State[]> {
  const states = await statesOf(ctx, limits);
  rejectUsedUp(
    ctx,
    limits,
    states.filter(({ remaining }) => remaining <= 0),
  );
  return states;
}

async function statesOf(ctx: Context, limits: Limits): Promise<State[]> {
  const storedKeys = limits.map(({ key, limiter }) => limiter.getKey(key));
  const rows = await readRows(
    ctx,
    sql`select key, points, expire from login_failure where key = any(${storedKeys}::text[])`,
    true,
  );
  return limits.map(({ key, limiter }, index) => {
    const [, points, expire] = rows.find(([storedKey]) => storedKey === storedKeys[index]) ?? [];
    return stateOf(key, limiter, Number(points ?? 0), Number(expire ?? 0));
  });
}

function stateOf(
  key: string,
  { points }: RateLimiterPostgres,
  failed: number,
  until: number,
): State {
  const isCounted = until > Date.now();
  return { key, remaining: isCounted ? points - failed : points, until, isCounted };
}

function rejectUsedUp(ctx: Context, limits: Limits, used: readonly State[]): void {
  if (used.length === 0) return;
  const { blocked } = throttleOf(ctx);
  for (const { key, until } of used)
    blocked.set(key, until, { ttl: Math.min(BLOCKED_TTL_MS, Math.max(1, until - Date.now())) });
  throw tooMany(ctx, limits, Math.max(...used.map(({ until }) => until)));
}

function tooMany(ctx: Context, [{ key }]: Limits, until: number): DomainError {
  rejections.value++;
  // Logs a hash of the username, because a username may be a password typed into the wrong field.
  const account = key.slice(0, 8);
  ctx.log.warn(
    { event: 'auth.throttle', outcome: 'failure', user: null, account },
    'Login rejected after too many failures',
  );
  const wait = Math.ceil((until - Date.now()) / 1000);
  return new DomainError(
    'RATE_LIMITED',
    'Too many failed logins; try again later',
    [],
    Math.min(Math.max(wait, 1), MAX_RETRY_AFTER),
  );
}

const throttles = new WeakMap<object, Throttle>();

// One throttle per database connection pool.
function throttleOf({ em, config }: Context): Throttle {
  const connection = em.getConnection();
  const existing = throttles.get(connection);
  if (existing) return existing;
  const limiter = (keyPrefix: string, points: number) =>
    createRateLimiter(em, { table: TABLE, keyPrefix, points, duration: WINDOW_SECONDS });
  const throttle = {
    byAccount: limiter('account', config.loginFailuresPerAccountPer10Minutes),
    byNetwork: limiter('network', config.loginFailuresPerAddressPer10Minutes),
    blocked: new LRUCache<string, number>({ max: MAX_BLOCKED, ttl: BLOCKED_TTL_MS }),
    reservations: new Reservations(),
  };
  throttles.set(connection, throttle);
  return throttle;
}

function limitsOf(ctx: Context, username: string): Limits {
  const { byAccount, byNetwork } = throttleOf(ctx);
  const { network = 'unknown' } = ctx;
  const account = createHash('sha256')
    .update(`${network} ${usernameKey(username)}`)
    .digest('base64url');
  return [
    { key: account, limiter: byAccount },
    { key: network, limiter: byNetwork },
  ];
}
