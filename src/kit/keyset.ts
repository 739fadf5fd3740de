import type { Context } from './context.ts';
import { fingerprint, readCursor, sqlTypeOf, writeCursor, type Bound, type OrderColumn } from './cursor.ts';
import { badInput } from './errors.ts';
import { readRows, shapeOf, type EntityClass, type Shape } from './rows.ts';
import { empty, join, kept, literal, identifier, raw, sql, type Cell, type Sql, type Statement } from './sql.ts';
import { countOf } from './tally.ts';

/** A list that can be read in pages by keyset: the same order and condition each time, from any place on. */
export interface Listing<T extends object> {
  /** Tells cursors of this list from those of others. */
  name: string;
  entity: EntityClass<T>;
  /** The columns of the order, by property; the last one is unique. All run the same way. */
  order: readonly OrderColumn[];
  descending?: boolean;
  where?: Sql;
  /** What `where` was made from: a cursor is good for the same filter alone. */
  filter?: unknown;
  /** The table that the database keeps its count in (tally.ts); only without `where`. */
  tally?: string;
}

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

/** The rows of a list that belong to several owners: one page for each, in one statement. */
interface Owners {
  /** Property of the listing's entity that names the owner. */
  property: string;
  pks: readonly number[];
}

/** How many entries a page has at most. */
export const MAX_PAGE = 100;
/** How many entries a page has where nobody says. */
export const DEFAULT_PAGE = 20;
/** Stands for the one owner of a list that has none. */
const NOBODY = 0;

/** One page of the list. Throws BAD_USER_INPUT for arguments that do not fit together and cursors that are not the list's. */
export async function readPage<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs): Promise<Page<T>> {
  const shape = shapeOf(ctx, listing.entity);
  return pageOf(shape, await readRowPage(ctx, listing, args, shape.properties));
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

class RowEdge<T> {
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
  const counts = once(() => query.counts(undefined, false));
  // How much lies at or before `after`, and at or after `before`: whether a page has neighbours where it was entered.
  const atOrBefore = once(async () => (after ? query.counts(query.compare('<=', after), true) : NONE));
  const atOrAfter = once(async () => (before ? query.counts(query.compare('>=', before), true) : NONE));

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

/** The statements of one listing, for one owner or many. Answers are keyed by owner. */
class ListQuery<T extends object> {
  private readonly shape: Shape<T>;
  /** What is read: the properties asked for, then those of the order that are not among them. */
  private readonly read: readonly string[];
  private readonly places: readonly number[];

  constructor(
    private readonly ctx: Context,
    private readonly listing: Listing<T>,
    properties: readonly string[],
    private readonly owners: Owners | undefined,
  ) {
    this.shape = shapeOf(ctx, listing.entity);
    const missing = listing.order.map(({ property }) => property).filter((property) => !properties.includes(property));
    this.read = missing.length > 0 ? [...properties, ...missing] : properties;
    this.places = listing.order.map(({ property }) => this.read.indexOf(property));
  }

  placeOf(row: readonly Cell[]): Bound {
    return this.places.map((place) => row[place]);
  }

  /** Compares the place of a row with a bound, in the direction of the list: `>` is further on. */
  compare(operator: '<' | '<=' | '>' | '>=', bound: Bound): Sql {
    const turned = this.listing.descending ? operator.replace(/[<>]/, (sign) => (sign === '<' ? '>' : '<')) : operator;
    const values = bound.map((value, index) => sql`${value}::${raw(sqlTypeOf(this.listing.order[index]?.kind ?? 'text'))}`);
    return sql`(${join(this.orderColumns())}) ${raw(turned)} (${join(values)})`;
  }

  async rows(after: Bound | undefined, before: Bound | undefined, backward: boolean, limit: number): Promise<Map<number, Cell[][]>> {
    const { name, order, descending = false, where } = this.listing;
    const direction = raw(descending === backward ? ' asc' : ' desc');
    const make = () => sql`
      select ${join(this.read.map((property) => this.shape.column(property)))} ${this.from(this.between(after, before))}
      order by ${join(this.orderColumns().map((column) => sql`${column}${direction}`))} limit ${literal(limit)}`;
    if (where || this.owners) return this.byOwner(make());
    const places = order.map(({ property }) => property).join();
    const key = `page ${name} ${this.read.join()} ${places}${direction.text} ${after ? 'after' : ''} ${before ? 'before' : ''} ${descending} ${limit}`;
    return this.byOwner(kept(key, [...(after ?? []), ...(before ?? [])], make));
  }

  /** How many rows meet the condition; with `any`, 1 where there is one at all. */
  async counts(where: Sql | undefined, any: boolean): Promise<ReadonlyMap<number, number>> {
    const { tally } = this.listing;
    if (tally !== undefined && !where && !this.listing.where && !this.owners) {
      return new Map([[NOBODY, await countOf(this.ctx, tally)]]);
    }
    // In the list's order, so that its index is where the one is looked for.
    const select = any
      ? sql`select 1 ${this.from(where)} order by ${join(this.orderColumns())} limit 1`
      : sql`select count(*) ${this.from(where)}`;
    const found = await this.byOwner(select);
    return new Map([...found].map(([owner, [row]]) => [owner, Number(row?.[0] ?? 0)]));
  }

  private between(after: Bound | undefined, before: Bound | undefined): Sql | undefined {
    const bounds = [...(after ? [this.compare('>', after)] : []), ...(before ? [this.compare('<', before)] : [])];
    return bounds.length > 0 ? join(bounds, ' and ') : undefined;
  }

  private orderColumns(): Sql[] {
    return this.listing.order.map(({ property }) => this.shape.column(property));
  }

  private from(where: Sql | undefined): Sql {
    const { owners } = this;
    const owned = owners && sql`${this.shape.column(owners.property)} = ${owners.pks.length > 1 ? raw('owner.pk') : owners.pks[0]}`;
    const conditions = [owned, this.listing.where, where].filter((condition) => condition !== undefined);
    return sql`from ${identifier(this.shape.table)} ${conditions.length > 0 ? sql`where ${join(conditions, ' and ')}` : empty}`;
  }

  private async byOwner(select: Statement): Promise<Map<number, Cell[][]>> {
    // What a filter is best looked up by depends on its values, so such statements are planned anew each time.
    const hot = this.listing.filter == null;
    const pks = this.owners?.pks ?? [NOBODY];
    if (pks.length === 1) return new Map([[pks[0] ?? NOBODY, await readRows(this.ctx, select, hot)]]);
    const statement = sql`
      select page.*, owner.pk from unnest(${[...pks]}::integer[]) as owner(pk) cross join lateral (${select}) as page`;
    const found = new Map<number, Cell[][]>();
    for (const row of await readRows(this.ctx, statement, hot)) {
      const owner = Number(row.pop());
      const own = found.get(owner);
      if (own) own.push(row);
      else found.set(owner, [row]);
    }
    return found;
  }
}

function readSize({ first, last }: PageArgs): { size: number; backward: boolean } {
  if (first != null && last != null) throw badInput('last', 'give either first or last, not both');
  const [argument, size] = last == null ? (['first', first ?? DEFAULT_PAGE] as const) : (['last', last] as const);
  if (size < 1 || size > MAX_PAGE) throw badInput(argument, `must be from 1 to ${MAX_PAGE}`);
  return { size, backward: argument === 'last' };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
