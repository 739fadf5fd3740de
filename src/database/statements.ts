import { Socket } from 'node:net';
import { Client, type ClientConfig, type Pool } from 'pg';
import type { Logger } from 'pino';
import type { Cell, Sql, Statements } from '../kit/sql.ts';
import { Asked } from './asked.ts';

/** How many different statements are prepared at most: each costs memory on every connection. */
const MAX_PREPARED = 500;
/** How many statements may wait on a shared connection before others go to the pool. */
const MAX_WAITING = 100;
/** How long to wait before a lost connection is opened anew, in ms. */
const REOPEN_MS = 1_000;

/** What a database can do for its statements. */
export interface Abilities {
  /** Named statements stay prepared on a connection. */
  prepares: boolean;
  /** How many connections the hot statements share; on each, one is sent while others are still on their way. */
  shared: number;
}

/** Statements that run by themselves, on the pool, and their connections' end. */
export interface OpenStatements extends Statements {
  close(): Promise<void>;
}

/** Opens what runs single statements: on the pool, and where they are hot, on connections that they share. */
export function openStatements(pool: Pool, config: ClientConfig, { prepares, shared }: Abilities, log: Logger): OpenStatements {
  const names = new Map<string, string>();
  const lanes = Array.from({ length: shared }, () => new Lane(config, log));
  let turn = 0;

  const asked = ({ text, values }: Sql, prepared: boolean): Asked => new Asked(text, values, prepared && prepares ? nameOf(text) : undefined);
  const nameOf = (text: string): string | undefined => {
    const known = names.get(text);
    if (known !== undefined || names.size >= MAX_PREPARED) return known;
    const name = `s${names.size}`;
    names.set(text, name);
    return name;
  };

  // What the pool answers is what the statement calls back with, which its types do not tell.
  const onPool = (statement: Asked) => pool.query(statement) as unknown as Promise<Cell[][]>;

  return {
    commits: 0,
    read(statement, hot = false) {
      const lane = hot ? lanes[(turn = (turn + 1) % lanes.length)] : undefined;
      const made = asked(statement, hot);
      return lane?.run(made) ?? onPool(made);
    },
    async write(statement) {
      const rows = await onPool(asked(statement, true));
      this.commits++;
      return rows;
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  };
}

/** A connection that many statements share. It is opened when it is needed and opened anew when it was lost. */
class Lane {
  private client: Client | undefined;
  private socket: Socket | undefined;
  private gathering = false;
  private opening: Promise<void> | undefined;
  private closed = false;
  private notBefore = 0;
  private waiting = 0;

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
  ) {}

  /** The statement's rows, or undefined where this connection cannot take it. */
  run(statement: Asked): Promise<Cell[][]> | undefined {
    const { client } = this;
    if (!client) {
      if (!this.opening && !this.closed && Date.now() >= this.notBefore) this.opening = this.open();
      return undefined;
    }
    if (this.waiting >= MAX_WAITING) return undefined;
    this.waiting++;
    this.gather();
    return new Promise((done, fail) => {
      statement.callback = (error, rows) => {
        this.waiting--;
        if (error) fail(error);
        else done(rows);
      };
      client.query(statement);
    });
  }

  // What the requests of one turn of the event loop ask is sent in one piece.
  private gather(): void {
    const { socket } = this;
    if (this.gathering || !socket) return;
    this.gathering = true;
    socket.cork();
    setImmediate(() => {
      this.gathering = false;
      socket.uncork();
    });
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.opening;
    await this.client?.end();
  }

  private async open(): Promise<void> {
    const socket = new Socket();
    const client = new Client({ ...this.config, pipeline: true, stream: () => socket });
    const lost = () => {
      if (this.client === client) this.client = undefined;
      this.notBefore = Date.now() + REOPEN_MS;
    };
    client.on('error', (error) => {
      lost();
      this.log.warn({ err: error }, 'a shared connection to the database was lost');
    });
    client.on('end', lost);
    try {
      await client.connect();
      this.client = client;
      this.socket = socket;
      this.waiting = 0;
    } catch {
      // The pool meets the same trouble, and says so.
      lost();
    } finally {
      this.opening = undefined;
    }
  }
}
