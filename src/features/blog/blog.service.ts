import { LockMode } from '@mikro-orm/postgresql';
import { expressionBuilder } from 'kysely';
import { z } from 'zod';
import { forbidden, requireCaller, requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import {
  eachPage,
  findInList,
  readPage,
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { readPk } from '../../core/pk.ts';
import type { Columns } from '../../database/kysely.ts';
import { lineOf, proseOf } from '../../core/text.ts';
import { check, defined } from '../../core/validation.ts';
import * as users from '../users/user.service.ts';
import { BlogEntry } from './blog-entry.entity.ts';

const title = lineOf(255);
const body = proseOf(50_000);

/** Schema of a new blog entry. */
const newEntry = z.object({ title, body, published: z.boolean().default(false) });

/** Schema of a change to a blog entry; omitted fields keep their value. */
const entryPatch = z.object({ title, body, published: z.boolean() }).partial();

const eb = expressionBuilder<{ blog_entry: Columns<BlogEntry> }, 'blog_entry'>();

const NEWEST_FIRST: ListDefinition<BlogEntry>['order'] = [
  { property: 'createdAt', kind: 'time' },
  { property: 'pk', kind: 'pk' },
];

/** Number of entries in memory while all are read: small, because entries may be long. */
const BATCH = 10;

/** Yields all entries that the caller may see, newest first. Throws NOT_AUTHENTICATED. */
export function all(ctx: Context): AsyncGenerator<BlogEntry[]> {
  requireCaller(ctx);
  return eachPage((args) => page(ctx, args), BATCH);
}

/**
 * Returns a page of the entries that the caller may see, newest first. Throws NOT_AUTHENTICATED.
 */
export async function page(ctx: Context, args: PageArgs): Promise<Page<BlogEntry>> {
  requireCaller(ctx);
  return readPage(ctx, visibleEntries(ctx), args);
}

/** Returns a cursor page of the user's entries that the caller may see, newest first. */
export function pageOf(ctx: Context, creatorPk: number, args: PageArgs): Promise<Page<BlogEntry>> {
  return loader(ctx, `blog.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, visibleEntries(ctx), args, { property: 'creatorPk', pks }),
  ).load(creatorPk);
}

/** Finds entries for `node(id:)`; none without credentials. */
export async function findNodes(
  ctx: Context,
  keys: readonly string[],
): Promise<(BlogEntry | null)[]> {
  return ctx.caller ? findInList(ctx, visibleEntries(ctx), keys) : keys.map(() => null);
}

/**
 * Creates an entry. Needs `blog:write`. Throws BAD_USER_INPUT, and CONFLICT if the user has
 * MAX_ITEMS_PER_USER entries.
 */
export async function create(ctx: Context, input: z.input<typeof newEntry>): Promise<BlogEntry> {
  requireScope(ctx, 'blog:write');
  const { pk: creatorPk } = requireCaller(ctx);
  const now = ctx.now();
  const values = { ...check(newEntry, input), creatorPk, createdAt: now, updatedAt: now };
  const max = ctx.config.maxItemsPerUser;
  const message = `You have reached the limit of ${max} blog entries`;
  return inTransaction(ctx, async (tx) => {
    await users.enforceRowLimit(tx, creatorPk, BlogEntry, { creatorPk }, max, message);
    const entry = Object.assign(new BlogEntry(), values);
    await tx.em.persist(entry).flush();
    return entry;
  });
}

/**
 * Changes an entry of the caller. Needs `blog:write`. Throws BAD_USER_INPUT, NOT_FOUND, and
 * FORBIDDEN for an entry of another user.
 */
export async function update(
  ctx: Context,
  id: string,
  patch: z.input<typeof entryPatch>,
): Promise<BlogEntry> {
  requireScope(ctx, 'blog:write');
  const values = check(entryPatch, patch);
  return inTransaction(ctx, async (tx) => {
    const entry = await lockOwnEntry(tx, id);
    Object.assign(entry, defined(values), { updatedAt: tx.now() });
    await tx.em.flush();
    return entry;
  });
}

/**
 * Deletes an entry of the caller and returns it. Needs `blog:write`. Throws NOT_FOUND, and
 * FORBIDDEN for an entry of another user.
 */
export async function remove(ctx: Context, id: string): Promise<BlogEntry> {
  requireScope(ctx, 'blog:write');
  return inTransaction(ctx, async (tx) => {
    const entry = await lockOwnEntry(tx, id);
    await tx.em.nativeDelete(BlogEntry, { pk: entry.pk });
    return entry;
  });
}

async function lockOwnEntry(tx: Context, id: string): Promise<BlogEntry> {
  const caller = requireCaller(tx);
  const pk = readPk(nodeKeyOf(BlogEntry.name, id) ?? '');
  const entry =
    pk === undefined
      ? null
      : await tx.em.findOne(BlogEntry, { pk }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  // A draft exists only for its creator: NOT_FOUND, because FORBIDDEN would reveal it.
  if (!entry || (!entry.published && entry.creatorPk !== caller.pk))
    throw new DomainError('NOT_FOUND', 'No such blog entry');
  if (entry.creatorPk !== caller.pk)
    throw forbidden(tx, 'Only the creator can change or delete a blog entry');
  return entry;
}

function visibleEntries(ctx: Context): ListDefinition<BlogEntry> {
  const viewer = ctx.caller?.pk ?? null;
  return {
    name: 'blog',
    entity: BlogEntry,
    order: NEWEST_FIRST,
    descending: true,
    get where() {
      return eb.or([eb.ref('published'), eb('creator_pk', '=', viewer)]);
    },
    values: [viewer],
  };
}
