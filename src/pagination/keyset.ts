import type { Context } from '../request/context.ts';
import { fingerprint, readCursor, writeCursor } from './cursor.ts';
import { badInput } from '../core/errors.ts';
import { ListQuery, NO_OWNER, type ListDefinition, type Owners } from './list-definition.ts';
import { shapeOf, type Shape } from '../database/row-mapper.ts';
import type { Cell } from '../database/sql.ts';

export type { ListDefinition };

/** Arguments of a connection (Relay cursor connections specification). */
export interface PageArgs {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

/** One page of a list. Methods run a further statement only when called. */
export interface Page<T> {
  edges: { cursor: string; node: T }[];
  hasNextPage(): Promise<boolean>;
  hasPreviousPage(): Promise<boolean>;
  totalCount(): Promise<number>;
}

/** One page as rows: the requested columns, followed by further columns that the cursors need. */
export interface RowPage extends Omit<Page<never>, 'edges'> {
  rows: Cell[][];
  cursor: (row: readonly Cell[]) => string;
}

/** Maximum number of entries per page. */
export const MAX_PAGE = 100;
/** Default number of entries per page. */
export const DEFAULT_PAGE = 20;

/** Reads one page. Throws BAD_USER_INPUT for conflicting arguments and cursors of other lists. */
export async function readPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  args: PageArgs,
): Promise<Page<T>> {
  const shape = shapeOf(ctx, list.entity);
  return pageOf(shape, await readRowPage(ctx, list, args, shape.properties));
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
    after = (await page.hasNextPage()) ? page.edges.at(-1)?.cursor : undefined;
  } while (after !== undefined);
}

/** Reads one page for each owner, in the order of the owners, for nested lists. */
export async function readPagesOf<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  args: PageArgs,
  owners: Owners,
): Promise<Page<T>[]> {
  const shape = shapeOf(ctx, list.entity);
  return (await readRowPages(ctx, list, args, shape.properties, owners)).map((page) =>
    pageOf(shape, page),
  );
}

/** Like `readPage`, but returns rows of these properties instead of entities. */
export async function readRowPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  args: PageArgs,
  properties: readonly string[],
): Promise<RowPage> {
  const [page] = await readRowPages(ctx, list, args, properties);
  if (!page) throw new Error('A list without owners has one page');
  return page;
}

function pageOf<T extends object>(shape: Shape<T>, { rows, cursor, ...rest }: RowPage): Page<T> {
  return { ...rest, edges: rows.map((row) => new RowEdge(row, cursor, shape.entity(row))) };
}

/** An edge that computes its cursor on access. */
export class RowEdge<T> {
  constructor(
    private readonly row: readonly Cell[],
    private readonly cursorOf: (row: readonly Cell[]) => string,
    readonly node: T,
  ) {}

  get cursor(): string {
    return this.cursorOf(this.row);
  }
}

async function readRowPages<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  args: PageArgs,
  properties: readonly string[],
  owners?: Owners,
): Promise<RowPage[]> {
  const { size, backward } = readSize(args);
  const { order } = list;
  const digest = fingerprint(list.name, order, list.descending, list.filter);
  const after = args.after == null ? undefined : readCursor(order, digest, 'after', args.after);
  const before = args.before == null ? undefined : readCursor(order, digest, 'before', args.before);
  const query = new ListQuery(ctx, list, properties, owners);

  const byOwner = await query.rows(after, before, backward, size + 1);
  const counts = lazily(() => query.counts());
  // Whether there are rows at or before `after`, and at or after `before`.
  const atOrBefore = lazily(async () => (after ? query.existsBeyond('before', after) : NO_ROWS));
  const atOrAfter = lazily(async () => (before ? query.existsBeyond('after', before) : NO_ROWS));

  return (owners?.pks ?? [NO_OWNER]).map((owner) => {
    const rows = byOwner.get(owner) ?? [];
    const hasMore = rows.length > size;
    if (hasMore) rows.length = size;
    if (backward) rows.reverse();
    return {
      rows,
      cursor: (row) => writeCursor(order, digest, query.boundOf(row)),
      hasNextPage: async () => (backward ? ((await atOrAfter()).get(owner) ?? 0) > 0 : hasMore),
      hasPreviousPage: async () =>
        backward ? hasMore : ((await atOrBefore()).get(owner) ?? 0) > 0,
      totalCount: async () => (await counts()).get(owner) ?? 0,
    };
  });
}

const NO_ROWS: ReadonlyMap<number, number> = new Map();

/** Returns the page size and the direction. Throws BAD_USER_INPUT. */
export function readSize({ first, last }: PageArgs): { size: number; backward: boolean } {
  if (first != null && last != null) throw badInput('last', 'give either first or last, not both');
  const [argument, size] =
    last == null ? (['first', first ?? DEFAULT_PAGE] as const) : (['last', last] as const);
  if (size < 1 || size > MAX_PAGE) throw badInput(argument, `must be from 1 to ${MAX_PAGE}`);
  return { size, backward: argument === 'last' };
}

/** Returns a function that calls `make` once, on its first call. */
export function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => (result ??= make());
}
