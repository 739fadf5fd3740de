import { callbackify } from 'node:util';
import pg, { type ClientBase, type ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { Cell, Statement, Statements } from './sql.ts';
import type { Abortable } from '../core/abort.ts';
import { isAcquireTimeout, destroyConnection } from './pool-repair.ts';
import { openStatements, type Capabilities, type OpenStatements } from './statements.ts';

/** Time without a failure before a failed replica is used again, in ms. */
const RECOVERY_MS = 2_000;
/** Maximum time for a replica to report its position, in ms. */
const TIMEOUT_MS = 1_500;
// Errors that another server need not have (PostgreSQL, appendix A): connection, resources,
// shutdown, a row that is cleaned up while it is read, a table that is not replicated yet.
const REPLICA_ERRORS = /^(08...|53...|57P0.|40001|40P01|25006|42P01|42703)$/;
/** PostgreSQL, appendix A. */
const CONNECTION_EXCEPTION = '08000';
/** Identifies a server until it restarts. */
const SERVER = 'pg_postmaster_start_time()::text';
// `pg_wal_lsn_diff` converts a position in the log to a number.
const POSITION = `select pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0'), ${SERVER}`;

/** A position in the primary's log that includes all commits before `at` (performance.now). */
export interface LagSample {
  at: number;
  position: number;
}

/** Connection, capabilities and maximum lag of a replica. */
interface ReplicaOptions {
  config: ClientConfig & { max: number };
  capabilities: Capabilities;
  maxLagMs: number;
}

/**
 * A read replica, used while its lag is at most `maxLagMs`. A read that fails for reasons of the
 * replica runs on the primary.
 */
export class Replica implements Statements {
  /** A replica commits nothing. */
  readonly commits = 0;
  private readonly pool: pg.Pool;
  private readonly statements: OpenStatements;
  private readonly clients = new Set<ClientBase>();
  /** Functions that move a running read to the primary. */
  private readonly failovers = new Set<() => void>();
  private monitor: pg.Client | undefined;
  /** The server whose lag is known. */
  private server: string | undefined;
  /** The replica has all commits before this time. */
  private asOf = -Infinity;
  private notBefore = 0;
  private wasUsable = false;

  constructor(
    /** Name in logs and metrics. */
    readonly name: string,
    private readonly options: ReplicaOptions,
    private readonly primary: Statements,
    private readonly log: Logger,
  ) {
    const verify = (client: ClientBase) => this.requireSameServer(client);
    this.pool = new pg.Pool({
      ...options.config,
      connectionTimeoutMillis: TIMEOUT_MS,
      verify: callbackify(verify),
    });
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => {
      this.clients.add(client);
      // The pool ignores errors of a client in use.
      client.on('error', () => undefined);
    });
    this.pool.on('remove', (client) => this.clients.delete(client));
    this.statements = openStatements(this.pool, options.config, options.capabilities, log, verify);
  }

  /** Returns whether reads may use the replica. */
  isUsable(): boolean {
    return this.isUsableAsOf(performance.now());
  }

  /** Returns whether the replica works, and has all commits up to the maximum lag before `at`. */
  isUsableAsOf(at: number): boolean {
    return at - this.asOf <= this.options.maxLagMs && performance.now() >= this.notBefore;
  }

  /** Returns the maximum lag behind the primary, in seconds; Infinity if it is unknown. */
  lag(): number {
    return (performance.now() - this.asOf) / 1000;
  }

  async read(statement: Statement, prepared?: boolean, request?: Abortable): Promise<Cell[][]> {
    if (!this.isUsable()) return this.primary.read(statement, prepared, request);
    const { promise: failedOver, resolve } = Promise.withResolvers<undefined>();
    const failOver = () => resolve(undefined);
    this.failovers.add(failOver);
    try {
      const rows = await Promise.race([
        this.statements.read(statement, prepared, request),
        failedOver,
      ]);
      if (rows) return rows;
    } catch (error) {
      if (isConnectionError(error)) this.markUnusable(error);
      else if (!isReplicaError(error)) throw error;
    } finally {
      this.failovers.delete(failOver);
    }
    return this.primary.read(statement, prepared, request);
  }

  write(statement: Statement, request?: Abortable): Promise<Cell[][]> {
    return this.primary.write(statement, request);
  }

  /** Statements that read the replica, whatever its lag, and never the primary. */
  readonly withoutPrimary: Statements = {
    commits: 0,
    read: (statement, prepared, request) => this.statements.read(statement, prepared, request),
    write: (statement, request) => this.write(statement, request),
  };

  /** Updates the lag from these samples of the primary, the latest last. */
  async checkLag(samples: readonly LagSample[]): Promise<void> {
    try {
      const position = await this.readPosition();
      const reached = samples.findLast((sample) => sample.position <= position);
      if (reached) this.asOf = Math.max(this.asOf, reached.at);
      // Without a sample, the primary may be down.
      const latest = samples.at(-1);
      if (latest && latest.at - this.asOf > this.options.maxLagMs)
        this.markUnusable('The lag exceeds DATABASE_REPLICA_MAX_LAG_MS');
      else this.logChange();
    } catch (error) {
      this.markUnusable(error);
      this.disconnect();
    }
  }

  async close(): Promise<void> {
    await this.monitor?.end();
    await this.statements.close();
    await this.pool.end();
  }

  private async readPosition(): Promise<number> {
    this.monitor ??= await this.open();
    const { rows } = await this.monitor.query<[boolean, string | null, string]>({
      text: POSITION,
      rowMode: 'array',
    });
    const [isInRecovery, position, server] = rows[0] ?? [];
    this.server = server;
    // A promoted replica no longer has the primary's data.
    if (!isInRecovery || position == null) throw new Error('The server is not a replica');
    return Number(position);
  }

  private async open(): Promise<pg.Client> {
    const client = new pg.Client({
      ...this.options.config,
      connectionTimeoutMillis: TIMEOUT_MS,
      query_timeout: TIMEOUT_MS,
    });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  // Behind a load balancer, each connection may lead to another server, whose lag is unknown.
  private async requireSameServer(client: ClientBase): Promise<void> {
    const { rows } = await client.query<[string]>({ text: `select ${SERVER}`, rowMode: 'array' });
    if (rows[0]?.[0] === this.server) return;
    const message = 'The URL leads to more than one server. Each replica needs its own URL';
    throw Object.assign(new Error(message), { code: CONNECTION_EXCEPTION });
  }

  private markUnusable(reason: unknown): void {
    this.notBefore = performance.now() + RECOVERY_MS;
    this.logChange(reason);
  }

  // Logs each change once.
  private logChange(reason?: unknown): void {
    const isUsable = this.isUsable();
    if (isUsable === this.wasUsable) return;
    this.wasUsable = isUsable;
    if (isUsable)
      this.log.info(
        { event: 'database.replica', replica: this.name, outcome: 'success' },
        'Replica is usable; reads use it',
      );
    else
      this.log.warn(
        { event: 'database.replica', replica: this.name, outcome: 'failure', err: reason },
        'Replica is not usable; reads use the primary',
      );
  }

  // The replica may never respond, so running reads must not wait for it.
  private disconnect(): void {
    void this.monitor?.end().catch(() => undefined);
    this.monitor = undefined;
    // The next connections may lead to another server.
    this.server = undefined;
    this.statements.renew();
    for (const failOver of this.failovers) failOver();
    this.clients.forEach(destroyConnection);
  }
}

// Returns whether the connection has failed. Errors of a statement are DatabaseErrors.
function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error.name === 'AbortError' || isAcquireTimeout(error))
    return false;
  return error instanceof pg.DatabaseError ? /^(08|57P0)/.test(error.code ?? '') : true;
}

// Returns whether the primary may succeed.
function isReplicaError(error: unknown): boolean {
  return (
    isAcquireTimeout(error) ||
    (error instanceof pg.DatabaseError && REPLICA_ERRORS.test(error.code ?? ''))
  );
}
