import type { ClientConfig, Pool, PoolClient } from 'pg';
import type { Logger } from 'pino';
import type { Abortable, Cell, Statement, Statements } from './sql.ts';
import { retried } from './retry.ts';
import { asking } from '../core/tracing-channels.ts';
import { Turns } from '../core/keyed-limit.ts';
import { Asked } from './raw-query.ts';
import { cancel, cancelUntilEnded } from './cancel-request.ts';
import { isLost, isOutdated, Lane } from './pipelined-connection.ts';
import { PreparedNames } from './prepared-names.ts';

/** Connections of the pool that one request uses at a time: the rest is for others. */
const MAX_OF_REQUEST = 2;

/** What a database can do for its statements. */
export interface Abilities {
  /** Named statements stay prepared on a connection. */
  prepares: boolean;
  /** A statement can be cancelled while it runs. */
  cancels: boolean;
  /** How many connections the hot statements share; on each, one is sent while others are still on their way. */
  shared: number;
}

/** Statements that run by themselves, on the pool, and their connections' end. */
export interface OpenStatements extends Statements {
  /** Has the shared connections opened anew. */
  renew(): void;
  close(): Promise<void>;
}

/** Opens what runs single statements: on the pool, and where they are hot, on connections that they share. */
export function openStatements(pool: Pool, config: ClientConfig, { prepares, shared, cancels }: Abilities, log: Logger): OpenStatements {
  const names = new PreparedNames();
  const turns = new Turns(MAX_OF_REQUEST);
  const lanes = Array.from({ length: shared }, () => new Lane(config, log, cancel));
  let turn = 0;

  const asked = ({ text, values }: Statement, prepared: boolean): Asked =>
    new Asked(text, values, prepared && prepares ? names.of(text) : undefined, names);
  const onPool = (statement: Statement, prepared: boolean, isRead: boolean, request?: Abortable): Promise<Cell[][]> => {
    if (!request) return onFreePool(statement, prepared, isRead);
    return turns.run(request.whole ?? request, () => onFreePool(statement, prepared, isRead, request));
  };
  const onFreePool = async (statement: Statement, prepared: boolean, isRead: boolean, request?: Abortable): Promise<Cell[][]> => {
    const first = asked(statement, prepared);
    try {
      return await run(pool, first, request, cancels);
    } catch (error) {
      // What has changed nothing may be asked once more elsewhere.
      if (isRead && isLost(error)) return run(pool, asked(statement, prepared), request, cancels);
      if (!isOutdated(error)) throw error;
      // Under a new name, it is prepared anew wherever it is asked.
      if (first.name !== undefined) names.giveUp(first.name);
      return run(pool, asked(statement, prepared), request, cancels);
    }
  };

  const read: Statements['read'] = (statement, hot = false, request) => {
    const lane = hot ? lanes[(turn = (turn + 1) % lanes.length)] : undefined;
    return lane?.run(asked(statement, hot), () => onPool(statement, hot, true, request)) ?? onPool(statement, hot, true, request);
  };

  return {
    commits: 0,
    read: (statement, hot, request) => asking.tracePromise(() => read(statement, hot, request), { kind: 'read', text: statement.text }),
    async write(statement, request) {
      const write = () => retried(() => onPool(statement, true, false, request));
      const rows = await asking.tracePromise(write, { kind: 'write', text: statement.text });
      this.commits++;
      return rows;
    },
    renew: () => lanes.forEach((lane) => lane.renew()),
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  };
}

// The pool's own `query` would close the connection after any error, and with it all that is prepared there: here only one that is lost.
async function run(pool: Pool, statement: Asked, request: Abortable | undefined, cancels: boolean): Promise<Cell[][]> {
  if (request?.isGivenUp) throw new AbortError();
  const client = await pool.connect();
  if (request?.isGivenUp) {
    client.release();
    throw new AbortError();
  }
  request?.begin?.();
  return new Promise((done, fail) => {
    let ended: AbortController | undefined;
    let cancelled: Promise<void> | undefined;
    const abort = () => {
      fail(new AbortError());
      if (!cancels) return;
      ended = new AbortController();
      cancelled = cancelUntilEnded(client, ended.signal);
    };
    statement.callback = (error, rows) => {
      request?.offGiveUp(abort);
      ended?.abort();
      if (cancelled && !isLost(error)) void releaseAfter(cancelled, client);
      else client.release(isLost(error));
      if (error) fail(error);
      else done(rows);
    };
    request?.onGiveUp(abort);
    try {
      client.query(statement);
    } catch (error) {
      // The connection's end would call it.
      statement.callback = () => undefined;
      request?.offGiveUp(abort);
      client.release(true);
      fail(error);
    }
  });
}

async function releaseAfter(cancelled: Promise<void>, client: PoolClient): Promise<void> {
  await cancelled;
  client.release();
}

/** Nobody waits for the statement any longer. */
class AbortError extends Error {
  override readonly name = 'AbortError';
}
