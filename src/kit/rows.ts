import type { EntityManager } from '@mikro-orm/postgresql';
import { sql, type RawBuilder } from 'kysely';

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
