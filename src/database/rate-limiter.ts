import { PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import type { EntityManager } from '@mikro-orm/postgresql';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { execute } from './sql.ts';

/** Maximum number of points per key and duration, and the table that counts them. */
export interface Limit {
  table: string;
  keyPrefix: string;
  points: number;
  /** In seconds. */
  duration: number;
}

/** A row of a limiter's table: the points of a key, and when they expire. */
export abstract class RateLimiterRow {
  @PrimaryKey({ columnType: 'varchar(255)', type: 'string' })
  key!: string;

  @Property({ type: 'integer' })
  points!: number;

  /** Milliseconds since 1970. */
  @Property({ columnType: 'bigint', type: 'string', nullable: true })
  expire!: string | null;
}

/** Creates a limiter that counts in a table of `RateLimiterRow`s, shared by all instances. */
export function createRateLimiter(
  em: EntityManager,
  { table, keyPrefix, points, duration }: Limit,
): RateLimiterPostgres {
  return new RateLimiterPostgres({
    storeClient: withoutNames(em),
    storeType: 'client',
    tableName: table,
    tableCreated: true,
    clearExpiredByTimeout: false,
    keyPrefix,
    points,
    duration,
  });
}

// The library names its statements, and a pooler may run each on another connection.
function withoutNames(em: EntityManager) {
  // The limiter outlives the request that creates it.
  const unit = em.fork({
    signal: new AbortController().signal,
    inflightQueryAbortStrategy: 'ignore query',
  });
  return {
    async query({ text, values }: { text: string; values: unknown[] }) {
      const { rows, affected } = await execute(unit, { text, values });
      return { rows, rowCount: affected || rows.length };
    },
  };
}
