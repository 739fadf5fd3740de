import type { ClientConfig } from 'pg';
import type { Config } from '../core/config.ts';
import type { Capabilities } from './statements.ts';

/** Detects a peer that is gone on an idle connection. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;

/** Returns the connection options for the PostgreSQL server at this URL. */
export function connectionOptions(config: Config, connectionString: string): ClientConfig {
  return {
    ...KEEP_ALIVE,
    connectionString,
    application_name: 'shopfront',
    // A pooler shares existing connections and rejects connections with further parameters.
    ...(config.databasePooler === 'none' && {
      statement_timeout: config.databaseStatementTimeoutMs,
      // Compilation takes 50 ms, and no statement runs long enough to save that.
      options: '-c jit=off',
    }),
  };
}

/**
 * Returns the capabilities of a PostgreSQL server. A pooler may run each statement on another
 * connection.
 */
export function capabilitiesOf({
  databasePooler,
  databasePipelineConnections,
}: Config): Capabilities {
  return {
    prepares: databasePooler !== 'transaction-unprepared',
    pipelineConnections: databasePooler === 'none' ? databasePipelineConnections : 0,
  };
}
