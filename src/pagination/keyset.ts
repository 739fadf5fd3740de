import type { Context } from '../request/context.ts';
import { fingerprint, readCursor, writeCursor } from './cursor.ts';
import { badInput } from '../core/errors.ts';
import { ListQuery, NOBODY, type Listing, type Owners } from './list-definition.ts';
import { shapeOf, type Shape } from '../database/row-mapper.ts';
import type { Cell } from '../database/sql.ts';

export type { Listing };

/** Arguments of a connection, by the Relay cursor connections specification. */
export interface PageArgs {
  first?: number | null;
  after?: string | null;
  last?: number | null;
  before?: string | null;
}

/** One page of a list. What it takes a further statement to know is asked only when it is read. */
export interface Page<T> {
  edges: { cursor: string; node: T }[];
  hasNextPage(): Promise<boolean>;
  hasPreviousPage(): Promise<boolean>;
  totalCount(): Promise<number>;
}

/** One page as rows of cells: the columns that were asked for, and behind them whatever its cursors take. */
export interface RowPage extends Omit<Page<never>, 'edges'> {
  rows: Cell[][];
  cursor: (row: readonly Cell[]) => string;
}

/** How many entries a page has at most. */
export const MAX_PAGE = 100;
/** How many entries a page has where nobody says. */
export const DEFAULT_PAGE = 20;

/** One page of the list. Throws BAD_USER_INPUT for arguments that do not fit together and cursors that are not the list's. */
export async function readPage<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs): Promise<Page<T>> {
  const shape = shapeOf(ctx, listing.entity);
  return pageOf(shape, await readRowPage(ctx, listing, args, shape.properties));
}

/** All pages of a list, each of this size and read when the one before was used: no more than one is in memory. */
export async function* eachPage<T>(read: (args: PageArgs) => Promise<Page<T>>, size: number): AsyncGenerator<T[]> {
  let after: string | undefined;
  do {
    const page = await read({ first: size, ...(after !== undefined && { after }) });
    yield page.edges.map(({ node }) => node);
    after = (await page.hasNextPage()) ? page.edges.at(-1)?.cursor : undefined;
  } while (after !== undefined);
}

/** One page for each owner, in the order of the owners: the batched form, for lists inside lists. */
export async function readPagesOf<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs, owners: Owners): Promise<Page<T>[]> {
  const shape = shapeOf(ctx, listing.entity);
  return (await readRowPages(ctx, listing, args, shape.properties, owners)).map((page) => pageOf(shape, page));
}

/** As `readPage`, with rows of these properties in place of entities. */
export async function readRowPage<T extends object>(
  ctx: Context,
  listing: Listing<T>,
  args: PageArgs,
  properties: readonly string[],
): Promise<RowPage> {
  const [page] = await readRowPages(ctx, listing, args, properties);
  if (!page) throw new Error('A list without owners has one page');
  return page;
}

function pageOf<T extends object>(shape: Shape<T>, { rows, cursor, ...rest }: RowPage): Page<T> {
  return { ...rest, edges: rows.map((row) => new RowEdge(row, cursor, shape.entity(row))) };
}

/** An entity of a page with the place of its row, which is written where it is asked for. */
export class RowEdge<T> {
  constructor(
    private readonly row: readonly Cell[],
    private readonly write: (row: readonly Cell[]) => string,
    readonly node: T,
  ) {}

  get cursor(): string {
    return this.write(this.row);
  }
}

async function readRowPages<T extends object>(
  ctx: Context,
  listing: Listing<T>,
  args: PageArgs,
  properties: readonly string[],
  owners?: Owners,
): Promise<RowPage[]> {
  const { size, backward } = readSize(args);
  const { order } = listing;
  const print = fingerprint(listing.name, order, listing.descending, listing.filter);
  const after = args.after == null ? undefined : readCursor(order, print, 'after', args.after);
  const before = args.before == null ? undefined : readCursor(order, print, 'before', args.before);
  const query = new ListQuery(ctx, listing, properties, owners);

  const byOwner = await query.rows(after, before, backward, size + 1);
  const counts = lazily(() => query.counts());
  // How much lies at or before `after`, and at or after `before`: whether a page has neighbours where it was entered.
  const atOrBefore = lazily(async () => (after ? query.neighbours('before', after) : NONE));
  const atOrAfter = lazily(async () => (before ? query.neighbours('behind', before) : NONE));

  return (owners?.pks ?? [NOBODY]).map((owner) => {
    const rows = byOwner.get(owner) ?? [];
    const more = rows.length > size;
    if (more) rows.length = size;
    if (backward) rows.reverse();
    return {
      rows,
      cursor: (row) => writeCursor(order, print, query.placeOf(row)),
      hasNextPage: async () => (backward ? ((await atOrAfter()).get(owner) ?? 0) > 0 : more),
      hasPreviousPage: async () => (backward ? more : ((await atOrBefore()).get(owner) ?? 0) > 0),
      totalCount: async () => (await counts()).get(owner) ?? 0,
    };
  });
}

const NONE: ReadonlyMap<number, number> = new Map();

/** How many entries a page has, and from which end. Throws BAD_USER_INPUT. */
export function readSize({ first, last }: PageArgs): { size: number; backward: boolean } {
  if (first != null && last != null) throw badInput('last', 'give either first or last, not both');
  const [argument, size] = last == null ? (['first', first ?? DEFAULT_PAGE] as const) : (['last', last] as const);
  if (size < 1 || size > MAX_PAGE) throw badInput(argument, `must be from 1 to ${MAX_PAGE}`);
  return { size, backward: argument === 'last' };
}

/** Makes it when it is asked for, and no more than once. */
export function lazily<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
