import type { Context } from '../request/context.ts';
import { sqlTypeOf, type Bound, type OrderColumn } from './cursor.ts';
import { DomainError } from '../core/errors.ts';
import { withinTime } from '../core/cancellation.ts';
import { readRows, shapeOf, type EntityClass, type Shape } from '../database/row-mapper.ts';
import { empty, join, kept, literal, identifier, raw, sql, type Cell, type Sql, type Statement, type Statements } from '../database/sql.ts';
import { countOf } from './row-counts.ts';
import { Turns } from '../core/keyed-limit.ts';

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

/** Longest time in ms for counting what meets a filter. */
const MAX_COUNT_MS = 1_000;
/** Of one request, one filtered list is counted at a time; of one network, one request's, and so many may wait for that. */
const countingOfRequest = new Turns();
const countingOfNetwork = new Turns();
const MAX_WAITING_COUNTS = 20;
/** When a rejected client should retry, in seconds. */
const RETRY_S = 1;

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

  /** How many rows there are. Throws QUERY_TOO_COMPLEX where so many meet a filter that it takes too long to count them, and RATE_LIMITED. */
  async counts(): Promise<ReadonlyMap<number, number>> {
    const { tally, where, range, filter } = this.listing;
    const { statements } = this.ctx;
    if ((where || range) && filter != null && statements) {
      return countingOfRequest.run(this.ctx.request ?? this.ctx, () => this.countInTurn(statements));
    }
    if (tally !== undefined && !where && !range && !this.owners) return new Map([[NOBODY, await countOf(this.ctx, tally)]]);
    return counted(await this.byOwner(sql`select count(*) ${this.from()}`));
  }

  private async countInTurn(statements: Statements): Promise<ReadonlyMap<number, number>> {
    const { network, request } = this.ctx;
    if (countingOfNetwork.hasWaiting(network, MAX_WAITING_COUNTS)) {
      throw new DomainError('RATE_LIMITED', 'Too many filtered lists are being counted for this address', [], RETRY_S);
    }
    const select = sql`select count(*) ${this.from()}`;
    const rows = await countingOfNetwork.run(network, () =>
      withinTime(request, MAX_COUNT_MS, (own) => statements.read(select, false, own)),
    );
    if (rows) return new Map([[NOBODY, Number(rows[0]?.[0])]]);
    throw new DomainError('QUERY_TOO_COMPLEX', 'Too many meet the filter to be counted: leave out totalCount, or narrow the filter');
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
