import type { Context } from '../request/context.ts';
import { sqlTypeOf, type Bound, type OrderColumn } from './cursor.ts';
import { DomainError } from '../core/errors.ts';
import { withTimeLimit } from '../core/abort.ts';
import { readRows, shapeOf, type EntityClass, type Shape } from '../database/row-mapper.ts';
import {
  empty,
  join,
  cachedStatement,
  literal,
  identifier,
  raw,
  sql,
  type Cell,
  type Sql,
  type Statement,
  type Statements,
} from '../database/sql.ts';
import { countOf } from './row-counts.ts';
import { KeyedLimit } from '../core/keyed-limit.ts';

/** Definition of a list that is read in pages by keyset. */
export interface ListDefinition<T extends object> {
  /** Identifies the list in its cursors. */
  name: string;
  entity: EntityClass<T>;
  /** Order columns; the last one is unique. All have the same direction. */
  order: readonly OrderColumn[];
  descending?: boolean;
  where?: Sql;
  /** A range of the order's index, in addition to `where`. */
  range?: Sql;
  /** Whether `where` matches so few rows that they are looked up, whatever the order. */
  isSelective?: boolean;
  /** The filter behind `where`. Cursors are only valid for the same filter. */
  filter?: unknown;
  /** The table with the list's row counts (row-counts.ts); used only without `where`. */
  rowCounts?: string;
}

/** Owners of nested lists, which are read in one statement, one page for each owner. */
export interface Owners {
  /** Property of the list's entity that references the owner. */
  property: string;
  pks: readonly number[];
}

/** Owner key of a list without owners. */
export const NO_OWNER = 0;

/** Time limit for counting the rows of a filtered list, in ms. */
const MAX_COUNT_MS = 1_000;
/** Time limit for looking up all rows that match a filter, in ms. */
const MAX_LOOKUP_MS = 2_000;
/** Filtered lists are counted one at a time per request and per network. */
const countLimitPerRequest = new KeyedLimit();
const countLimitPerNetwork = new KeyedLimit();
/** Maximum number of counts of one network that wait. */
const MAX_WAITING_COUNTS = 20;
/** Delay until a rejected client may retry, in seconds. */
const RETRY_S = 1;

/** Maximum number of rows that are scanned in order for a filter, before an index look-up. */
export const MAX_SCANNED_ROWS = 2_000;

/** Statements of one list, for one owner or many. Results are keyed by owner. */
export class ListQuery<T extends object> {
  private readonly shape: Shape<T>;
  /** Selected properties: the requested ones, then the missing ones of the order. */
  private readonly selected: readonly string[];
  /** Index of each order column among the selected properties. */
  private readonly orderIndexes: readonly number[];

  constructor(
    private readonly ctx: Context,
    private readonly list: ListDefinition<T>,
    properties: readonly string[],
    private readonly owners?: Owners,
  ) {
    this.shape = shapeOf(ctx, list.entity);
    const missing = list.order
      .map(({ property }) => property)
      .filter((property) => !properties.includes(property));
    this.selected = missing.length > 0 ? [...properties, ...missing] : properties;
    this.orderIndexes = list.order.map(({ property }) => this.selected.indexOf(property));
  }

  boundOf(row: readonly Cell[]): Bound {
    return this.orderIndexes.map((index) => row[index]);
  }

  async rows(
    after: Bound | undefined,
    before: Bound | undefined,
    backward: boolean,
    limit: number,
  ): Promise<Map<number, Cell[][]>> {
    const { name, order, descending = false, where, range, filter } = this.list;
    if (where && filter != null && !this.owners)
      return new Map([
        [NO_OWNER, await this.readFiltered(this.betweenCondition(after, before), backward, limit)],
      ]);
    const build = () =>
      sql`select ${this.columns()} ${this.from(this.betweenCondition(after, before))} ${this.orderBy(backward)} limit ${literal(limit)}`;
    if (where || range || this.owners) return this.readByOwner(build());
    const orderKey = order.map(({ property }) => property).join();
    const direction = descending === backward ? 'asc' : 'desc';
    const key = `page ${name} ${this.selected.join()} ${orderKey} ${direction} ${after ? 'after' : ''} ${before ? 'before' : ''} ${descending} ${limit}`;
    return this.readByOwner(cachedStatement(key, [...(after ?? []), ...(before ?? [])], build));
  }

