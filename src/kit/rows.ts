import type { EntityManager } from '@mikro-orm/postgresql';
import { sql, type RawBuilder } from 'kysely';
import { readPk } from './pk.ts';

/** Primary keys start at 1. */
const NO_PK = 0;

type EntityClass<T> = new () => T;

/** The columns of an entity for a SELECT, each under its property's name. Lazy properties are left out. */
export function columnsOf<T extends object>(em: EntityManager, entity: EntityClass<T>, table: string): RawBuilder<unknown> {
  const columns = em
    .getMetadata(entity)
    .props.filter((prop) => prop.lazy !== true)
    .map((prop) => sql`${sql.ref(`${table}.${prop.fieldNames[0]}`)} as ${sql.id(prop.name)}`);
  return sql.join(columns);
}

/** An entity made from a row of `columnsOf`: to read, not to change, for no unit of work knows it. */
export function entityOf<T extends object>(em: EntityManager, entity: EntityClass<T>, row: Record<string, unknown>): T {
  const made = new entity();
  for (const prop of em.getMetadata(entity).props) {
    const value = row[prop.name];
    if (value === undefined) continue;
    // The driver hands timestamps over as text.
    Reflect.set(made, prop.name, prop.runtimeType === 'Date' && typeof value === 'string' ? new Date(value) : value);
  }
  return made;
}

/** The entities of this class that meet the condition, in one statement and without a unit of work. */
export async function selectEntities<T extends object>(
  em: EntityManager,
  entity: EntityClass<T>,
  where: RawBuilder<unknown>,
): Promise<T[]> {
  const { tableName } = em.getMetadata(entity);
  const { rows } = await sql<Record<string, unknown>>`
    select ${columnsOf(em, entity, tableName)} from ${sql.table(tableName)} where ${where}`.execute(em.getKysely());
  return rows.map((row) => entityOf(em, entity, row));
}

/**
 * The entities of these primary keys, in the order of the keys, in one statement; null where there is none that meets the
 * condition, and where the text is no primary key.
 */
export async function selectByPks<T extends { pk: number }>(
  em: EntityManager,
  entity: EntityClass<T>,
  keys: readonly (string | number)[],
  where: RawBuilder<unknown> = sql`true`,
): Promise<(T | null)[]> {
  const pks = keys.map((key) => readPk(String(key)) ?? NO_PK);
  const found = await selectEntities(em, entity, sql`pk = any(${pks}::integer[]) and ${where}`);
  const byPk = new Map(found.map((row) => [row.pk, row]));
  return pks.map((pk) => byPk.get(pk) ?? null);
}
