import type { EntityClass } from '@mikro-orm/postgresql';
import {
  expressionBuilder,
  sql,
  type Expression,
  type SelectQueryBuilder,
  type SqlBool,
} from 'kysely';
import type { Context } from '../request/context.ts';
import type { Bound, OrderColumn } from './cursor.ts';
import { DomainError } from '../core/errors.ts';
import { withTimeLimit, type Abortable } from '../core/abort.ts';
import {
  builder,
  statementOf,
  type Query,
  type Tables,
  cachedStatement,
  columnOf,
  columnsOf,
  entityOf,
  readRows,
} from '../database/kysely.ts';
import type { Statement } from '../database/sql.ts';
import { recentCounts } from './row-counts.ts';
import { KeyedLimit } from '../core/keyed-limit.ts';

/** Definition of a list that is read in pages by keyset. */
export interface ListDefinition<T extends object> {
  /** Identifies the list in its cursors. */
  name: string;
  entity: EntityClass<T>;
  /** Properties to read besides those of the order. The default is all that are not lazy. */
  properties?: readonly string[];
  /** Order columns; the last one is unique. All have the same direction. */
  order: readonly OrderColumn[];
  descending?: boolean;
  where?: Expression<SqlBool>;
  /** The values in `where`, if lists of this name with as many values have the same text of it. */
  values?: readonly unknown[];
  /** A range of the order's index, in addition to `where`. */
  range?: Expression<SqlBool>;
  /** The filter behind `where`. Cursors are only valid for the same filter. */
  filter?: unknown;
  /** The table with the list's row counts (row-counts.ts); used only without `where`. */
  rowCounts?: string;
  /** Rank of a part of a ranked list (keyset.ts). Cursors contain it, so it must not change. */
  rank?: number;
}

/** Owners of nested lists, which are read in one statement, one page for each owner. */
export interface Owners {
  /** Property of the list's entity that references the owner. */
  property: string;
  pks: readonly number[];
}

/** The rows on one side of a bound, in the list's direction: `>` is after. */
export interface Side {
  operator: '<' | '>';
  bound: Bound;
}

type Select<Row = object> = SelectQueryBuilder<Tables, string, Row>;

/** Page sizes with prepared statements. Each statement costs memory on its connection. */
export const PREPARED_SIZES = new Set([1, 2, 3, 4, 5, 6, 8, 10, 12, 20, 24, 25, 50, 100]);
/** Time limit for counting the rows of a filtered list, in ms. */
const MAX_COUNT_MS = 1_000;
/** Number of rows that are read in order for a filter, before all matches are looked up. */
const MAX_SCANNED_ROWS = 2_000;
/** Time limit for looking up all matches, in ms. */
const MAX_LOOKUP_MS = 2_000;
/** Whole lists, whose counts have no time limit, are counted four at a time per network. */
const wholeCountLimitPerNetwork = new KeyedLimit(4);
/** Lists are counted one at a time per request, and filtered ones per network. */
const countLimitPerRequest = new KeyedLimit();
const countLimitPerNetwork = new KeyedLimit();
/** Maximum number of counts of one network that wait. */
const MAX_WAITING_COUNTS = 20;

const keys = new WeakMap<object, string>();

/**
 * Returns a statement of the list. Builds its text once for each kind, unless the text depends on
 * the condition. It has the `first` values, those of the list's condition, and the `last`.
 */
export function statementOfList<T extends object>(
  list: ListDefinition<T>,
  kind: string,
  first: readonly unknown[],
  last: readonly unknown[],
  build: () => Query,
): Statement {
  if (!list.values && (list.where || list.range)) return statementOf(build());
  return cachedStatement(
    `${kind} ${keyOf(list)}`,
    [...first, ...(list.values ?? []), ...last],
    build,
  );
}

