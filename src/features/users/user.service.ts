import { holds, requireCaller } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { readPage, type Listing, type Page, type PageArgs } from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { readSlice, type Slice, type SliceArgs } from '../../pagination/offset-page.ts';
import { selectByPks, selectEntities } from '../../database/row-mapper.ts';
import type { Scope } from '../../core/scopes.ts';
import { execute, literal, sql, type Sql } from '../../database/sql.ts';
import { User } from './user.entity.ts';

const users: Listing<User> = { name: 'users', entity: User, order: [{ property: 'pk', kind: 'pk' }] };

/** The users by pk, in pages by cursor. Signed in. */
export async function page(ctx: Context, args: PageArgs): Promise<Page<User>> {
  requireCaller(ctx);
  return readPage(ctx, users, args);
}

/** The users by pk, a slice of them with the count of all. Signed in. */
export async function slice(ctx: Context, args: SliceArgs): Promise<Slice<User>> {
  requireCaller(ctx);
  return readSlice(ctx, users, args);
}

/** The signed-in user; null for a caller without credentials. */
export async function me(ctx: Context): Promise<User | null> {
  return ctx.caller ? byPk(ctx, ctx.caller.pk) : null;
}

/** The user of this pk, who is known to exist. Look-ups of one request are made together. */
export async function byPk(ctx: Context, pk: number): Promise<User> {
  const user = await byPks(ctx).load(pk);
  if (!user) throw new Error(`There is no user ${pk}`);
  return user;
}

/** Spares this request a look-up of a user who has just been read. */
export function remember(ctx: Context, user: User): void {
  byPks(ctx).prime(user.pk, user);
}

/**
 * Throws CONFLICT with this message if the user has `max` rows already. `owned` is their table and, after `where`, the column of their owner. Until the
 * transaction ends, others that add a row for the same user wait.
 */
export async function refuseMore(tx: Context, pk: number, owned: Sql, max: number, message: string): Promise<void> {
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

/** The user of this name, compared exactly, or undefined. */
export async function byUsername(ctx: Context, username: string): Promise<User | undefined> {
  const [user] = await selectEntities(ctx, User, sql`username = ${username}`, true);
  return user;
}

/** The users with this address, in whatever case it is written: three at most, for several may share one. */
export function byEmail(ctx: Context, address: string): Promise<User[]> {
  return selectEntities(ctx, User, sql`lower(email) = lower(${address}) order by pk limit 3`);
}

/** The user of this name and the users with this address, three at most. */
export function byNameOrEmail(ctx: Context, text: string): Promise<User[]> {
  return selectEntities(ctx, User, sql`username = ${text} or lower(email) = lower(${text}) order by username = ${text} desc, pk limit 3`);
}

/** Finds users for `node(id:)`; none without credentials. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(User | null)[]> {
  return ctx.caller ? selectByPks(ctx, User, keys) : keys.map(() => null);
}

/** The user of this pk as the author of something, whose email everyone sees who sees that. */
export async function author(ctx: Context, pk: number): Promise<User> {
  // In all else the very same user.
  return Object.create(await byPk(ctx, pk), { isAuthor: { value: true } }) as User;
}

/** The email of a user as the caller may see it: one's own, an author's, or with `users:read`; else null. */
export function visibleEmail(ctx: Context, user: User): string | null {
  return user.isAuthor === true || mayReadAll(ctx, user) ? user.email : null;
}

/** The scopes of a user as the caller may see them: one's own, or with `users:read`; else none. */
export function visibleScopes(ctx: Context, user: User): Scope[] {
  return mayReadAll(ctx, user) ? user.scopes : [];
}

function mayReadAll(ctx: Context, user: User): boolean {
  return ctx.caller?.pk === user.pk || holds(ctx, 'users:read');
}
