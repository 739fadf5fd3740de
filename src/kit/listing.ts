import type { Context } from './context.ts';
import { sqlTypeOf, type Bound, type OrderColumn } from './cursor.ts';
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
  /** A range of the order's own index, beside `where`. */
  range?: Sql;
  /** Whether `where` is met by so few that they are looked up, however the list is ordered. */
  isFew?: boolean;
  /** What `where` was made from: a cursor is good for the same filter alone. */
  filter?: unknown;
  /** The table that the database keeps its count in (tally.ts); only without `where`. */
  tally?: string;
}

/** The rows of a list that belong to several owners: one page for each, in one statement. */
export interface Owners {
  /** Property of the listing's entity that names the owner. */
  property: string;
  pks: readonly number[];
}

/** Stands for the one owner of a list that has none. */
export const NOBODY = 0;

/** How many rows are looked through for those that meet a filter, before all that meet it are looked up. */
export const LOOKED_THROUGH = 2_000;

/** The statements of one listing, for one owner or many. Answers are keyed by owner. */
export class ListQuery<T extends object> {
  private readonly shape: Shape<T>;
  /** What is read: the properties asked for, then those of the order that are not among them. */
  private readonly read: readonly string[];
  private readonly places: readonly number[];

  constructor(
    private readonly ctx: Context,
    private readonly listing: Listing<T>,
    properties: readonly string[],
    private readonly owners?: Owners,
  ) {
    this.shape = shapeOf(ctx, listing.entity);
    const missing = listing.order.map(({ property }) => property).filter((property) => !properties.includes(property));
    this.read = missing.length > 0 ? [...properties, ...missing] : properties;
    this.places = listing.order.map(({ property }) => this.read.indexOf(property));
  }

  placeOf(row: readonly Cell[]): Bound {
    return this.places.map((place) => row[place]);
  }

  async rows(after: Bound | undefined, before: Bound | undefined, backward: boolean, limit: number): Promise<Map<number, Cell[][]>> {
    const { name, order, descending = false, where, range, filter } = this.listing;
    if (where && filter != null && !this.owners)
      return new Map([[NOBODY, await this.filtered(this.between(after, before), backward, limit)]]);
    const make = () =>
      sql`select ${this.columns()} ${this.from(this.between(after, before))} ${this.inOrder(backward)} limit ${literal(limit)}`;
    if (where || range || this.owners) return this.byOwner(make());
    const places = order.map(({ property }) => property).join();
    const direction = descending === backward ? 'asc' : 'desc';
    const key = `page ${name} ${this.read.join()} ${places} ${direction} ${after ? 'after' : ''} ${before ? 'before' : ''} ${descending} ${limit}`;
    return this.byOwner(kept(key, [...(after ?? []), ...(before ?? [])], make));
  }

  /** How many rows there are. */
  async counts(): Promise<ReadonlyMap<number, number>> {
    const { tally, where, range } = this.listing;
    if (tally !== undefined && !where && !range && !this.owners) return new Map([[NOBODY, await countOf(this.ctx, tally)]]);
    return counted(await this.byOwner(sql`select count(*) ${this.from()}`));
  }

  /** Whether there is a row at this place or before it, or at it or behind it: 1 where there is. */
  async neighbours(side: 'before' | 'behind', bound: Bound): Promise<ReadonlyMap<number, number>> {
    const { where, filter } = this.listing;
    const backward = side === 'before';
    const beyond = this.compare(backward ? '<=' : '>=', bound);
    if (where && filter != null && !this.owners) return new Map([[NOBODY, (await this.filtered(beyond, backward, 1)).length]]);
    // In the list's order, so that its index is where the one is looked for.
    return counted(await this.byOwner(sql`select 1 ${this.from(beyond)} ${this.inOrder(false)} limit 1`));
  }

  // What meets a filter may stand close together and far from here, while the planner takes it to be spread evenly. So a part of the list
  // is looked through first, and only where too few of it meet the filter, all that do are looked up and sorted.
  private async filtered(bounds: Sql | undefined, backward: boolean, limit: number): Promise<Cell[][]> {
    const { where = empty, range, isFew = false } = this.listing;
    const table = identifier(this.shape.table);
    const end = sql`${this.inOrder(backward)} limit ${literal(limit)}`;
    const within = conditions(range, bounds);
    if (!isFew) {
      const part = sql`select * from ${table} ${within} ${this.inOrder(backward)} limit ${literal(LOOKED_THROUGH)}`;
      const found = await readRows(this.ctx, sql`select ${this.columns()} from (${part}) as ${table} where ${where} ${end}`);
      if (found.length === limit) return found;
    }
    // The OFFSET keeps the order and the limit from how they are looked up.
    const all = sql`select * from ${table} ${conditions(range, bounds, where)} offset 0`;
    return readRows(this.ctx, sql`select ${this.columns()} from (${all}) as ${table} ${end}`);
  }

  /** Compares the place of a row with a bound, in the direction of the list: `>` is further on. */
  private compare(operator: '<' | '<=' | '>' | '>=', bound: Bound): Sql {
    const turned = this.listing.descending ? operator.replace(/[<>]/, (sign) => (sign === '<' ? '>' : '<')) : operator;
    const values = bound.map((value, index) => sql`${value}::${raw(sqlTypeOf(this.listing.order[index]?.kind ?? 'text'))}`);
    return sql`(${join(this.orderColumns())}) ${raw(turned)} (${join(values)})`;
  }

  private between(after: Bound | undefined, before: Bound | undefined): Sql | undefined {
    const bounds = [...(after ? [this.compare('>', after)] : []), ...(before ? [this.compare('<', before)] : [])];
    return bounds.length > 0 ? join(bounds, ' and ') : undefined;
  }

  private columns(): Sql {
    return join(this.read.map((property) => this.shape.column(property)));
  }

  private inOrder(backward: boolean): Sql {
    const direction = raw((this.listing.descending ?? false) === backward ? ' asc' : ' desc');
    return sql`order by ${join(this.orderColumns().map((column) => sql`${column}${direction}`))}`;
  }

  private orderColumns(): Sql[] {
    return this.listing.order.map(({ property }) => this.shape.column(property));
  }

  private from(bounds?: Sql): Sql {
    const { owners } = this;
    const owned = owners && sql`${this.shape.column(owners.property)} = ${owners.pks.length > 1 ? raw('owner.pk') : owners.pks[0]}`;
    return sql`from ${identifier(this.shape.table)} ${conditions(owned, this.listing.range, this.listing.where, bounds)}`;
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

function conditions(...all: (Sql | undefined)[]): Sql {
  const given = all.filter((condition) => condition !== undefined);
  return given.length > 0 ? sql`where ${join(given, ' and ')}` : empty;
}

function counted(found: ReadonlyMap<number, Cell[][]>): ReadonlyMap<number, number> {
  return new Map([...found].map(([owner, [row]]) => [owner, Number(row?.[0] ?? 0)]));
}
