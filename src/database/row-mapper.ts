import type { EntityProperty } from '@mikro-orm/postgresql';
import array from 'postgres-array';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Abortable } from '../core/abort.ts';
import { readPk } from '../core/pk.ts';
import {
  execute,
  identifier,
  join,
  readTime,
  sql,
  type Cell,
  type Sql,
  type Statement,
  type Statements,
} from './sql.ts';

/** No row has this primary key: they start at 1. */
const NO_PK = 0;

/** The class of an entity. */
export type EntityClass<T> = new () => T;

/** Maps an entity to its table. Lazy properties have a `column`, but are read only if named. */
export interface Shape<T> {
  table: string;
  /** The properties to read, in the order of a row's cells. */
  properties: readonly string[];
  /** Their columns for a SELECT. */
  columns: Sql;
  column(property: string): Sql;
  /**
   * Returns an entity to read only: no unit of work tracks it. `from` is the index of its first
   * cell.
   */
  entity(row: readonly Cell[], from?: number): T;
}

// By class, then by the properties to read. Call sites limit their number.
const shapes = new Map<unknown, Map<string, Shape<unknown>>>();

/** Returns the shape of an entity; with `only`, of entities with these properties alone. */
export function shapeOf<T extends object>(
  ctx: Unit,
  entity: EntityClass<T>,
  only?: readonly (keyof T & string)[],
): Shape<T> {
  const ofClass = shapes.get(entity) ?? new Map<string, Shape<unknown>>();
  shapes.set(entity, ofClass);
  const key = only?.join() ?? '';
  const known = ofClass.get(key);
  // A shape stored under a class was created from that class.
  if (known) return known as Shape<T>;
  const shape = createShape(ctx, entity, only);
  ofClass.set(key, shape);
  return shape;
}

function createShape<T extends object>(
  ctx: Unit,
  entity: EntityClass<T>,
  only?: readonly string[],
): Shape<T> {
  const { tableName, props } = ctx.em.getMetadata(entity);
  const columns = new Map(
    props.map((prop) => [prop.name, identifier(tableName, prop.fieldNames[0] ?? '')]),
  );
  const read = props
    .filter((prop) => (only ? only.includes(prop.name) : prop.lazy !== true))
    .map((prop) => ({ property: prop.name, value: valueOf(prop) }));
  const column = (property: string): Sql => {
    const found = columns.get(property);
    if (!found) throw new TypeError(`${tableName} has no column for ${property}`);
    return found;
  };
  const Read = readOnly(
    entity,
    props.map((prop) => prop.name),
  );
  return {
    table: tableName,
    properties: read.map(({ property }) => property),
    columns: join(read.map(({ property }) => column(property))),
    column,
    entity(row, from = 0) {
      const made = new Read();
      let index = from;
      for (const { property, value } of read) made[property] = value(row[index++]);
      return made as T;
    },
  };
}

// The ORM's setters on an entity's prototype track every change. This subclass bypasses them.
function readOnly<T extends object>(
  entity: EntityClass<T>,
  properties: readonly string[],
): new () => Record<string, unknown> {
  class Read extends (entity as EntityClass<object>) {}
  const plain = Object.fromEntries(
    properties.map((property) => [
      property,
      { value: undefined, writable: true, configurable: true },
    ]),
  );
  Object.defineProperties(Read.prototype, { ...plain, constructor: { value: entity } });
  return Read as unknown as new () => Record<string, unknown>;
}

// A cell is text, or inside a transaction the value that the driver parsed. A reference has the type
// of its target's primary key.
function valueOf(property: EntityProperty): (cell: Cell) => unknown {
  const {
    columnTypes: [type = ''],
    targetMeta,
  } = property;
  const { runtimeType } = targetMeta?.getPrimaryProp() ?? property;
  const nullable = (read: (cell: Cell) => unknown) => (cell: Cell) =>
    cell === null || cell === undefined ? null : read(cell);
  if (type.endsWith('[]'))
    return nullable((cell) => (Array.isArray(cell) ? cell : array.parse(String(cell), String)));
  if (type.startsWith('timestamptz')) return nullable(readTime);
  if (runtimeType === 'number') return nullable(Number);
  // The driver may have parsed objects and lists already.
  if (type === 'jsonb')
    return nullable((cell) => (typeof cell === 'string' ? (JSON.parse(cell) as unknown) : cell));
  if (/^bool(ean)?$/.test(type)) return nullable((cell) => cell === true || cell === 't');
  return (cell) => cell;
}

/** Outside a transaction. */
type Outside = { statements: Statements; request?: Abortable };

/** Reads rows by single statements, or without them in the current transaction. */
export type Reader = Unit | Outside;

/** A unit of work. */
interface Unit {
  em: EntityManager;
  /** Absent in a transaction, which reads its own writes. */
  statements?: Statements;
  request?: Abortable;
}

/**
 * Returns the rows of a statement: committed data, or what the current transaction sees. In a
 * transaction each column needs a unique name, because the ORM's driver returns rows by name.
 */
export async function readRows(
  ctx: Reader,
  statement: Statement,
  prepared = false,
): Promise<Cell[][]> {
  if (isOutside(ctx)) return ctx.statements.read(statement, prepared, ctx.request);
  const { rows } = await execute(ctx.em, statement);
  return rows.map((row) => Object.values(row));
}

function isOutside(ctx: Reader): ctx is Outside {
  return ctx.statements !== undefined;
}

/** Writes by one statement, in the current transaction or alone, and returns its rows. */
export async function writeRows(ctx: Unit, statement: Statement): Promise<Cell[][]> {
  return ctx.statements ? ctx.statements.write(statement, ctx.request) : readRows(ctx, statement);
}

/** Returns the entities that meet the condition, by one statement, without a unit of work. */
export async function selectEntities<T extends object>(
  ctx: Unit,
  entity: EntityClass<T>,
  where: Sql,
  prepared = false,
): Promise<T[]> {
  const shape = shapeOf(ctx, entity);
  const rows = await readRows(
    ctx,
    sql`select ${shape.columns} from ${identifier(shape.table)} where ${where}`,
    prepared,
  );
  return rows.map((row) => shape.entity(row));
}

/**
 * Returns the entities of these primary keys, in the order of the keys, by one statement. An
 * element is null if no entity meets the condition or the key is no primary key.
 */
export async function selectByPks<T extends { pk: number }>(
  ctx: Unit,
  entity: EntityClass<T>,
  keys: readonly (string | number)[],
  where?: Sql,
): Promise<(T | null)[]> {
  const pks = keys.map((key) => readPk(String(key)) ?? NO_PK);
  const condition = pks.length === 1 ? sql`pk = ${pks[0]}` : sql`pk = any(${pks}::bigint[])`;
  const entities = await selectEntities(
    ctx,
    entity,
    where ? sql`${condition} and ${where}` : condition,
    true,
  );
  return inOrder(entities, 'pk', pks);
}

/** Returns for each key the entity whose property has this value; null if there is none. */
export function inOrder<T, P extends keyof T>(
  entities: readonly T[],
  property: P,
  keys: readonly T[P][],
): (T | null)[] {
  const byKey = new Map(entities.map((entity) => [entity[property], entity]));
  return keys.map((key) => byKey.get(key) ?? null);
}
