import { LockMode, raw, type FilterQuery } from '@mikro-orm/postgresql';
import { sql, type Kysely } from 'kysely';
import { hasScope, requireCaller } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import {
  findInList,
  readPage,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { readOffsetPage, type OffsetPage, type OffsetPageArgs } from '../../api/offset-page.ts';
import {
  builder,
  run,
  type Columns,
  columnsOf,
  entityOf,
  readRows,
} from '../../database/kysely.ts';
import type { Scope } from '../../core/scopes.ts';
import { User } from './user.entity.ts';
import { IGNORABLE } from './user.rules.ts';

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

/** Returns the user with these properties, and caches it for this request. */
export function userIn(ctx: Context, row: Pick<User, keyof User>): User {
  const user = entityOf(User, row);
  byPks(ctx).prime(user.pk, user);
  return user;
}

/** Returns Kysely with the table of users, to write hashes of passwords. */
export function tableOf({ em }: Context): Kysely<{ user: Columns<User> }> {
  return em.getKysely();
}

/**
 * Locks the user until the transaction ends, and returns the current row. Other transactions that
 * lock or change the user wait.
 */
export function lock({ em }: Context, pk: number): Promise<User | null> {
  return em.findOne(User, { pk }, { lockMode: LockMode.PESSIMISTIC_WRITE, refresh: true });
}

/**
 * Replaces the hash of the user's password. With `previous`, returns false if the hash is another.
 */
export async function replaceHash(
  ctx: Context,
  pk: number,
  hash: string,
  previous?: string | null,
): Promise<boolean> {
  const update = tableOf(ctx)
    .updateTable('user')
    .set({ hashed_password: hash })
    .where('pk', '=', pk);
  const [result] = await run(
    ctx,
    previous === undefined ? update : update.where('hashed_password', '=', previous),
  );
  return result?.numUpdatedRows === 1n;
}

/**
 * Throws CONFLICT with this message if the user has `max` rows that meet the condition. Locks the
 * user, so that other transactions that add a row wait.
 */
export async function enforceRowLimit<T extends object>(
  tx: Context,
  pk: number,
  entity: new () => T,
  owned: FilterQuery<T>,
  max: number,
  message: string,
): Promise<void> {
  await lock(tx, pk);
  if ((await tx.em.count(entity, owned)) >= max) throw new DomainError('CONFLICT', message);
}

function byPks(ctx: Context) {
  return loader(ctx, 'users.byPk', (pks: readonly number[]) => findInList(ctx, users, pks));
}

/**
 * Returns the user of this name, or else the only one whose name has the same form, or undefined.
 */
export async function byTypedUsername(ctx: Context, text: string): Promise<User | undefined> {
  const select = builder
    .selectFrom('user')
    .select(columnsOf(ctx, User))
    .where(sql<boolean>`username = ${text} or username_key(username) = ${usernameForm(text)}`);
  const similar = (await readRows(ctx, select, true)).map((row) => entityOf(User, row));
  const [found, other] = similar;
  return (
    similar.find(({ username }) => username === text) ?? (other === undefined ? found : undefined)
  );
}

/** Returns whether a user has a name with the same form. */
export async function isUsernameTaken({ em }: Context, username: string): Promise<boolean> {
  return (await em.count(User, { [raw('username_key(username)')]: usernameForm(username) })) > 0;
}

/** Returns the users with this address, ignoring case: at most three, as several may share one. */
export function byEmail({ em }: Context, address: string): Promise<User[]> {
  return em.find(
    User,
    { [raw('lower(email)')]: raw('lower(?)', [address]) },
    { orderBy: { pk: 'asc' }, limit: 3, disableIdentityMap: true },
  );
}

/**
 * Returns the only user with this address, or if nobody has it, the user of this name, or undefined.
 * Names come last, because anybody may choose the address of another user as one.
 */
export async function byEmailOrName(ctx: Context, text: string): Promise<User | undefined> {
  const [found, other] = await byEmail(ctx, text);
  if (found) return other === undefined ? found : undefined;
  return byTypedUsername(ctx, text);
}

/** Finds users for `node(id:)`. Without credentials, finds none. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(User | null)[]> {
  return ctx.caller ? findInList(ctx, users, keys) : keys.map(() => null);
}

/** Returns the user of this pk as an author, whose email every reader of the entry can see. */
export async function author(ctx: Context, pk: number): Promise<User> {
  return entityOf(User, { ...(await byPk(ctx, pk)), isAuthor: true });
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

/**
 * Returns the form in which usernames are compared, as `username_key` of the database: without case,
 * width and invisible characters. A final sigma is a sigma, and İ is an i.
 */
export function usernameForm(name: string): string {
  const visible = name.replace(IGNORABLE, '').normalize('NFKC').replaceAll('İ', 'i');
  return visible.toLowerCase().trim().replaceAll('ς', 'σ');
}
