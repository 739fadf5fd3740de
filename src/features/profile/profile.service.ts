import { LockMode } from '@mikro-orm/postgresql';
import { expressionBuilder } from 'kysely';
import { z } from 'zod';
import { hasScope, requireCaller, requireWriter } from '../../request/access.ts';
import { inTransaction, withContext, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import {
  eachPage,
  findInList,
  MAX_PAGE,
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import type { Columns } from '../../database/kysely.ts';
import { lineOf } from '../../core/text.ts';
import { check } from '../../core/validation.ts';
import { isUniqueViolation } from '../../database/sql.ts';
import * as users from '../users/user.service.ts';
import { Item } from './item.entity.ts';

const eb = expressionBuilder<{ item: Columns<Item> }, 'item'>();

const OLDEST_FIRST: ListDefinition<Item>['order'] = [{ property: 'pk', kind: 'pk' }];

const newItem = z.object({ itemId: lineOf(255) });

/** Yields all items of the signed-in user in batches, oldest first. */
export function myItems(ctx: Context): AsyncGenerator<Item[]> {
  const { pk } = requireCaller(ctx);
  // A loader would keep each page until the end.
  const page = (args: PageArgs) => pageOf(withContext(ctx, { loaders: new Map() }), pk, args);
  return eachPage(page, MAX_PAGE);
}

/** Returns a cursor page of a user's items: empty for another user without `users:read`. */
export function pageOf(ctx: Context, ownerPk: number, args: PageArgs): Promise<Page<Item>> {
  return loader(ctx, `items.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, visibleItems(ctx), args, { property: 'ownerPk', pks }),
  ).load(ownerPk);
}

/** Finds items for `node(id:)`. */
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(Item | null)[]> {
  return findInList(ctx, visibleItems(ctx), keys);
}

/**
 * Adds an item for the signed-in user. Throws BAD_USER_INPUT, and CONFLICT if the item exists or
 * the user has MAX_ITEMS_PER_USER items.
 */
export async function addItem(ctx: Context, itemId: string): Promise<Item> {
  const { pk: ownerPk } = requireWriter(ctx);
  const values = { ...check(newItem, { itemId }), ownerPk, createdAt: ctx.now() };
  const max = ctx.config.maxItemsPerUser;
  const message = `You have reached the limit of ${max} items`;
  try {
    return await inTransaction(ctx, async (tx) => {
      await users.enforceRowLimit(tx, ownerPk, Item, { ownerPk }, max, message);
      return tx.em.create(Item, values);
    });
  } catch (error) {
    if (!isUniqueViolation(error, 'item_owner_pk_item_id_unique')) throw error;
    throw new DomainError('CONFLICT', 'You already have this item', [
      { field: 'itemId', type: 'unique', message: 'You already have this item' },
    ]);
  }
}

/** Removes an item of the signed-in user and returns it. Throws NOT_FOUND. */
export async function removeItem(ctx: Context, itemId: string): Promise<Item> {
  const { pk: ownerPk } = requireWriter(ctx);
  const name = check(newItem, { itemId }).itemId;
  return inTransaction(ctx, async (tx) => {
    const item = await tx.em.findOne(
      Item,
      { ownerPk, itemId: name },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    if (!item) throw new DomainError('NOT_FOUND', 'No such item');
    await tx.em.nativeDelete(Item, { pk: item.pk });
    return item;
  });
}

function visibleItems(ctx: Context): ListDefinition<Item> {
  const viewer = ctx.caller?.pk ?? null;
  const isOwnOnly = !hasScope(ctx, 'users:read');
  return {
    name: 'items',
    entity: Item,
    order: OLDEST_FIRST,
    get where() {
      return isOwnOnly ? eb('owner_pk', '=', viewer) : eb.lit(true);
    },
    values: isOwnOnly ? [viewer] : [],
  };
}
