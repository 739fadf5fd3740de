import type { ClientBase, ClientConfig, Pool } from 'pg';
import type { Logger } from 'pino';
import type { Abortable, Cell, Statement, Statements } from '../kit/sql.ts';
import { retried } from '../kit/retry.ts';
import { asking } from '../kit/timings.ts';
import { Asked } from './asked.ts';
import { Control } from './control.ts';
import { isLost, isOutdated, Lane } from './lane.ts';

/** How many different statements are prepared at most: each costs memory on every connection. */
const MAX_PREPARED = 500;
/** So many of them are no pages. Pages have their limit in their text, and columns in the order that was asked for: anyone can ask for very many. */
const MIN_OTHERS = 250;
const PAGE = /\blimit \d+$/;

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
export function openStatements(
  pool: Pool,
  config: ClientConfig,
  { prepares, shared, cancels }: Abilities,
  log: Logger,
  isAnswering: () => boolean = () => true,
): OpenStatements {
  const names = new Map<string, string>();
  const control = new Control(isAnswering);
  const lanes = Array.from({ length: shared }, () => new Lane(config, log, (client) => control.cancel(client)));
  let turn = 0;
  let named = 0;

  const asked = ({ text, values }: Statement, prepared: boolean): Asked =>
    new Asked(text, values, prepared && prepares ? nameOf(text) : undefined);
  const nameOf = (text: string): string | undefined => {
    const known = names.get(text);
    if (known !== undefined || names.size >= MAX_PREPARED - (PAGE.test(text) ? MIN_OTHERS : 0)) return known;
    const name = `s${(named += 1)}`;
    names.set(text, name);
    return name;
  };
  const cancel: Cancel = (client, isRunning) => void (cancels && control.cancelUntilDone(client, isRunning));
  const onPool = async (statement: Statement, prepared: boolean, isRead: boolean, request?: Abortable): Promise<Cell[][]> => {
    const first = asked(statement, prepared);
    try {
      return await run(pool, first, request, cancel);
    } catch (error) {
      // What has changed nothing may be asked once more elsewhere.
      if (isRead && isLost(error)) return run(pool, asked(statement, prepared), request, cancel);
      if (!isOutdated(error)) throw error;
      // Under a new name, it is prepared anew wherever it is asked.
      if (names.get(statement.text) === first.name) names.delete(statement.text);
      return run(pool, asked(statement, prepared), request, cancel);
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
async function run(pool: Pool, statement: Asked, request: Abortable | undefined, cancel: Cancel): Promise<Cell[][]> {
  const client = await pool.connect();
  if (request?.isGivenUp) {
    client.release();
    throw new AbortError();
  }
  let isRunning = true;
  return new Promise((done, fail) => {
    const abort = () => {
      fail(new AbortError());
      // The statement's own end gives the connection back, whenever that comes.
      cancel(client, () => isRunning);
    };
    statement.callback = (error, rows) => {
      isRunning = false;
      request?.offGiveUp(abort);
      client.release(isLost(error));
      if (error) fail(error);
      else done(rows);
    };
    request?.onGiveUp(abort);
    client.query(statement);
  });
}

/** Cancels what runs on this connection, if it still does by then. */
type Cancel = (client: ClientBase, isRunning: () => boolean) => void;

/** Nobody waits for the statement any longer. */
class AbortError extends Error {
  override readonly name = 'AbortError';
}
