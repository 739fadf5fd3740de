import type { Context } from '../../../request/context.ts';
import { DomainError } from '../../../core/errors.ts';
import type { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import type { Credentials } from '../auth.rules.ts';
import { hashPassword, isOutdated, verifyPassword } from '../passwords/hashing.ts';
import * as throttle from './throttle.ts';
import { logFailure } from '../outcome.ts';

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
  const isCorrect = await throttle.throttled(ctx, username, () =>
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
