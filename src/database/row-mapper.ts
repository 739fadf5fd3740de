import type { EntityProperty } from '@mikro-orm/postgresql';
import array from 'postgres-array';
import type { Context } from '../request/context.ts';
import { readPk } from '../core/pk.ts';
import { execute, identifier, join, readTime, sql, type Cell, type Sql, type Statement, type Statements } from './sql.ts';

/** Primary keys start at 1. */
const NO_PK = 0;

/** The class of an entity. */
export type EntityClass<T> = new () => T;

/** How an entity stands in its table. Lazy properties are there by name, and left out where all are read. */
export interface Shape<T> {
  table: string;
  /** The properties that are read, in the order of a row's cells. */
  properties: readonly string[];
  /** Their columns for a SELECT. */
  columns: Sql;
  column(property: string): Sql;
  /** An entity made from a row: to read, not to change, for no unit of work knows it. `from` is the first cell's place. */
  entity(row: readonly Cell[], from?: number): T;
}

// By class, and by the properties that are read; there are as many as call sites name.
const shapes = new Map<unknown, Map<string, Shape<unknown>>>();

/** The shape of an entity; with `only`, of entities that have no other properties. */
export function shapeOf<T extends object>(ctx: Context, entity: EntityClass<T>, only?: readonly (keyof T & string)[]): Shape<T> {
  const ofClass = shapes.get(entity) ?? new Map<string, Shape<unknown>>();
  shapes.set(entity, ofClass);
  const key = only?.join() ?? '';
  const known = ofClass.get(key);
  // What is found under a class was made from that class.
  if (known) return known as Shape<T>;
  const made = makeShape(ctx, entity, only);
  ofClass.set(key, made);
  return made;
}

function makeShape<T extends object>(ctx: Context, entity: EntityClass<T>, only?: readonly string[]): Shape<T> {
  const { tableName, props } = ctx.em.getMetadata(entity);
  const columns = new Map(props.map((prop) => [prop.name, identifier(tableName, prop.fieldNames[0] ?? '')]));
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
      let at = from;
      for (const { property, value } of read) made[property] = value(row[at++]);
      return made as T;
    },
  };
}

// The ORM puts setters on an entity's prototype that note every change. What is only read is an instance, too, past those.
function readOnly<T extends object>(entity: EntityClass<T>, properties: readonly string[]): new () => Record<string, unknown> {
  class Read extends (entity as EntityClass<object>) {}
  const plain = Object.fromEntries(properties.map((property) => [property, { value: undefined, writable: true, configurable: true }]));
  Object.defineProperties(Read.prototype, { ...plain, constructor: { value: entity } });
  return Read as unknown as new () => Record<string, unknown>;
}

// The driver's text, or what it makes of it inside a transaction.
function valueOf({ columnTypes: [type = ''] }: EntityProperty): (cell: Cell) => unknown {
  const nullable = (read: (cell: Cell) => unknown) => (cell: Cell) => (cell === null || cell === undefined ? null : read(cell));
  if (type.endsWith('[]')) return nullable((cell) => (Array.isArray(cell) ? cell : array.parse(String(cell), String)));
  if (type.startsWith('timestamptz')) return nullable(readTime);
  if (/^(int|integer|serial|smallint)$/.test(type)) return nullable(Number);
  // Objects and lists, which are parsed already where the driver has done so.
  if (type === 'jsonb') return nullable((cell) => (typeof cell === 'string' ? (JSON.parse(cell) as unknown) : cell));
  if (/^bool(ean)?$/.test(type)) return nullable((cell) => cell === true || cell === 't');
  return (cell) => cell;
}

type Outside = Pick<Context, 'request'> & { statements: Statements };

/** What rows are read by: single statements, or where there are none the transaction at hand. */
export type Reader = Pick<Context, 'em' | 'statements' | 'request'> | Outside;

/**
 * The rows of a statement: what is committed, or inside a transaction what that sees. There each column needs a name of its own: the ORM's
 * driver hands rows over by name.
 */
export async function readRows(ctx: Reader, statement: Statement, hot = false): Promise<Cell[][]> {
  if (isOutside(ctx)) return ctx.statements.read(statement, hot, ctx.request);
  const { rows } = await execute(ctx.em, statement);
  return rows.map((row) => Object.values(row));
}

function isOutside(ctx: Reader): ctx is Outside {
  return ctx.statements !== undefined;
}

/** Writes by one statement, in the transaction at hand or by itself, and answers the rows that it returns. */
export async function writeRows(ctx: Context, statement: Statement): Promise<Cell[][]> {
  return ctx.statements ? ctx.statements.write(statement, ctx.request) : readRows(ctx, statement);
}

/** The entities of this class that meet the condition, in one statement and without a unit of work. */
export async function selectEntities<T extends object>(ctx: Context, entity: EntityClass<T>, where: Sql, hot = false): Promise<T[]> {
  const shape = shapeOf(ctx, entity);
  const rows = await readRows(ctx, sql`select ${shape.columns} from ${identifier(shape.table)} where ${where}`, hot);
  return rows.map((row) => shape.entity(row));
}

/**
 * The entities of these primary keys, in the order of the keys, in one statement; null where there is none that meets the
 * condition, and where the text is no primary key.
 */
export async function selectByPks<T extends { pk: number }>(
  ctx: Context,
  entity: EntityClass<T>,
  keys: readonly (string | number)[],
  where?: Sql,
): Promise<(T | null)[]> {
  const pks = keys.map((key) => readPk(String(key)) ?? NO_PK);
  const condition = pks.length === 1 ? sql`pk = ${pks[0]}` : sql`pk = any(${pks}::integer[])`;
  const found = await selectEntities(ctx, entity, where ? sql`${condition} and ${where}` : condition, true);
  return inOrder(found, 'pk', pks);
}

/** For each of these keys the entity that has it as this property; null where there is none. */
export function inOrder<T, P extends keyof T>(found: readonly T[], property: P, keys: readonly T[P][]): (T | null)[] {
  const known = new Map(found.map((one) => [one[property], one]));
  return keys.map((key) => known.get(key) ?? null);
}