  /** Counts the rows. Throws QUERY_TOO_COMPLEX at the time limit of a filter, and RATE_LIMITED. */
  async counts(): Promise<ReadonlyMap<number, number>> {
    const { rowCounts, where, range, filter } = this.list;
    const { statements } = this.ctx;
    if ((where || range) && filter != null && statements) {
      return countLimitPerRequest.run(this.ctx.request ?? this.ctx, () =>
        this.countInSlot(statements),
      );
    }
    if (rowCounts !== undefined && !where && !range && !this.owners)
      return new Map([[NO_OWNER, await countOf(this.ctx, rowCounts)]]);
    return firstNumbers(await this.readByOwner(sql`select count(*) ${this.from()}`));
  }

  private async countInSlot(statements: Statements): Promise<ReadonlyMap<number, number>> {
    const { network } = this.ctx;
    if (countLimitPerNetwork.hasWaiting(network, MAX_WAITING_COUNTS)) {
      throw new DomainError(
        'RATE_LIMITED',
        'Too many concurrent counts of filtered lists from this address; retry later',
        [],
        RETRY_S,
      );
    }
    const rows = await countLimitPerNetwork.run(network, () =>
      this.readWithin(
        statements,
        sql`select count(*) ${this.from()}`,
        MAX_COUNT_MS,
        'Too many entries match the filter to be counted: omit totalCount or narrow the filter',
      ),
    );
    return new Map([[NO_OWNER, Number(rows[0]?.[0])]]);
  }

  private lookUp(select: Sql): Promise<Cell[][]> {
    const { statements } = this.ctx;
    if (!statements) return readRows(this.ctx, select);
    return this.readWithin(
      statements,
      select,
      MAX_LOOKUP_MS,
      'Too many entries must be read for the filter: narrow it, or search for longer words',
    );
  }

  // Throws QUERY_TOO_COMPLEX with the message at the time limit.
  private async readWithin(
    statements: Statements,
    select: Sql,
    ms: number,
    message: string,
  ): Promise<Cell[][]> {
    const rows = await withTimeLimit(this.ctx.request, ms, (part) =>
      statements.read(select, false, part),
    );
    if (rows) return rows;
    throw new DomainError('QUERY_TOO_COMPLEX', message);
  }

  /** Returns 1 for each owner with a row at the bound or on this side of it. */
  async existsBeyond(side: 'before' | 'after', bound: Bound): Promise<ReadonlyMap<number, number>> {
    const { where, filter } = this.list;
    const backward = side === 'before';
    const beyond = this.compare(backward ? '<=' : '>=', bound);
    if (where && filter != null && !this.owners)
      return new Map([[NO_OWNER, (await this.readFiltered(beyond, backward, 1)).length]]);
    // In the list's order, so that PostgreSQL uses its index.
    return firstNumbers(
      await this.readByOwner(sql`select 1 ${this.from(beyond)} ${this.orderBy(false)} limit 1`),
    );
  }

