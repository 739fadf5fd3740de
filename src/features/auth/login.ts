import { createHash } from 'node:crypto';
import { Entity } from '@mikro-orm/decorators/legacy';
import type { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { type Context, logFailure } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { counter } from '../../core/metrics.ts';
import { createRateLimiter, RateLimiterRow } from '../../database/rate-limiter.ts';
import type { User } from '../users/user.entity.ts';
import * as users from '../users/user.service.ts';
import type { Credentials } from './auth.rules.ts';
import { hashPassword, isOutdated, verifyPassword } from './passwords/hashing.ts';
import { deleteUntil } from '../../database/kysely.ts';

// Failed logins are counted per account and network, and per network, in the database that all
// instances share. A correct password from another network always works, so that nobody can lock
// out another user. Parallel attempts may check more passwords than failures remain (at most as
// many as hashing.ts admits), but no result beyond the limit is revealed.

/** Time for which a failure counts, in seconds. */
const WINDOW_SECONDS = 10 * 60;
/** Maximum value of Retry-After, in seconds. */
const MAX_RETRY_AFTER = 60;

/** Recent failed logins per account and network, and per network. */
@Entity({ tableName: 'login_failure' })
export class LoginFailure extends RateLimiterRow {}

const rejections = counter(
  'shopfront_login_refusals_total',
  'Logins rejected with 429 because of too many failures of the account or network.',
);

/** A key under which failures count, and its limiter. */
interface Limit {
  key: string;
  limiter: RateLimiterPostgres;
}

/**
 * Returns the user with this name, or else this form of it, and this password. Replaces a hash of a
 * lower cost than the configured one. Throws INVALID_CREDENTIALS, RATE_LIMITED, UNAVAILABLE and, only
 * after a correct password, INACTIVE_LOGIN.
 */
export async function authenticate(ctx: Context, input: Credentials): Promise<User> {
  const { username, password } = input;
  const user = await users.byTypedUsername(ctx, username);
  await verify(ctx, username, password, user);
  if (!user) throw invalidCredentials(ctx, user);
  if (user.disabled) throw inactiveLogin(ctx, user);
  if (user.hashedPassword !== null && isOutdated(ctx, user.hashedPassword)) {
    const hash = await hashPassword(ctx, password);
    // The hash was replaced meanwhile, by another login or a password change.
    if (!(await users.replaceHash(ctx, user.pk, hash, user.hashedPassword)))
      return authenticate(ctx, input);
    user.hashedPassword = hash;
  }
  return user;
}

/** Checks the password of a user. Throws INVALID_CREDENTIALS if it is wrong, and RATE_LIMITED. */
export async function verify(
  ctx: Context,
  username: string,
  password: string,
  user: User | undefined,
): Promise<void> {
  const isCorrect = await throttled(ctx, username, () =>
    verifyPassword(ctx, password, user?.hashedPassword),
  );
  if (!isCorrect) throw invalidCredentials(ctx, user);
}

/** Throws if the user's current row has another password or is disabled, or if there is none. */
export function rejectIfChanged(ctx: Context, user: User, current: User | null): void {
  if (current?.hashedPassword !== user.hashedPassword) throw invalidCredentials(ctx, user);
  if (current.disabled) throw inactiveLogin(ctx, user);
}

/** The error for a wrong username and a wrong password: the same for both. */
export function invalidCredentials(ctx: Context, user: User | undefined): DomainError {
  logFailure(ctx, { event: 'auth.login', user: user?.username ?? null });
  return new DomainError('INVALID_CREDENTIALS', 'Incorrect username or password');
}

function inactiveLogin(ctx: Context, user: User): DomainError {
  logFailure(ctx, { event: 'auth.login', user: user.username, reason: 'disabled' });
  return new DomainError('INACTIVE_LOGIN', 'Inactive user');
}

/**
 * Checks a password. Counts a failure if it is wrong, and resets the account's failures from this
 * network if it is correct. Throws RATE_LIMITED after too many failures of this account from this
 * network, or of all accounts from this network; unknown usernames are treated alike.
 */
export async function throttled(
  ctx: Context,
  username: string,
  checkPassword: () => Promise<boolean>,
): Promise<boolean> {
  const limits = limitsOf(ctx, username);
  await rejectUsedUp(ctx, limits);
  const isCorrect = await checkPassword();
  if (isCorrect) {
    // A correct password was guessed beyond the limit if others used up the limit meanwhile.
    await rejectUsedUp(ctx, limits);
    await limits[0].limiter.delete(limits[0].key);
    return true;
  }
  // The account first: failures beyond its limit are not counted for its network.
  for (const { key, limiter } of limits) {
    const state = await limiter.penalty(key);
    if (state.consumedPoints > limiter.points) throw tooMany(ctx, limits, state);
  }
  return false;
}

/** Deletes failures that no longer count. Returns the number of rows. */
export function sweepFailures(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'login_failure', 'expire', String(Date.now()));
}

async function rejectUsedUp(ctx: Context, limits: readonly [Limit, Limit]): Promise<void> {
  for (const { key, limiter } of limits) {
    const state = await limiter.get(key);
    if (state && state.consumedPoints >= limiter.points) throw tooMany(ctx, limits, state);
  }
}

function tooMany(
  ctx: Context,
  [{ key }]: readonly [Limit, Limit],
  { msBeforeNext }: RateLimiterRes,
): DomainError {
  rejections.value++;
  // Logs a hash of the username, because a username may be a password typed into the wrong field.
  const account = key.slice(0, 8);
  ctx.log.warn(
    { event: 'auth.throttle', outcome: 'failure', user: null, account },
    'Login rejected after too many failures',
  );
  const wait = Math.min(Math.max(Math.ceil(msBeforeNext / 1000), 1), MAX_RETRY_AFTER);
  return new DomainError('RATE_LIMITED', 'Too many failed logins; try again later', [], wait);
}

// Returns the limit of the account and network, and the limit of the network.
function limitsOf({ em, config, network = 'unknown' }: Context, username: string): [Limit, Limit] {
  const limit = (keyPrefix: string, key: string, points: number): Limit => {
    const window = { tableName: 'login_failure', duration: WINDOW_SECONDS };
    return { key, limiter: createRateLimiter(em, { ...window, keyPrefix, points }) };
  };
  const account = createHash('sha256').update(`${network} ${users.usernameForm(username)}`);
  return [
    limit('account', account.digest('base64url'), config.loginFailuresPerAccountPer10Minutes),
    limit('network', network, config.loginFailuresPerAddressPer10Minutes),
  ];
}
