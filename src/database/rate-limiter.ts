import { Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import type { EntityManager } from '@mikro-orm/postgresql';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { runStatement } from './kysely.ts';
import type { Statement } from './sql.ts';

/** A row of a limiter's table: the points of a key, and when they expire. */
export abstract class RateLimiterRow {
  @PrimaryKey({ columnType: 'varchar(255)', type: 'string' })
  key!: string;

  @Property({ type: 'integer' })
  points!: number;

  /** Milliseconds since 1970. */
  @Index()
  @Property({ columnType: 'bigint', type: 'string', nullable: true })
  expire!: string | null;
}

/**
 * Creates a limiter that counts in a table of `RateLimiterRow`s, shared by all instances. `points`
 * is the maximum number per key and `duration`, in seconds.
 */
export function createRateLimiter(
  em: EntityManager,
  limit: Record<'tableName' | 'keyPrefix', string> & Record<'points' | 'duration', number>,
): RateLimiterPostgres {
  // The limiter outlives the request and the transaction that create it.
  const unit = { em: em.fork() };
  // Without names, which the library gives its statements: a pooler may run each on another
  // connection.
  const query = async ({ text, values }: Statement) => {
    const { rows, numAffectedRows } = await runStatement(unit, { text, values });
    return { rows, rowCount: Number(numAffectedRows ?? rows.length) };
  };
  return new RateLimiterPostgres({
    storeClient: { query },
    storeType: 'client',
    tableCreated: true,
    clearExpiredByTimeout: false,
    ...limit,
  });
}