  // Matching rows may be clustered far from here, while the planner assumes an even distribution.
  // So a part of the list is scanned in order first; if too few rows match, all matches are looked
  // up and sorted.
  private async readFiltered(
    bounds: Sql | undefined,
    backward: boolean,
    limit: number,
  ): Promise<Cell[][]> {
    const { where = empty, range, isSelective: isFew = false } = this.list;
    const table = identifier(this.shape.table);
    const orderAndLimit = sql`${this.orderBy(backward)} limit ${literal(limit)}`;
    const inRange = whereClause(range, bounds);
    if (!isFew) {
      const scanned = sql`select * from ${table} ${inRange} ${this.orderBy(backward)} limit ${literal(MAX_SCANNED_ROWS)}`;
      const rows = await readRows(
        this.ctx,
        sql`select ${this.columns()} from (${scanned}) as ${table} where ${where} ${orderAndLimit}`,
      );
      if (rows.length === limit) return rows;
    }
    // The OFFSET keeps the planner from using the order and the limit for the look-up, which reads
    // only the order columns, often from an index alone.
    const key = this.orderColumns().at(-1) ?? empty;
    const matching = sql`select ${join(this.orderColumns())} from ${table} ${whereClause(range, bounds, where)} offset 0`;
    return this.lookUp(
      sql`select ${this.columns()} from ${table} where ${key} in (select ${key} from (${matching}) as ${table} ${orderAndLimit}) ${this.orderBy(backward)}`,
    );
  }

  /** Returns a condition that compares rows with a bound in the list's direction: `>` is after. */
  private compare(operator: '<' | '<=' | '>' | '>=', bound: Bound): Sql {
    const directed = this.list.descending
      ? operator.replace(/[<>]/, (sign) => (sign === '<' ? '>' : '<'))
      : operator;
    const values = bound.map(
      (value, index) => sql`${value}::${raw(sqlTypeOf(this.list.order[index]?.kind ?? 'text'))}`,
    );
    return sql`(${join(this.orderColumns())}) ${raw(directed)} (${join(values)})`;
  }

  private betweenCondition(after: Bound | undefined, before: Bound | undefined): Sql | undefined {
    const bounds = [
      ...(after ? [this.compare('>', after)] : []),
      ...(before ? [this.compare('<', before)] : []),
    ];
    return bounds.length > 0 ? join(bounds, ' and ') : undefined;
  }

  private columns(): Sql {
    return join(this.selected.map((property) => this.shape.column(property)));
  }

  private orderBy(backward: boolean): Sql {
    const direction = raw((this.list.descending ?? false) === backward ? ' asc' : ' desc');
    return sql`order by ${join(this.orderColumns().map((column) => sql`${column}${direction}`))}`;
  }

  private orderColumns(): Sql[] {
    return this.list.order.map(({ property }) => this.shape.column(property));
  }

  private from(bounds?: Sql): Sql {
    const { owners } = this;
    const ownerCondition =
      owners &&
      sql`${this.shape.column(owners.property)} = ${owners.pks.length > 1 ? raw('owner.pk') : owners.pks[0]}`;
    return sql`from ${identifier(this.shape.table)} ${whereClause(ownerCondition, this.list.range, this.list.where, bounds)}`;
  }

  private async readByOwner(select: Statement): Promise<Map<number, Cell[][]>> {
    // The best plan for a filter depends on its values, so such statements are planned each time.
    const prepared = this.list.filter == null;
    const pks = this.owners?.pks ?? [NO_OWNER];
    if (pks.length === 1)
      return new Map([[pks[0] ?? NO_OWNER, await readRows(this.ctx, select, prepared)]]);
    const statement = sql`
      select page.*, owner.pk from unnest(${[...pks]}::bigint[]) as owner(pk) cross join lateral (${select}) as page`;
    const rowsByOwner = new Map<number, Cell[][]>();
    for (const row of await readRows(this.ctx, statement, prepared)) {
      const owner = Number(row.pop());
      const ownerRows = rowsByOwner.get(owner);
      if (ownerRows) ownerRows.push(row);
      else rowsByOwner.set(owner, [row]);
    }
    return rowsByOwner;
  }
}

function whereClause(...conditions: (Sql | undefined)[]): Sql {
  const defined = conditions.filter((condition) => condition !== undefined);
  return defined.length > 0 ? sql`where ${join(defined, ' and ')}` : empty;
}

function firstNumbers(rowsByOwner: ReadonlyMap<number, Cell[][]>): ReadonlyMap<number, number> {
  return new Map([...rowsByOwner].map(([owner, [row]]) => [owner, Number(row?.[0] ?? 0)]));
}
