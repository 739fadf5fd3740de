import type { z } from 'zod';
import { accountOf, diff, record } from '../audit/audit.log.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import type { Scope } from '../../core/scopes.ts';
import { check } from '../../core/validation.ts';
import { execute, sql } from '../../database/sql.ts';
import { User } from '../users/user.entity.ts';
import { newPassword, newUser } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import { usernameKey } from '../users/username.ts';
import { hashPassword } from './passwords/password.ts';
import * as sessions from './sessions/session.service.ts';

// Changes to accounts. Nothing here authorizes the caller: callers are the operator's commands, and
// services that have checked a session or a token from a mail.

/** Creates a user. Throws BAD_USER_INPUT, and CONFLICT if the username is taken. */
export async function create(ctx: Context, input: z.input<typeof newUser>): Promise<User> {
  const { username, password, email = null, fullName = null, scopes = [] } = check(newUser, input);
  const hashedPassword = await hashPassword(ctx, password);
  return inTransaction(ctx, async (tx) => {
    const user = await store(tx, { username, email, fullName, scopes, hashedPassword });
    await record(tx, 'account.created', accountOf(user), diff({}, { scopes: textOf(user.scopes) }));
    return user;
  });
}

/**
 * Stores a new user, within the transaction. Throws CONFLICT if a user has this username or one
 * that looks alike.
 */
export async function store(
  tx: Context,
  facts: Pick<User, 'username' | 'email' | 'fullName' | 'scopes'> & { hashedPassword: string },
): Promise<User> {
  // Concurrent users with names that look alike wait for each other.
  const key = usernameKey(facts.username);
  await execute(tx.em, sql`select pg_advisory_xact_lock(hashtextextended(${key}, 0))`);
  if (await users.isUsernameTaken(tx, facts.username)) throw usernameTaken(facts.username);
  const user = Object.assign(new User(), { ...facts, scopes: [...new Set(facts.scopes)] });
  await tx.em.persist(user).flush();
  return user;
}

/** Disables a user and ends all sessions of the user, in one transaction. Throws NOT_FOUND. */
export async function disable(ctx: Context, username: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await setDisabled(tx, user, true);
    await sessions.endForDisabled(tx, user.pk);
  });
}

/** Enables a disabled user. Sessions that disabling ended stay ended. Throws NOT_FOUND. */
export async function enable(ctx: Context, username: string): Promise<void> {
  await inTransaction(ctx, async (tx) => setDisabled(tx, await byName(tx, username), false));
}

/**
 * Sets a user's password and ends all sessions of the user. Returns the number of sessions ended.
 * Throws BAD_USER_INPUT and NOT_FOUND.
 */
export async function setPassword(ctx: Context, username: string, next: string): Promise<number> {
  const hash = await hashPassword(ctx, check(newPassword, next));
  return inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await record(tx, 'account.password_changed', accountOf(user));
    return (await replacePassword(tx, user.pk, hash)).length;
  });
}

/**
 * Replaces a user's password without checking the old one, and ends all sessions of the user,
 * within the transaction. Returns the `sid` of each.
 */
export async function replacePassword(
  tx: Context,
  userPk: number,
  hash: string,
): Promise<string[]> {
  await execute(tx.em, sql`update "user" set hashed_password = ${hash} where pk = ${userPk}`);
  await deletePasswordResets(tx, userPk);
  return sessions.endAll(tx, userPk);
}

/**
 * Invalidates the user's password reset tokens, within the transaction that has changed the password:
 * maybe because somebody else reads the mail.
 */
export async function deletePasswordResets(tx: Context, userPk: number): Promise<void> {
  await execute(tx.em, sql`delete from password_reset where user_pk = ${userPk}`);
}

/** Adds and removes scopes of a user. Returns the resulting scopes. Throws NOT_FOUND. */
export async function changeScopes(
  ctx: Context,
  username: string,
  { add = [], remove = [] }: { add?: Scope[]; remove?: Scope[] },
): Promise<Scope[]> {
  return inTransaction(ctx, async (tx) => {
    // Locks the user, so that each concurrent change records the scopes that it replaced.
    const { pk, username: name } = await byName(tx, username);
    await execute(tx.em, sql`select from "user" where pk = ${pk} for no key update`);
    const user = await byName(tx, name);
    const scopes = [...new Set([...user.scopes, ...add])].filter(
      (scope) => !remove.includes(scope),
    );
    const changes = diff({ scopes: textOf(user.scopes) }, { scopes: textOf(scopes) });
    if (changes.length === 0) return scopes;
    await execute(tx.em, sql`update "user" set scopes = ${scopes}::text[] where pk = ${user.pk}`);
    await record(tx, 'account.scopes_changed', accountOf(user), changes);
    return scopes;
  });
}

/**
 * Ends sessions of a user other than by logout: the session `only`, all sessions except `keep`, or
 * all. Returns the `sid` of each.
 */
export function endSessions(
  ctx: Context,
  user: Pick<User, 'pk' | 'username'>,
  { only, keep }: { only?: string; keep?: string | undefined } = {},
): Promise<string[]> {
  return inTransaction(ctx, async (tx) => {
    const ended =
      only === undefined
        ? await sessions.endAll(tx, user.pk, keep)
        : await sessions.endOf(tx, user.pk, only);
    const changes = diff({}, { ended: String(ended.length) });
    if (ended.length > 0) await record(tx, 'account.sessions_ended', accountOf(user), changes);
    return ended;
  });
}

/** Returns the user of this name, or else the only one whose name has the same form. Throws NOT_FOUND. */
export async function byName(ctx: Context, username: string): Promise<User> {
  const user = await users.byTypedUsername(ctx, username);
  if (!user) throw new DomainError('NOT_FOUND', `User ${username} does not exist`);
  return user;
}

/** The error for a username that another user has. */
export function usernameTaken(username: string): DomainError {
  return new DomainError('CONFLICT', `User ${username} already exists`);
}

// Records an action only if the user changes.
async function setDisabled(tx: Context, user: User, disabled: boolean): Promise<void> {
  const { affected } = await execute(
    tx.em,
    sql`update "user" set disabled = ${disabled} where pk = ${user.pk} and disabled <> ${disabled}`,
  );
  if (affected > 0)
    await record(tx, disabled ? 'account.disabled' : 'account.enabled', accountOf(user));
}

function textOf(scopes: readonly Scope[]): string | null {
  return scopes.length > 0 ? scopes.join(' ') : null;
}
