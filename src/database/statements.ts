import type { ClientConfig, Pool, PoolClient } from 'pg';
import type { Logger } from 'pino';
import type { Cell, Statement, Statements } from './sql.ts';
import { onAbort, type Abortable } from '../core/abort.ts';
import { withRetries } from './retry.ts';
import { databaseChannel } from '../core/tracing-channels.ts';
import { KeyedLimit } from '../core/keyed-limit.ts';
import { RawQuery } from './raw-query.ts';
import { cancel, cancelUntilEnded } from './cancel-request.ts';
import { isLost, isOutdated, PipelinedConnection } from './pipelined-connection.ts';
import { PreparedNames } from './prepared-names.ts';

/** Maximum number of connections of the pool that one request uses at a time. */
const MAX_PER_REQUEST = 2;

/** Capabilities of a database. */
export interface Capabilities {
  /** Named statements stay prepared on a connection. */
  prepares: boolean;
  /** Number of pipelined connections, which run the prepared reads. */
  pipelineConnections: number;
}

/** Single statements, and the lifecycle of their pipelined connections. */
export interface OpenStatements extends Statements {
  /** Reopens the pipelined connections. */
  renew(): void;
  close(): Promise<void>;
}

/** Runs single statements on the pool, and prepared reads on pipelined connections if possible. */
export function openStatements(
  pool: Pool,
  config: ClientConfig,
  { prepares, pipelineConnections: shared }: Capabilities,
  log: Logger,
): OpenStatements {
  const names = new PreparedNames();
  const requestLimit = new KeyedLimit(MAX_PER_REQUEST);
  const pipelines = Array.from(
    { length: shared },
    () => new PipelinedConnection(config, log, cancel),
  );
  let index = 0;

  const createQuery = ({ text, values }: Statement, prepared: boolean): RawQuery =>
    new RawQuery(text, values, prepared && prepares ? names.of(text) : undefined, names);
  const onPool = (
    statement: Statement,
    prepared: boolean,
    isRead: boolean,
    request?: Abortable,
  ): Promise<Cell[][]> => {
    if (!request) return onPoolUnlimited(statement, prepared, isRead);
    return requestLimit.run(request.parent ?? request, () =>
      onPoolUnlimited(statement, prepared, isRead, request),
    );
  };
  const onPoolUnlimited = async (
    statement: Statement,
    prepared: boolean,
    isRead: boolean,
    request?: Abortable,
  ): Promise<Cell[][]> => {
    const first = createQuery(statement, prepared);
    try {
      return await run(pool, first, request);
    } catch (error) {
      // A read can be retried on another connection.
      if (isRead && isLost(error)) return run(pool, createQuery(statement, prepared), request);
      if (!isOutdated(error)) throw error;
      // Under a new name, each connection prepares it again.
      if (first.name !== undefined) names.release(first.name);
      return run(pool, createQuery(statement, prepared), request);
    }
  };

  const read: Statements['read'] = (statement, prepared = false, request) => {
    const pipelined = prepared ? pipelines[(index = (index + 1) % pipelines.length)] : undefined;
    return (
      pipelined?.run(createQuery(statement, prepared), () =>
        onPool(statement, prepared, true, request),
      ) ?? onPool(statement, prepared, true, request)
    );
  };

  return {
    commits: 0,
    read: (statement, prepared, request) =>
      databaseChannel.tracePromise(() => read(statement, prepared, request), {
        kind: 'read',
        text: statement.text,
      }),
    async write(statement, request) {
      const write = () => withRetries(() => onPool(statement, true, false, request));
      const rows = await databaseChannel.tracePromise(write, {
        kind: 'write',
        text: statement.text,
      });
      this.commits++;
      return rows;
    },
    renew: () => pipelines.forEach((pipelined) => pipelined.renew()),
    close: async () => void (await Promise.all(pipelines.map((pipelined) => pipelined.close()))),
  };
}

// The pool's own `query` would close the connection, with its prepared statements, after any error.
// This function closes lost connections only.
async function run(pool: Pool, statement: RawQuery, request?: Abortable): Promise<Cell[][]> {
  const signal = request?.signal;
  signal?.throwIfAborted();
  const client = await pool.connect();
  if (signal?.aborted) client.release();
  signal?.throwIfAborted();
  request?.begin?.();
  return new Promise((done, fail) => {
    let ended: AbortController | undefined;
    let cancelled: Promise<void> | undefined;
    const abort = () => {
      fail(signal?.reason);
      ended = new AbortController();
      cancelled = cancelUntilEnded(client, ended.signal);
    };
    statement.callback = (error, rows) => {
      signal?.removeEventListener('abort', abort);
      ended?.abort();
      if (cancelled && !isLost(error)) void releaseAfter(cancelled, client);
      else client.release(isLost(error));
      if (error) fail(error);
      else done(rows);
    };
    onAbort(signal, abort);
    try {
      client.query(statement);
    } catch (error) {
      // The end of the connection would call the callback.
      statement.callback = () => undefined;
      signal?.removeEventListener('abort', abort);
      client.release(true);
      fail(error);
    }
  });
}

async function releaseAfter(cancelled: Promise<void>, client: PoolClient): Promise<void> {
  await cancelled;
  client.release();
}
