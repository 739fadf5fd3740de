import { sql, type RawBuilder } from 'kysely';
import type { Context } from './context.ts';
import { fingerprint, readCursor, sqlTypeOf, writeCursor, type Bound, type OrderColumn } from './cursor.ts';
import { badInput } from './errors.ts';
import { columnsOf, entityOf } from './rows.ts';

/** A list that can be read in pages by keyset: the same order and condition each time, from any place on. */
export interface Listing<T extends object> {
  /** Tells cursors of this list from those of others. */
  name: string;
  entity: new () => T;
  /** The columns of the order, by property; the last one is unique. All run the same way. */
  order: readonly OrderColumn[];
  descending?: boolean;
  where?: RawBuilder<unknown>;
  /** What `where` was made from: a cursor is good for the same filter alone. */
  filter?: unknown;
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

/** The rows of a list that belong to several owners: one page for each, in one statement. */
export interface Owners {
  /** Column of the listing's table that names the owner. */
  column: string;
  pks: readonly number[];
}

const MAX_PAGE = 100;
const DEFAULT_PAGE = 20;

type Row = Record<string, unknown>;

/** One page of the list. Throws BAD_USER_INPUT for arguments that do not fit together and cursors that are not the list's. */
export async function readPage<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs): Promise<Page<T>> {
  const [page] = await readPages(ctx, listing, args);
  if (!page) throw new Error('A list without owners has one page');
  return page;
}

/** One page for each owner, in the order of the owners: the batched form, for lists inside lists. */
export function readPagesOf<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs, owners: Owners): Promise<Page<T>[]> {
  return readPages(ctx, listing, args, owners);
}

async function readPages<T extends object>(ctx: Context, listing: Listing<T>, args: PageArgs, owners?: Owners): Promise<Page<T>[]> {
  const { size, backward } = readSize(args);
  const print = fingerprint(listing.name, listing.order, listing.descending, listing.filter);
  const after = args.after == null ? undefined : readCursor(listing.order, print, 'after', args.after);
  const before = args.before == null ? undefined : readCursor(listing.order, print, 'before', args.before);
  const query = new ListQuery(ctx, listing, owners);

  const byOwner = await query.rows(between(query, after, before), backward, size + 1);
  const counts = once(() => query.counts(sql`true`, false));
  // How much lies at or before `after`, and at or after `before`: whether a page has neighbours where it was entered.
  const atOrBefore = once(() => query.counts(after ? query.compare('<=', after) : sql`false`, true));
  const atOrAfter = once(() => query.counts(before ? query.compare('>=', before) : sql`false`, true));

  return (owners?.pks ?? [0]).map((owner) => {
    const rows = byOwner.get(owner) ?? [];
    const more = rows.length > size;
    const shown = backward ? rows.slice(0, size).toReversed() : rows.slice(0, size);
    return {
      edges: shown.map((row) => ({
        cursor: writeCursor(listing.order, print, placeOf(listing, row)),
        node: entityOf(ctx.em, listing.entity, row),
      })),
      hasNextPage: async () => (backward ? ((await atOrAfter()).get(owner) ?? 0) > 0 : more),
      hasPreviousPage: async () => (backward ? more : ((await atOrBefore()).get(owner) ?? 0) > 0),
      totalCount: async () => (await counts()).get(owner) ?? 0,
    };
  });
}

function between<T extends object>(query: ListQuery<T>, after: Bound | undefined, before: Bound | undefined): RawBuilder<unknown> {
  const bounds = [...(after ? [query.compare('>', after)] : []), ...(before ? [query.compare('<', before)] : [])];
  return bounds.length ? sql.join(bounds, sql` and `) : sql`true`;
}

/** The statements of one listing, for one owner or many. Answers are keyed by owner; without owners by 0. */
class ListQuery<T extends object> {
  private readonly table: string;
  private readonly columns: RawBuilder<unknown>[];

