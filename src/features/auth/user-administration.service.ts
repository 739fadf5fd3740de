import { UniqueConstraintViolationException } from '@mikro-orm/postgresql';
import type { z } from 'zod';
import { accountOf, differences, note } from '../audit/audit.log.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import type { Scope } from '../../core/scopes.ts';
import { check } from '../../core/validation.ts';
import { execute, sql } from '../../database/sql.ts';
import { User } from '../users/user.entity.ts';
import { newPassword, newUser } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import { hashPassword } from './passwords/password.ts';
import * as sessions from './sessions/session.service.ts';

// What is done to accounts, by whoever was allowed to: nothing here asks who is calling. The command line reaches it, and what proves by a token
// that it may (src/accounts).

/** Makes a user. Throws BAD_USER_INPUT, and CONFLICT where the name is taken. */
export async function create(ctx: Context, input: z.input<typeof newUser>): Promise<User> {
  const { username, password, email = null, fullName = null, scopes = [] } = check(newUser, input);
  const hashedPassword = await hashPassword(ctx, password);
  return inTransaction(ctx, async (tx) => {
    const user = await store(tx, { username, email, fullName, scopes, hashedPassword });
    await note(tx, 'account.created', accountOf(user), differences({}, { scopes: textOf(user.scopes) }));
    return user;
  });
}

/** Stores a new user, in the transaction at hand. Throws CONFLICT where the name is taken. */
export async function store(
  tx: Context,
  facts: Pick<User, 'username' | 'email' | 'fullName' | 'scopes'> & { hashedPassword: string },
): Promise<User> {
  const user = Object.assign(new User(), { ...facts, scopes: [...new Set(facts.scopes)] });
  try {
    await tx.em.persist(user).flush();
  } catch (error) {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    throw taken(facts.username);
  }
  return user;
}

/** Keeps a user from signing in and ends all sessions of the user, in one transaction. Throws NOT_FOUND. */
export async function disable(ctx: Context, username: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await setDisabled(tx, user, true);
    await sessions.endForDisabled(tx, user.pk);
  });
}

/** Lets a disabled user sign in again; the sessions that disabling ended stay ended. Throws NOT_FOUND. */
export async function enable(ctx: Context, username: string): Promise<void> {
  await inTransaction(ctx, async (tx) => setDisabled(tx, await byName(tx, username), false));
}

/** Sets a user's password and ends all sessions of the user. Returns how many. Throws BAD_USER_INPUT and NOT_FOUND. */
export async function setPassword(ctx: Context, username: string, next: string): Promise<number> {
  const hash = await hashPassword(ctx, check(newPassword, next));
  return inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await note(tx, 'account.password_changed', accountOf(user));
    return (await replacePassword(tx, user.pk, hash)).length;
  });
}

/** Replaces a user's password, whatever it was, and ends all sessions of the user, in the transaction at hand. Returns the `sid` of each. */
export async function replacePassword(tx: Context, userPk: number, hash: string): Promise<string[]> {
  await forgetResets(tx, userPk);
  await execute(tx.em, sql`update "user" set hashed_password = ${hash} where pk = ${userPk}`);
  return sessions.endAll(tx, userPk);
}

/** Has no token that was mailed before set the user's password any more, in the transaction at hand: whoever reads the mail may be why there is a new one. */
export async function forgetResets(tx: Context, userPk: number): Promise<void> {
  await execute(tx.em, sql`delete from password_reset where user_pk = ${userPk}`);
}

/** Adds scopes to those that a user holds, and takes others away. Returns what the user then holds. Throws NOT_FOUND. */
export async function changeScopes(
  ctx: Context,
  username: string,
  { add = [], remove = [] }: { add?: Scope[]; remove?: Scope[] },
): Promise<Scope[]> {
  return inTransaction(ctx, async (tx) => {
    // One at a time: each says what there was before it.
    await execute(tx.em, sql`select pk from "user" where username = ${username} for no key update`);
    const user = await byName(tx, username);
    const scopes = [...new Set([...user.scopes, ...add])].filter((scope) => !remove.includes(scope));
    const changes = differences({ scopes: textOf(user.scopes) }, { scopes: textOf(scopes) });
    if (changes.length === 0) return scopes;
    await execute(tx.em, sql`update "user" set scopes = ${scopes}::text[] where pk = ${user.pk}`);
    await note(tx, 'account.scopes_changed', accountOf(user), changes);
    return scopes;
  });
}

/**
 * Ends sessions of a user by another way than their own logout: the one of this `sid`, all but the one to keep, or all. Returns the `sid` of each that
 * ended.
 */
export function endSessions(
  ctx: Context,
  user: Pick<User, 'pk' | 'username'>,
  { only, keep }: { only?: string; keep?: string | undefined } = {},
): Promise<string[]> {
  return inTransaction(ctx, async (tx) => {
    const ended = only === undefined ? await sessions.endAll(tx, user.pk, keep) : await sessions.endOf(tx, user.pk, only);
    const changes = differences({}, { ended: String(ended.length) });
    if (ended.length > 0) await note(tx, 'account.sessions_ended', accountOf(user), changes);
    return ended;
  });
}

/** The user of this name. Throws NOT_FOUND. */
export async function byName(ctx: Context, username: string): Promise<User> {
  const user = await users.byUsername(ctx, username);
  if (!user) throw new DomainError('NOT_FOUND', `There is no user ${username}`);
  return user;
}

/** The refusal of a name that somebody has. */
export function taken(username: string): DomainError {
  return new DomainError('CONFLICT', `There is a user ${username} already`);
}

// Who is so already stays so, and that is no deed.
async function setDisabled(tx: Context, user: User, disabled: boolean): Promise<void> {
  const { affected } = await execute(
    tx.em,
    sql`update "user" set disabled = ${disabled} where pk = ${user.pk} and disabled <> ${disabled}`,
  );
  if (affected > 0) await note(tx, disabled ? 'account.disabled' : 'account.enabled', accountOf(user));
}

function textOf(scopes: readonly Scope[]): string | null {
  return scopes.length > 0 ? scopes.join(' ') : null;
}
