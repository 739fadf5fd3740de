import { UniqueConstraintViolationException } from '@mikro-orm/postgresql';
import type { z } from 'zod';
import { inTransaction, type Context } from '../kit/context.ts';
import { DomainError } from '../kit/errors.ts';
import type { Scope } from '../kit/scopes.ts';
import { check } from '../kit/validation.ts';
import { execute, sql } from '../kit/sql.ts';
import { User } from '../users/user.entity.ts';
import { newPassword, newUser } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import { hashPassword } from './password.ts';
import * as sessions from './session.service.ts';

// What an operator does to accounts. Nothing here asks who is calling: only the command line reaches it.

/** Makes a user. Throws BAD_USER_INPUT, and CONFLICT where the name is taken. */
export async function create(ctx: Context, input: z.input<typeof newUser>): Promise<User> {
  const { username, password, email = null, fullName = null, scopes = [] } = check(newUser, input);
  const hashedPassword = await hashPassword(ctx, password);
  const user = Object.assign(new User(), { username, email, fullName, scopes: [...new Set(scopes)], hashedPassword });
  try {
    await ctx.em.persist(user).flush();
  } catch (error) {
    if (!(error instanceof UniqueConstraintViolationException)) throw error;
    throw new DomainError('CONFLICT', `There is a user ${username} already`);
  }
  return user;
}

/** Keeps a user from signing in and ends all sessions of the user, in one transaction. Throws NOT_FOUND. */
export async function disable(ctx: Context, username: string): Promise<void> {
  await inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await execute(tx.em, sql`update "user" set disabled = true where pk = ${user.pk}`);
    await sessions.endForDisabled(tx, user.pk);
  });
}

/** Lets a disabled user sign in again; the sessions that disabling ended stay ended. Throws NOT_FOUND. */
export async function enable(ctx: Context, username: string): Promise<void> {
  const user = await byName(ctx, username);
  await execute(ctx.em, sql`update "user" set disabled = false where pk = ${user.pk}`);
}

/** Sets a user's password and ends all sessions of the user. Returns how many. Throws BAD_USER_INPUT and NOT_FOUND. */
export async function setPassword(ctx: Context, username: string, next: string): Promise<number> {
  const hash = await hashPassword(ctx, check(newPassword, next));
  return inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    await execute(tx.em, sql`update "user" set hashed_password = ${hash} where pk = ${user.pk}`);
    return (await sessions.endAll(tx, user.pk)).length;
  });
}

/** Adds scopes to those that a user holds, and takes others away. Returns what the user then holds. Throws NOT_FOUND. */
export async function changeScopes(
  ctx: Context,
  username: string,
  { add = [], remove = [] }: { add?: Scope[]; remove?: Scope[] },
): Promise<Scope[]> {
  return inTransaction(ctx, async (tx) => {
    const user = await byName(tx, username);
    const scopes = [...new Set([...user.scopes, ...add])].filter((scope) => !remove.includes(scope));
    await execute(tx.em, sql`update "user" set scopes = ${scopes}::text[] where pk = ${user.pk}`);
    return scopes;
  });
}

/** The user of this name. Throws NOT_FOUND. */
export async function byName(ctx: Context, username: string): Promise<User> {
  const user = await users.byUsername(ctx, username);
  if (!user) throw new DomainError('NOT_FOUND', `There is no user ${username}`);
  return user;
}
