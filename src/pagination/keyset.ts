import type { Context } from '../request/context.ts';
import {
  fingerprint,
  invalidCursor,
  isValueOf,
  rankIn,
  readCursor,
  writeCursor,
  type Bound,
  type OrderColumn,
} from './cursor.ts';
import { badInput } from '../core/errors.ts';
import { readPk } from '../core/pk.ts';
import {
  ListQuery,
  statementOfList,
  type ListDefinition,
  type Owners,
  type Side,
} from './list-definition.ts';
import { builder, columnOf, columnsOf, entityOf, readRows } from '../database/kysely.ts';

export type { ListDefinition };

/** Arguments of a connection (Relay cursor connections specification). */
export interface PageArgs {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

/**
 * One page of a list. An entry before the first or behind the last one is that of the cursor, even
 * if it was deleted since.
 */
export interface Page<T> {
  edges: { cursor: string; node: T }[];
  hasNextPage: boolean;
  hasPreviousPage: boolean;
  /** Runs a further statement. */
  totalCount(): Promise<number>;
}

/** Lists that are read as one, the lowest rank first. Each entry is in one part only. */
export interface RankedList<T extends object> {
  parts: readonly (ListDefinition<T> & { rank: number })[];
  /** All parts as one list, for the count. Its name, order and filter identify the cursors. */
  whole: ListDefinition<T>;
}

/** Maximum number of entries per page. */
export const MAX_PAGE = 100;
/** Default number of entries per page. */
export const DEFAULT_PAGE = 20;

const RANK: OrderColumn = { property: 'rank', kind: 'rank' };

/**
 * Reads one page, of a ranked list only from the parts that the page needs. Throws BAD_USER_INPUT
 * for conflicting arguments and cursors of other lists.
 */
export async function readPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T> | RankedList<T>,
  args: PageArgs,
): Promise<Page<T>> {
  return only(await readPagesOf(ctx, list, args));
}

/** Yields all pages of this size. Reads each page on demand, so only one is in memory. */
export async function* eachPage<T>(
  read: (args: PageArgs) => Promise<Page<T>>,
  size: number,
): AsyncGenerator<T[]> {
  let after: string | undefined;
  do {
    const page = await read({ first: size, ...(after !== undefined && { after }) });
    yield page.edges.map(({ node }) => node);
    after = page.hasNextPage ? page.edges.at(-1)?.cursor : undefined;
  } while (after !== undefined);
}

/** Reads one page for each owner, in the order of the owners, for nested lists. */
export async function readPagesOf<T extends object>(
  ctx: Context,
  list: ListDefinition<T> | RankedList<T>,
  args: PageArgs,
  owners?: Owners,
): Promise<Page<T>[]> {
  const { size, backward } = readSize(args);
  const { parts, whole } = 'parts' in list ? list : { parts: [list], whole: list };
  const digest = fingerprint(whole);
  const queries = parts.map((part) => new ListQuery(ctx, part, owners));
  const after = positionOf(queries, digest, 'after', args.after);
  const before = positionOf(queries, digest, 'before', args.before);

  const pages = await readParts(queries, after, before, backward, size + 1, digest);
  let counts: Promise<number[]> | undefined;
  return pages.map((edges, index) => {
    const hasMore = edges.length > size;
    if (hasMore) edges.length = size;
    if (backward) edges.reverse();
    return {
      edges,
      hasNextPage: backward ? before !== undefined : hasMore,
      hasPreviousPage: backward ? hasMore : after !== undefined,
      totalCount: async () => {
        counts ??= new ListQuery(ctx, whole, owners).counts();
        return (await counts)[index] ?? 0;
      },
    };
  });
}

/**
 * Returns the entries of a list with these values of its last order column, in their order. An
 * element is null if the list has no such entry.
 */
export async function findInList<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  keys: readonly (string | number)[],
): Promise<(T | null)[]> {
  const { entity, properties, order } = list;
  const { property, kind } = only(order.slice(-1));
  const wanted = keys.map((key) => (kind === 'pk' ? readPk(String(key)) : key));
  const valid = wanted.filter((key) => isValueOf(kind, key));
  const build = () => {
    const query = builder
      .selectFrom(ctx.em.getMetadata(entity).tableName)
      .select(columnsOf(ctx, entity, [property], properties))
      .where((eb) => eb(columnOf(ctx, entity, property), '=', eb.fn.any(eb.val(valid))));
    return list.where ? query.where(list.where) : query;
  };
  const query = statementOfList(list, 'find', [valid], [], build);
  const rows = await readRows<Record<string, unknown>>(ctx, query, true);
  const byKey = new Map(rows.map((row) => [row[property], entityOf(entity, row)]));
  return wanted.map((key) => byKey.get(key) ?? null);
}

type Edge<T> = Page<T>['edges'][number];

/** An edge that computes its cursor on access. */
class LazyEdge<T extends object> implements Edge<T> {
  constructor(
    readonly node: T,
    private readonly list: ListDefinition<T>,
    private readonly digest: string,
  ) {}

  get cursor(): string {
    const { node, digest } = this;
    const { order, rank } = this.list;
    const bound = order.map(({ property }) => node[property as keyof T]);
    return writeCursor(digest, rank === undefined ? bound : [rank, ...bound]);
  }
}

/** A position in one of the parts of a list. */
interface Position<T extends object> {
  query: ListQuery<T>;
  bound: Bound;
}

function positionOf<T extends object>(
  queries: readonly ListQuery<T>[],
  digest: string,
  argument: string,
  cursor: string | null | undefined,
): Position<T> | undefined {
  if (cursor == null) return undefined;
  const query = queries.find(({ list }) => list.rank === undefined || list.rank === rankIn(cursor));
  if (!query) throw invalidCursor(argument);
  const { order, rank } = query.list;
  const columns = rank === undefined ? order : [RANK, ...order];
  return { query, bound: readCursor(columns, digest, argument, cursor).slice(-order.length) };
}

// Reads the parts one after another, because the first ones often suffice.
async function readParts<T extends object>(
  queries: readonly ListQuery<T>[],
  after: Position<T> | undefined,
  before: Position<T> | undefined,
  backward: boolean,
  limit: number,
  digest: string,
): Promise<Edge<T>[][]> {
  const between = queries.slice(
    after ? queries.indexOf(after.query) : 0,
    before ? queries.indexOf(before.query) + 1 : queries.length,
  );
  let pages: Edge<T>[][] = [[]];
  for (const query of backward ? between.toReversed() : between) {
    // A ranked list has no owners, so it has one page.
    const [found = []] = pages;
    if (found.length === limit) break;
    const sides: Side[] = [];
    if (after?.query === query) sides.push({ operator: '>', bound: after.bound });
    if (before?.query === query) sides.push({ operator: '<', bound: before.bound });
    const read = await query.rows(sides, backward, limit - found.length);
    pages = read.map((rows) => rows.map((row) => new LazyEdge(row, query.list, digest)));
    pages[0]?.unshift(...found);
  }
  return pages;
}

/** Returns the page size and the direction. Throws BAD_USER_INPUT. */
function readSize({ first, last }: PageArgs): { size: number; backward: boolean } {
  if (first != null && last != null) throw badInput('last', 'give either first or last, not both');
  const [argument, size] =
    last == null ? (['first', first ?? DEFAULT_PAGE] as const) : (['last', last] as const);
  if (size < 1 || size > MAX_PAGE) throw badInput(argument, `must be from 1 to ${MAX_PAGE}`);
  return { size, backward: argument === 'last' };
}

function only<T>([element]: readonly T[]): T {
  if (element === undefined) throw new TypeError('The list is empty');
  return element;
}