function keyOf<T extends object>(list: ListDefinition<T>): string {
  let key = keys.get(list);
  if (key === undefined) {
    const { name, order, descending, properties, values } = list;
    keys.set(list, (key = JSON.stringify([name, order, descending, properties, values?.length])));
  }
  return key;
}

/** Statements of one list. Results are in the order of the owners; without owners, there is one. */
export class ListQuery<T extends object> {
  constructor(
    private readonly ctx: Context,
    readonly list: ListDefinition<T>,
    private readonly owners?: Owners,
  ) {}

  private get table(): string {
    return this.ctx.em.getMetadata(this.list.entity).tableName;
  }

  /** Reads the first rows on these sides, or backward the last ones, for each owner. */
  async rows(sides: readonly Side[], backward: boolean, limit: number): Promise<T[][]> {
    const { list } = this;
    const { entity, filter } = list;
    const toEntities = (found: object[]) => found.map((row) => entityOf(entity, row));
    if (filter != null && list.where && !this.owners)
      return [toEntities(await this.readFiltered(sides, backward, limit))];
    const build = () =>
      this.ofEachOwner(this.ordered(this.from(sides).select(this.columns()), backward, limit));
    const { pks = [], property: owner } = this.owners ?? {};
    const isOfOne = pks.length === 1;
    const owners = isOfOne || !owner ? pks : [pks];
    const bounds = sides.flatMap(({ bound }) => bound);
    const operators = sides.map(({ operator }) => operator).join();
    const kind = `page ${backward} ${limit} ${operators} ${owner} ${isOfOne}`;
    const statement = statementOfList(list, kind, owners, bounds, build);
    // The best plan for a filter depends on its values, so such statements are planned each time.
    const isPrepared = filter == null && PREPARED_SIZES.has(limit - 1);
    return (await this.byOwner(statement, isPrepared)).map(toEntities);
  }

  /** Counts the rows. Throws QUERY_TOO_COMPLEX at the time limit of a filter, and RATE_LIMITED. */
  async counts(): Promise<number[]> {
    const { rowCounts, where, range, filter } = this.list;
    const { network } = this.ctx;
    if (rowCounts !== undefined && !where && !range)
      return [(await recentCounts(this.ctx, rowCounts)).count];
    const select = this.from().select(({ fn }) => fn.countAll<number>().as('count'));
    const statement = statementOf(this.ofEachOwner(select));
    if (this.owners || !this.ctx.statements) {
      const counts = await this.byOwner<{ count: number }>(statement, true);
      return counts.map(([row]) => row?.count ?? 0);
    }
    const count = () =>
      filter == null
        ? wholeCountLimitPerNetwork.run(network, () =>
            readRows<{ count: number }>(this.ctx, statement),
          )
        : this.countInSlot(statement);
    const [row] = await countLimitPerRequest.run(this.ctx.request ?? this.ctx, count);
    return [row?.count ?? 0];
  }

  private countInSlot(statement: Statement): Promise<{ count: number }[]> {
    const { network } = this.ctx;
    const message = 'Too many concurrent counts of filtered lists from this address; retry later';
    if (countLimitPerNetwork.hasWaiting(network, MAX_WAITING_COUNTS))
      throw new DomainError('RATE_LIMITED', message, [], 1);
    return countLimitPerNetwork.run(network, () => this.readWithin(statement, MAX_COUNT_MS));
  }

  // Throws QUERY_TOO_COMPLEX at the time limit. A transaction has its own.
  private async readWithin<Row extends object>(statement: Statement, ms: number): Promise<Row[]> {
    const { statements, request } = this.ctx;
    if (!statements) return readRows(this.ctx, statement);
    const read = (part: Abortable) => statements.read(statement, false, part);
    const rows = await withTimeLimit(request, ms, read);
    if (rows) return rows as Row[];
    throw new DomainError(
      'QUERY_TOO_COMPLEX',
      'Too many entries match the filter: narrow it, or omit totalCount',
    );
  }

