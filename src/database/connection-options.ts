import type { ClientConfig } from 'pg';
import type { Config } from '../core/config.ts';
import type { Abilities } from './statements.ts';

/** Tells a peer that has gone from one that has nothing to say, where nothing else does. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 } as const;

/** How a PostgreSQL server at this URL is reached. */
export function reachedAt(config: Config, connectionString: string): ClientConfig {
  return {
    ...KEEP_ALIVE,
    connectionString,
    application_name: 'shopfront',
    // A pooler lends connections that were opened before, and refuses who asks for more when opening one.
    ...(config.pooler === 'none' && { statement_timeout: config.statementTimeoutMs }),
  };
}

/** What can be done on connections to a PostgreSQL server. Behind a pooler, each statement may come to another one; it passes on whom to cancel. */
export function abilitiesOf({ pooler, preparedStatements, sharedConnections }: Config): Abilities {
  if (pooler === 'transaction') return { prepares: false, shared: 0, cancels: true };
  return { prepares: preparedStatements, shared: sharedConnections, cancels: true };
}
