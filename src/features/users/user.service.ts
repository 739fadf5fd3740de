import { hasScope, requireCaller } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import {
  readPage,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import {
  readOffsetPage,
  type OffsetPage,
  type OffsetPageArgs,
} from '../../pagination/offset-page.ts';
import { selectByPks, selectEntities } from '../../database/row-mapper.ts';
import type { Scope } from '../../core/scopes.ts';
import { execute, literal, sql, type Sql } from '../../database/sql.ts';
import { User } from './user.entity.ts';
import { normalEmail } from './user.rules.ts';
import { usernameForm, usernameKey } from './username.ts';

const users: ListDefinition<User> = {
  name: 'users',
  entity: User,
  order: [{ property: 'pk', kind: 'pk' }],
};

/** Returns a page of users by pk, by cursor. Throws NOT_AUTHENTICATED. */
export async function page(ctx: Context, args: PageArgs): Promise<Page<User>> {
  requireCaller(ctx);
  return readPage(ctx, users, args);
}

/** Returns an offset page of users by pk, with the count of all. Throws NOT_AUTHENTICATED. */
export async function offsetPage(ctx: Context, args: OffsetPageArgs): Promise<OffsetPage<User>> {
  requireCaller(ctx);
  return readOffsetPage(ctx, users, args);
}

/** Returns the signed-in user, or null without credentials. */
export async function me(ctx: Context): Promise<User | null> {
  return ctx.caller ? byPk(ctx, ctx.caller.pk) : null;
}

/** Returns the user of this pk. Batches the queries of a request. Throws if there is none. */
export async function byPk(ctx: Context, pk: number): Promise<User> {
  const user = await byPks(ctx).load(pk);
  if (!user) throw new Error(`User ${pk} does not exist`);
  return user;
}

/** Caches a user for this request. */
export function remember(ctx: Context, user: User): void {
  byPks(ctx).prime(user.pk, user);
}

/**
 * Throws CONFLICT with this message if the user has `max` rows. `owned` is the table and, after
 * `where`, the column of the user. Locks the user until the transaction ends, so that other
 * transactions that add a row wait.
 */
export async function enforceRowLimit(
  tx: Context,
  pk: number,
  owned: Sql,
  max: number,
  message: string,
): Promise<void> {
  await execute(tx.em, sql`select from "user" where pk = ${pk} for no key update`);
  const { rows } = await execute(
    tx.em,
    sql`select count(*)::int as count from (select from ${owned} = ${pk} limit ${literal(max)}) as found`,
  );
  if (Number(rows[0]?.['count']) >= max) throw new DomainError('CONFLICT', message);
}

function byPks(ctx: Context) {
  return loader(ctx, 'users.byPk', (pks: readonly number[]) => selectByPks(ctx, User, pks));
}

/** Returns the user of this name, compared exactly, or undefined. */
export async function byUsername(ctx: Context, username: string): Promise<User | undefined> {
  const [user] = await selectEntities(ctx, User, sql`username = ${username}`, true);
  return user;
}

/**
 * Returns the user of this name, or else the only one whose name has the same form, or undefined.
 */
export async function byTypedUsername(ctx: Context, text: string): Promise<User | undefined> {
  const similar = await selectEntities(
    ctx,
    User,
    sql`username = ${text} or username_key(username) = ${usernameKey(text)} order by pk`,
    true,
  );
  const form = usernameForm(text);
  const [found, other] = similar.filter(({ username }) => usernameForm(username) === form);
  return (
    similar.find(({ username }) => username === text) ?? (other === undefined ? found : undefined)
  );
}

/** Returns whether a user has a name that looks like this one. */
export async function isUsernameTaken(ctx: Context, username: string): Promise<boolean> {
  const { rows } = await execute(
    ctx.em,
    sql`select from "user" where username_key(username) = ${usernameKey(username)} limit 1`,
  );
  return rows.length > 0;
}

/** Returns the users with this address, ignoring case: at most three, as several may share one. */
export function byEmail(ctx: Context, address: string): Promise<User[]> {
  return selectEntities(ctx, User, sql`lower(email) = lower(${address}) order by pk limit 3`);
}

/** Returns the user of this name and the users with this address, at most three. */
export async function byNameOrEmail(ctx: Context, text: string): Promise<User[]> {
  const named = await byTypedUsername(ctx, text);
  const others = await byEmail(ctx, normalEmail(text));
  return [...(named ? [named] : []), ...others.filter(({ pk }) => pk !== named?.pk)].slice(0, 3);
}

/** Finds users for `node(id:)`. Without credentials, finds none. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(User | null)[]> {
  return ctx.caller ? selectByPks(ctx, User, keys) : keys.map(() => null);
}

/** Returns the user of this pk as an author, whose email every reader of the entry can see. */
export async function author(ctx: Context, pk: number): Promise<User> {
  // Inherits all other properties from the cached user.
  return Object.create(await byPk(ctx, pk), { isAuthor: { value: true } }) as User;
}

/** Returns the email of the caller, of an author, or with `users:read` of any user; else null. */
export function visibleEmail(ctx: Context, user: User): string | null {
  return user.isAuthor === true || mayReadAll(ctx, user) ? user.email : null;
}

/** Returns the scopes of the caller, or with `users:read` of any user; else none. */
export function visibleScopes(ctx: Context, user: User): Scope[] {
  return mayReadAll(ctx, user) ? user.scopes : [];
}

function mayReadAll(ctx: Context, user: User): boolean {
  return ctx.caller?.pk === user.pk || hasScope(ctx, 'users:read');
}