  // The planner expects too many matches of a rare word, and would read the whole list for them. So
  // a part is read in order first; if too few rows match, all matches are looked up and sorted.
  private async readFiltered(
    sides: readonly Side[],
    backward: boolean,
    limit: number,
  ): Promise<object[]> {
    const { ctx, table } = this;
    const { where } = this.list;
    const first = this.ordered(this.from(sides, null).selectAll(), backward, MAX_SCANNED_ROWS);
    const scanned = builder.selectFrom(first.as(table)).select(this.columns());
    const matching = where ? scanned.where(where) : scanned;
    const rows = await readRows(ctx, this.ordered(matching, backward, limit));
    if (rows.length === limit) return rows;
    // The OFFSET keeps the planner from reading in order.
    const all = this.from(sides).selectAll().offset(sql.lit(0)).as(table);
    const found = builder.selectFrom(all).select(this.columns());
    return this.readWithin(statementOf(this.ordered(found, backward, limit)), MAX_LOOKUP_MS);
  }

  private from(
    sides: readonly Side[] = [],
    where: Expression<SqlBool> | null = this.list.where ?? null,
  ): Select {
    const { list, owners, table } = this;
    const eb = expressionBuilder<Tables, string>();
    const ofOwner =
      owners &&
      eb(
        this.columnOf(owners.property),
        '=',
        owners.pks.length === 1 ? owners.pks[0] : eb.ref('owner.pk'),
      );
    const conditions = [ofOwner, list.range, where, ...this.conditionsOf(sides)];
    return conditions.reduce(
      (query, condition) => (condition ? query.where(condition) : query),
      builder.selectFrom(table),
    );
  }

  private conditionsOf(sides: readonly Side[]): Expression<SqlBool>[] {
    const columns = sql.join(this.orderColumns().map((column) => sql.ref(column)));
    return sides.map(({ operator, bound }) => {
      const isGreater = (operator === '>') !== (this.list.descending ?? false);
      // Kysely types comparisons of rows for IN alone.
      return sql<SqlBool>`(${columns}) ${sql.raw(isGreater ? '>' : '<')} (${sql.join(bound)})`;
    });
  }

  private columns(): string[] {
    const order = this.list.order.map(({ property }) => property);
    return columnsOf(this.ctx, this.list.entity, order, this.list.properties);
  }

  private columnOf(property: string): string {
    return columnOf(this.ctx, this.list.entity, property);
  }

  private orderColumns(): string[] {
    return this.list.order.map(({ property }) => this.columnOf(property));
  }

  // The LIMIT is literal: for a parameter, the planner assumes a tenth of the table.
  private ordered<Row>(query: Select<Row>, backward: boolean, limit: number): Select<Row> {
    const direction = (this.list.descending ?? false) === backward ? 'asc' : 'desc';
    const ordered = this.orderColumns().reduce((part, by) => part.orderBy(by, direction), query);
    return ordered.limit(sql.lit(limit));
  }

  private ofEachOwner(select: Select): Query {
    const { owners } = this;
    if (!owners || owners.pks.length === 1) return select;
    const pks = sql<{ pk: number }>`unnest(${owners.pks}::bigint[])`;
    return builder
      .selectFrom(pks.as<'owner'>(sql`owner(pk)`))
      .crossJoinLateral(select.as('page'))
      .selectAll('page')
      .select('owner.pk as ofOwner');
  }

  private async byOwner<Row extends object>(
    statement: Statement,
    prepared: boolean,
  ): Promise<Row[][]> {
    const rows = await readRows<Row & { ofOwner?: number }>(this.ctx, statement, prepared);
    const { pks = [] } = this.owners ?? {};
    if (pks.length < 2) return [rows];
    const rowsByOwner = Map.groupBy(rows, ({ ofOwner }) => ofOwner);
    return pks.map((pk) => rowsByOwner.get(pk) ?? []);
  }
}
