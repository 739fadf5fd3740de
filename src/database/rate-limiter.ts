import { PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import type { EntityManager } from '@mikro-orm/postgresql';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { execute } from './sql.ts';

/** What is counted, in which table, and how much of it for how long. */
export interface Limit {
  table: string;
  keyPrefix: string;
  points: number;
  /** Seconds. */
  duration: number;
}

/** A row of a limiter's table: how much was counted for a key, and until when that counts. */
export abstract class LimiterRow {
  @PrimaryKey({ columnType: 'varchar(255)', type: 'string' })
  key!: string;

  @Property({ type: 'integer' })
  points!: number;

  /** Milliseconds since 1970. */
  @Property({ columnType: 'bigint', type: 'string', nullable: true })
  expire!: string | null;
}

/** A limiter that counts in the database, where all instances see it, in a table of `LimiterRow`s. */
export function openLimiter(em: EntityManager, { table, keyPrefix, points, duration }: Limit): RateLimiterPostgres {
  return new RateLimiterPostgres({
    storeClient: unnamed(em),
    storeType: 'client',
    tableName: table,
    tableCreated: true,
    clearExpiredByTimeout: false,
    keyPrefix,
    points,
    duration,
  });
}

// The library names its statements, which connections to the embedded database would take from each other.
function unnamed(em: EntityManager) {
  // It outlives the request that was the first to need it.
  const own = em.fork({ signal: new AbortController().signal, inflightQueryAbortStrategy: 'ignore query' });
  return {
    async query({ text, values }: { text: string; values: unknown[] }) {
      const { rows, affected } = await execute(own, { text, values });
      return { rows, rowCount: affected || rows.length };
    },
  };
}
