import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import { execute, sql } from '../../../database/sql.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import type { Credentials } from '../auth.rules.ts';
import { hashPassword, isOutdated, verifyPassword } from '../passwords/password.ts';
import * as throttle from './throttle.ts';

/**
 * The user whose name and password these are; an older hash is replaced by one of today's cost. Throws INVALID_CREDENTIALS,
 * RATE_LIMITED and, after a right password only, INACTIVE_LOGIN.
 */
export async function authenticate(ctx: Context, input: Credentials): Promise<User> {
  const { username, password } = input;
  const user = await users.byUsername(ctx, username);
  await verify(ctx, username, password, user);
  if (!user) throw invalidCredentials(ctx, user);
  if (user.disabled) throw inactiveLogin(ctx, user);
  if (user.hashedPassword !== null && isOutdated(ctx, user.hashedPassword)) {
    const hash = await hashPassword(ctx, password);
    // Somebody else replaced it meanwhile: perhaps a login like this one, perhaps a new password.
    if (!(await replaceHash(ctx, user, hash))) return authenticate(ctx, input);
    user.hashedPassword = hash;
  }
  return user;
}

/** Checks the password for every door that takes one. Throws INVALID_CREDENTIALS where it is not the user's, and RATE_LIMITED. */
export async function verify(ctx: Context, username: string, password: string, user: User | undefined): Promise<void> {
  const right = await throttle.limited(ctx, username, () => verifyPassword(ctx, password, user?.hashedPassword));
  if (!right) throw invalidCredentials(ctx, user);
}

/**
 * Throws where what `authenticate` found no longer holds. A login and a change of the password, or the disabling of the user,
 * may run at once; in a transaction that has opened a session, and so has waited for the other to end, this keeps the
 * session from outliving what was meant to end it.
 */
export async function refuseChanged(tx: Context, user: User): Promise<void> {
  const { rows } = await execute(
    tx.em,
    sql`
    select disabled, hashed_password as hash from "user" where pk = ${user.pk}`,
  );
  const now = rows[0];
  if (now?.['hash'] !== user.hashedPassword) throw invalidCredentials(tx, user);
  if (now['disabled']) throw inactiveLogin(tx, user);
}

/** Replaces the hash that the user was read with. Returns false where somebody else has replaced it meanwhile. */
export async function replaceHash(ctx: Context, user: User, hash: string): Promise<boolean> {
  const { affected } = await execute(
    ctx.em,
    sql`
    update "user" set hashed_password = ${hash} where pk = ${user.pk} and hashed_password = ${user.hashedPassword}`,
  );
  return affected === 1;
}

/** The refusal of a name and password, the same whatever is wrong with them. */
export function invalidCredentials(ctx: Context, user: User | undefined): DomainError {
  ctx.log.info({ event: 'auth.login', outcome: 'failure', user: user?.username ?? null }, 'wrong username or password');
  return new DomainError('INVALID_CREDENTIALS', 'Incorrect username or password');
}

function inactiveLogin(ctx: Context, user: User): DomainError {
  ctx.log.info({ event: 'auth.login', outcome: 'failure', user: user.username, reason: 'disabled' }, 'a disabled user was refused');
  return new DomainError('INACTIVE_LOGIN', 'Inactive user');
}
