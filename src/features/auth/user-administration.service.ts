import type { z } from 'zod';
import { accountOf, diff, record } from '../audit/audit.log.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import type { Scope } from '../../core/scopes.ts';
import { isUuid, check } from '../../core/validation.ts';
import { run } from '../../database/kysely.ts';
import { User } from '../users/user.entity.ts';
import { newPassword, newUser } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import { hashPassword } from './passwords/hashing.ts';
import { PasswordReset } from './passwords/password-reset.entity.ts';
import { Session } from './sessions/session.entity.ts';
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

/** Stores a new user, within the transaction. Throws CONFLICT if the username is taken. */
export async function store(
  tx: Context,
  facts: Pick<User, 'username' | 'email' | 'fullName' | 'scopes'> & { hashedPassword: string },
): Promise<User> {
  // Concurrent users with names of the same form wait for each other.
  const key = users.usernameForm(facts.username);
  await tx.em.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', [key]);
  if (await users.isUsernameTaken(tx, facts.username))
    throw new DomainError('CONFLICT', `User ${facts.username} already exists`);
  const { username, email, fullName: full_name, hashedPassword: hashed_password } = facts;
  const scopes = [...new Set(facts.scopes)];
  const row = { username, email, full_name, hashed_password, scopes };
  await run(tx, users.tableOf(tx).insertInto('user').values(row));
  return byName(tx, username);
}

/**
 * Disables a user and ends all sessions of the user, in one transaction; or enables the user, whose
 * sessions stay ended. Throws NOT_FOUND.
 */
export async function setDisabled(
  ctx: Context,
  username: string,
  disabled: boolean,
): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    const { pk } = user;
    // First, because this locks the user, so that no login opens a session meanwhile.
    const changed = await tx.em.nativeUpdate(User, { pk, disabled: !disabled }, { disabled });
    // The rows stay until they expire, so that their keys get INACTIVE_USER.
    if (disabled)
      await tx.em.nativeUpdate(Session, { userPk: pk, endedAt: null }, { endedAt: tx.now() });
    const action = disabled ? 'account.disabled' : 'account.enabled';
    if (changed > 0) await record(tx, action, accountOf(user));
  });
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
  await users.replaceHash(tx, userPk, hash);
  return endAccess(tx, userPk);
}

/**
 * Deletes the password resets of a user, whose mails somebody else may read, and ends all sessions
 * of the user except `keep`, within the transaction. Returns the `sid` of each.
 */
export async function endAccess(tx: Context, userPk: number, keep?: string): Promise<string[]> {
  await tx.em.nativeDelete(PasswordReset, { userPk });
  return sessions.end(tx, { user_pk: userPk }, keep);
}

/** Adds and removes scopes of a user. Returns the resulting scopes. Throws NOT_FOUND. */
export async function changeScopes(
  ctx: Context,
  username: string,
  { add = [], remove = [] }: { add?: Scope[]; remove?: Scope[] },
): Promise<Scope[]> {
  return inTransaction(ctx, async (tx) => {
    // Locks the user, so that each concurrent change records the scopes that it replaced.
    const { pk } = await byName(tx, username);
    const user = await users.lock(tx, pk);
    if (!user) throw unknownUser(username);
    const scopes = [...new Set([...user.scopes, ...add])].filter(
      (scope) => !remove.includes(scope),
    );
    const changes = diff({ scopes: textOf(user.scopes) }, { scopes: textOf(scopes) });
    if (changes.length === 0) return scopes;
    user.scopes = scopes;
    await record(tx, 'account.scopes_changed', accountOf(user), changes);
    return scopes;
  });
}

/**
 * Ends sessions of a user other than by logout: the session `only`, or all. Returns the `sid` of
 * each.
 */
export async function endSessions(
  ctx: Context,
  user: Pick<User, 'pk' | 'username'>,
  only?: string,
): Promise<string[]> {
  if (only !== undefined && !isUuid(only)) return [];
  return inTransaction(ctx, async (tx) => {
    const ended = await sessions.end(tx, { user_pk: user.pk, ...(only && { sid: only }) });
    const changes = diff({}, { ended: String(ended.length) });
    if (ended.length > 0) await record(tx, 'account.sessions_ended', accountOf(user), changes);
    return ended;
  });
}

/** Returns the user of this name, or else the only one whose name has the same form. Throws NOT_FOUND. */
export async function byName(ctx: Context, username: string): Promise<User> {
  const user = await users.byTypedUsername(ctx, username);
  if (!user) throw unknownUser(username);
  return user;
}

function unknownUser(username: string): DomainError {
  return new DomainError('NOT_FOUND', `User ${username} does not exist`);
}

function textOf(scopes: readonly Scope[]): string | null {
  return scopes.length > 0 ? scopes.join(' ') : null;
}
