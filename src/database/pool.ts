import { setTimeout } from 'node:timers/promises';
import { PostgresDialect, type PostgresClientConstructor, type PostgresPoolClient } from 'kysely';
import pg, { type PoolClient, type PoolConfig, type QueryResult } from 'pg';
import { databaseChannel, type DatabaseCall } from '../core/tracing-channels.ts';
import { Connection } from './connection.ts';
import { preparedWrites, readTime, type Row } from './sql.ts';

/** Maximum time for a statement from before an outage to end after it, in ms. */
const BUSY_TIMEOUT_MS = 2_000;
/** Maximum time for the holder of a lost connection to release it, in ms. */
const RELEASE_TIMEOUT_MS = 100;
/** Maximum time to wait until all connections are closed, in ms. */
const CLOSE_TIMEOUT_MS = 1_000;
/** Delay before a cancel request is repeated, in ms, and the maximum number of requests. */
const CANCEL_RETRY_MS = 100;
const MAX_CANCELS = 50;

// Types of entities: bigint within JavaScript's integers, and times.
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
types.setTypeParser(pg.types.builtins.TIMESTAMPTZ, readTime);

type Client = PoolClient & Connection;
type Result = Pick<QueryResult<Row>, 'rows' | 'rowCount'>;

/** A connection of the pool in use, as Kysely takes it. Runs one statement at a time. */
export class Lease implements PostgresPoolClient {
  readonly processID: number;
  /** Resolves when the running statement has ended. */
  private running: Promise<unknown> | undefined;
  private cancelled: Promise<unknown> | undefined;
  private isReleased = false;
  /** Whether the last text failed and may have begun a transaction. */
  private isUncertain = false;

  constructor(
    private readonly client: Client,
    private readonly canPrepare: boolean,
    private readonly kind: DatabaseCall['kind'],
    private readonly onRelease: () => void,
  ) {
    this.processID = client.processID ?? 0;
  }

  /** Waits for the end of a cancelled statement, such as a ROLLBACK after it. */
  readonly query = ((text: string, values: readonly unknown[]) =>
    databaseChannel.tracePromise(() => this.execute(text, values), {
      kind: this.kind,
      text: withoutValues(text, values),
    })) as PostgresPoolClient['query'];

  private async execute(text: string, values: readonly unknown[]): Promise<Result> {
    if (this.cancelled) await this.cancelled;
    this.cancelled = undefined;
    const name = this.canPrepare ? preparedWrites.get(text) : undefined;
    const statement: Promise<Result | Result[]> = this.client.query({
      text,
      values: [...values],
      ...(name !== undefined && { name }),
    });
    this.running = Promise.allSettled([statement]);
    try {
      const result = await statement;
      this.isUncertain = false;
      // For several statements in one text, the driver returns a list of results.
      return Array.isArray(result)
        ? { rowCount: null, ...result.at(-1), rows: result.flatMap(({ rows }) => rows) }
        : result;
    } catch (error) {
      // The caller has reported the abort, and Kysely would print this error.
      if (this.cancelled) return { rows: [], rowCount: 0 };
      // Without values, it may be several statements: pg-boss begins and commits in one text.
      this.isUncertain = values.length === 0;
      throw error;
    } finally {
      this.running = undefined;
    }
  }

  /**
   * Cancels the running statement. Repeats the request until the statement has ended, because a
   * request that arrives before the statement does nothing. Resolves when the statement has ended
   * and no request is pending: until then nothing else may run on this connection.
   */
  cancel(): Promise<void> {
    const { running } = this;
    const cancel = async () => {
      for (let count = 0; count < MAX_CANCELS && running === this.running; count++) {
        await this.client.cancel();
        await Promise.race([running, setTimeout(CANCEL_RETRY_MS, undefined, { ref: false })]);
      }
      await running;
    };
    return running ? (this.cancelled = cancel()) : Promise.resolve();
  }