  constructor(
    private readonly ctx: Context,
    private readonly listing: Listing<T>,
    private readonly owners: Owners | undefined,
  ) {
    const meta = ctx.em.getMetadata(listing.entity);
    this.table = meta.tableName;
    this.columns = listing.order.map(({ property }) =>
      sql.ref(`${this.table}.${meta.props.find(({ name }) => name === property)?.fieldNames[0]}`),
    );
  }

  /** Compares the place of a row with a bound, in the direction of the list: `>` is further on. */
  compare(operator: '<' | '<=' | '>' | '>=', bound: Bound): RawBuilder<unknown> {
    const turned = this.listing.descending ? operator.replace(/[<>]/, (sign) => (sign === '<' ? '>' : '<')) : operator;
    const values = bound.map((value, index) => sql`${value}::${sql.raw(sqlTypeOf(this.listing.order[index]?.kind ?? 'text'))}`);
    return sql`(${sql.join(this.columns)}) ${sql.raw(turned)} (${sql.join(values)})`;
  }

  async rows(where: RawBuilder<unknown>, backward: boolean, limit: number): Promise<Map<number, Row[]>> {
    const direction = sql.raw((this.listing.descending ?? false) === backward ? 'asc' : 'desc');
    // The order's columns come along as text, so that a cursor holds them to their last digit.
    const places = this.columns.map((column, index) => sql`${column} as ${sql.id(`place${index}`)}`);
    const select = sql`
      select ${columnsOf(this.ctx.em, this.listing.entity, this.table)}, ${sql.join(places)}
      from ${sql.table(this.table)} where ${this.ownedWhere(where)}
      order by ${sql.join(this.columns.map((column) => sql`${column} ${direction}`))} limit ${limit}`;
    return this.byOwner(select, (row) => row);
  }

  /** How many rows meet the condition; with `any`, 1 where there is one at all. */
  async counts(where: RawBuilder<unknown>, any: boolean): Promise<Map<number, number>> {
    const from = sql`from ${sql.table(this.table)} where ${this.ownedWhere(where)}`;
    const select = any ? sql`select 1 as count ${from} limit 1` : sql`select count(*)::float8 as count ${from}`;
    const found = await this.byOwner(select, ({ count }) => Number(count));
    return new Map([...found].map(([owner, [count = 0]]) => [owner, count]));
  }

  private ownedWhere(where: RawBuilder<unknown>): RawBuilder<unknown> {
    const owned = this.owners ? sql`${sql.ref(`${this.table}.${this.owners.column}`)} = owner.pk and ` : sql``;
    return sql`${owned}${this.listing.where ?? sql`true`} and ${where}`;
  }

  private async byOwner<V>(select: RawBuilder<unknown>, read: (row: Row) => V): Promise<Map<number, V[]>> {
    const statement = this.owners
      ? sql<Row>`select owner.pk as "ownedBy", page.* from unnest(${[...this.owners.pks]}::integer[]) as owner(pk) cross join lateral (${select}) as page`
      : sql<Row>`${select}`;
    const { rows } = await statement.execute(this.ctx.em.getKysely());
    const found = new Map<number, V[]>();
    for (const row of rows) {
      const owner = Number(row['ownedBy'] ?? 0);
      const own = found.get(owner);
      if (own) own.push(read(row));
      else found.set(owner, [read(row)]);
    }
    return found;
  }
}

function placeOf<T extends object>({ order }: Listing<T>, row: Row): Bound {
  return order.map((_column, index) => row[`place${index}`]);
}

function readSize({ first, last }: PageArgs): { size: number; backward: boolean } {
  if (first != null && last != null) throw badInput('last', 'give either first or last, not both');
  const [name, size] = last == null ? (['first', first ?? DEFAULT_PAGE] as const) : (['last', last] as const);
  if (size < 1 || size > MAX_PAGE) throw badInput(name, `must be from 1 to ${MAX_PAGE}`);
  return { size, backward: name === 'last' };
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
