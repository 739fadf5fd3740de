import { Client, type ClientConfig, type Pool, type QueryArrayConfig } from 'pg';
import type { Logger } from 'pino';
import type { Cell, Sql, Statements } from '../kit/sql.ts';

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

// Every value stays as PostgreSQL writes it: most of them go straight into an answer.
const asText = { getTypeParser: () => (text: string) => text };

/** Opens what runs single statements: on the pool, and where they are hot, on connections that they share. */
export function openStatements(pool: Pool, config: ClientConfig, { prepares, shared }: Abilities, log: Logger): OpenStatements {
  const names = new Map<string, string>();
  const lanes = Array.from({ length: shared }, () => new Lane(config, log));
  let turn = 0;

  const query = ({ text, values }: Sql, prepared: boolean): QueryArrayConfig => {
    const name = prepared && prepares ? nameOf(text) : undefined;
    return { text, values, rowMode: 'array', types: asText, ...(name !== undefined && { name }) };
  };
  const nameOf = (text: string): string | undefined => {
    const known = names.get(text);
    if (known !== undefined || names.size >= MAX_PREPARED) return known;
    const name = `s${names.size}`;
    names.set(text, name);
    return name;
  };

  return {
    commits: 0,
    async read(statement, hot = false) {
      const asked = query(statement, hot);
      const lane = hot ? lanes[(turn = (turn + 1) % lanes.length)] : undefined;
      return (await (lane?.query(asked) ?? pool.query<Cell[]>(asked))).rows;
    },
    async write(statement) {
      const { rows } = await pool.query<Cell[]>(query(statement, true));
      this.commits++;
      return rows;
    },
    close: async () => void (await Promise.all(lanes.map((lane) => lane.close()))),
  };
}

/** A connection that many statements share. It is opened when it is needed and opened anew when it was lost. */
class Lane {
  private client: Client | undefined;
  private opening: Promise<void> | undefined;
  private closed = false;
  private notBefore = 0;
  private waiting = 0;

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
  ) {}

  /** The statement's answer, or undefined where this connection cannot take it. */
  query(asked: QueryArrayConfig): Promise<{ rows: Cell[][] }> | undefined {
    const { client } = this;
    if (!client) {
      if (!this.opening && !this.closed && Date.now() >= this.notBefore) this.opening = this.open();
      return undefined;
    }
    if (this.waiting >= MAX_WAITING) return undefined;
    this.waiting++;
    return client.query<Cell[]>(asked).finally(() => this.waiting--);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.opening;
    await this.client?.end();
  }

  private async open(): Promise<void> {
    const client = new Client({ ...this.config, pipeline: true });
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
      this.waiting = 0;
    } catch {
      // The pool meets the same trouble, and says so.
      lost();
    } finally {
      this.opening = undefined;
    }
  }
}