  /** Returns the connection to the pool, which closes a lost one. */
  release(isBroken = false): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.onRelease();
    this.client.release(isBroken || this.isUncertain);
  }
}

/** Connections to one server. */
export class ConnectionPool {
  private readonly pool: pg.Pool;
  /** Open connections, those in use each with its lease. */
  private readonly leases = new Map<Client, Lease | undefined>();
  private movedAt = 0;

  constructor(
    config: PoolConfig,
    /** Whether a prepared statement stays on its connection, unlike behind a pooler. */
    readonly canPrepare = true,
  ) {
    this.pool = new pg.Pool({ ...config, types, Client: Connection });
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => {
      this.leases.set(client as Client, undefined);
      client.once('end', () => this.onLost(client as Client));
    });
    this.pool.on('remove', (client) => void this.leases.delete(client as Client));
  }

  /** Options of the connections. */
  get options(): PoolConfig {
    return this.pool.options;
  }

  /** The number of open connections, of idle ones, and of statements that wait for one. */
  get counts(): { open: number; idle: number; waiting: number } {
    const { totalCount: open, idleCount: idle, waitingCount: waiting } = this.pool;
    return { open, idle, waiting };
  }

  /** Returns a connection. */
  async acquire(kind: DatabaseCall['kind'] = 'statement'): Promise<Lease> {
    const client = (await this.pool.connect()) as Client;
    // The connection to the previous server was being opened during the move.
    if (client.createdAt < this.movedAt) {
      client.release(true);
      return this.acquire(kind);
    }
    const onRelease = () => this.leases.has(client) && this.leases.set(client, undefined);
    const lease = new Lease(client, this.canPrepare, kind, onRelease);
    this.leases.set(client, lease);
    return lease;
  }

  /** Returns the pool as Kysely, and with it the ORM, takes it. Its statements are of this kind. */
  dialect(kind?: DatabaseCall['kind']): PostgresDialect {
    const { leases } = this;
    // Kysely's own control client would log in, and would cancel another statement behind a pooler.
    class ControlClient {
      connect = async () => this;
      end = () => undefined;
      /** Runs `select pg_cancel_backend(<processID>)`. */
      async query(text: string): Promise<void> {
        // PgBouncer's are negative, too.
        const processID = Number(/-?\d+/.exec(text)?.[0]);
        await [...leases.values()].find((lease) => lease?.processID === processID)?.cancel();
      }
    }
    return new PostgresDialect({
      pool: { connect: () => this.acquire(kind), end: async () => undefined, options: {} },
      controlClient: ControlClient as unknown as PostgresClientConstructor,
    });
  }

  /**
   * Closes the connections from before an outage, because their peer may be gone without notice:
   * idle ones at once, and those in use 2 s later, or at once if the database has moved.
   */
  async renew(hasMoved = false): Promise<void> {
    if (hasMoved) this.movedAt = performance.now();
    const before = [...this.leases];
    for (const [client, lease] of before) if (!lease) client.destroy();
    if (!hasMoved) await setTimeout(BUSY_TIMEOUT_MS, undefined, { ref: false });
    for (const [client, lease] of before)
      if (lease && this.leases.get(client) === lease) client.destroy();
  }

  /** Resolves when the connections are closed. Those to an unresponsive server do not close. */
  async close(): Promise<void> {
    await Promise.race([this.pool.end(), setTimeout(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
  }

  // The ORM forgets a connection whose BEGIN or ROLLBACK fails.
  private async onLost(client: Client): Promise<void> {
    const lease = this.leases.get(client);
    await setTimeout(RELEASE_TIMEOUT_MS, undefined, { ref: false });
    lease?.release(true);
  }
}

// Without parameters, the ORM has written values into the text.
function withoutValues(text: string, values: readonly unknown[]): string {
  return values.length > 0 ? text : (/^\w+(?: into| from)?(?: "\w+")?/.exec(text)?.[0] ?? '');
}
