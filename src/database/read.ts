import type { EntityClass, EntityManager } from '@mikro-orm/postgresql';
import { LRUCache } from 'lru-cache';
import type { Abortable } from '../core/abort.ts';
import { runStatement, statementOf, type Query } from './kysely.ts';
import type { Statement, Statements } from './sql.ts';

/** Reads rows by single statements, or without them in the current transaction. */
export type Reader =
  | { em: EntityManager; statements?: Statements; request?: Abortable }
  | { statements: Statements; request?: Abortable };

/** Returns the rows of a query: committed data, or what the current transaction sees. */
export async function readRows<Row extends object>(
  ctx: Reader,
  query: Query<Row> | Statement,
  prepared = false,
): Promise<Row[]> {
  const statement = 'text' in query ? query : statementOf(query);
  if (isOutside(ctx)) return (await ctx.statements.read(statement, prepared, ctx.request)) as Row[];
  return (await runStatement<Row>(ctx, statement)).rows;
}

function isOutside(ctx: Reader): ctx is Extract<Reader, { statements: Statements }> {
  return ctx.statements !== undefined;
}

const texts = new LRUCache<string, string>({ max: 500 });

/**
 * Returns a statement whose text is built once per key, because building takes longer than sending.
 * Except for the values, the result of `make` must depend on the key alone.
 */
export function cachedStatement(
  key: string,
  values: readonly unknown[],
  make: () => Query,
): Statement {
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = statementOf(make()).text));
  return { text, values };
}

/**
 * Returns the columns of an entity for a SELECT, each named as its property behind a prefix: of these
 * properties, by default all that are not lazy, and of the `others`.
 */
export function columnsOf(
  { em }: { em: EntityManager },
  entity: EntityClass<object>,
  others: readonly string[] = [],
  prefix = '',
  properties?: readonly string[],
): string[] {
  const { tableName, props } = em.getMetadata(entity);
  return props
    .filter(({ name, lazy }) => others.includes(name) || (properties?.includes(name) ?? !lazy))
    .map(({ name, fieldNames }) => `${tableName}.${fieldNames[0]} as ${prefix}${String(name)}`);
}

/** Returns the column of a property. */
export function columnOf(
  { em }: { em: EntityManager },
  entity: EntityClass<object>,
  property: string,
): string {
  const { tableName, props } = em.getMetadata(entity);
  return `${tableName}.${props.find(({ name }) => name === property)?.fieldNames[0]}`;
}

/**
 * Makes a row with the names of properties an entity to read only: no unit of work tracks it. With
 * a prefix, takes the columns that have it.
 */
export function entityOf<T extends object>(entity: EntityClass<T>, row: object, prefix = ''): T {
  const columns =
    prefix === ''
      ? row
      : Object.fromEntries(
          Object.entries(row)
            .filter(([name]) => name.startsWith(prefix))
            .map(([name, value]) => [name.slice(prefix.length), value]),
        );
  // The ORM's setters on the prototype would track each property: the row keeps its own.
  return Object.setPrototypeOf(columns, entity.prototype as object) as T;
}
