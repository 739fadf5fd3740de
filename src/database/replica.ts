import pg, { type ClientBase, type ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { Abortable, Cell, Statement, Statements } from './sql.ts';
import { isAcquireTimeout, lose } from './pool-repair.ts';
import { openStatements, type Abilities, type OpenStatements } from './statements.ts';

/** How long the replica has to be good again before it is read from again, in ms. */
const RETURNS_MS = 2_000;
/** A replica that does not say within so many ms how far it has come is taken for dead. */
const SILENT_MS = 1_500;
// States of a replica, and errors of the way to it, that another server need not be in (PostgreSQL, appendix A): its connection, its
// room, its going, a row that is cleaned up while it is read, and a table that has not come through yet.
const OWN_TROUBLE = /^(08...|53...|57P0.|40001|40P01|25006|42P01|42703)$/;
// `pg_wal_lsn_diff` makes a number of a place in the log.
const PROGRESS = `select pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')`;

/** How far the primary's log had come, at this time or before it (performance.now). */
export interface Mark {
  at: number;
  place: number;
}

/** How a replica is reached, and how far behind it may be. */
interface Limits {
  config: ClientConfig & { max: number };
  abilities: Abilities;
  maxLagMs: number;
}

/**
 * A server that follows the primary, to read from while it is no further behind than it may be. What it cannot answer for reasons of
 * its own is asked of the primary.
 */
export class Replica implements Statements {
  /** Nothing is committed here. */
  readonly commits = 0;
  private readonly pool: pg.Pool;
  private readonly own: OpenStatements;
  private readonly clients = new Set<ClientBase>();
  /** What takes a read that is under way to the primary. */
  private readonly retreats = new Set<() => void>();
  private watch: pg.Client | undefined;
  /** All that was committed before then is here. */
  private asOf = -Infinity;
  private notBefore = 0;
  private served = false;

  constructor(
    /** By which the log names it. */
    readonly name: string,
    private readonly limits: Limits,
    private readonly primary: Statements,
    private readonly log: Logger,
  ) {
    this.pool = new pg.Pool({ ...limits.config, connectionTimeoutMillis: SILENT_MS });
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => {
      this.clients.add(client);
      // Where it was lent, the pool does not listen.
      client.on('error', () => undefined);
    });
    this.pool.on('remove', (client) => this.clients.delete(client));
    this.own = openStatements(this.pool, limits.config, limits.abilities, log);
  }

  /** Whether it may be read from. */
  serves(): boolean {
    const now = performance.now();
    return now - this.asOf <= this.limits.maxLagMs && now >= this.notBefore;
  }

  /** How far behind the primary it is at most, in seconds; without end where nothing is known of it. */
  lag(): number {
    return (performance.now() - this.asOf) / 1000;
  }

  async read(statement: Statement, hot?: boolean, request?: Abortable): Promise<Cell[][]> {
    if (!this.serves()) return this.primary.read(statement, hot, request);
    const { promise: retreated, resolve: retreat } = Promise.withResolvers<undefined>();
    const goes = () => retreat(undefined);
    this.retreats.add(goes);
    try {
      const rows = await Promise.race([this.own.read(statement, hot, request), retreated]);
      if (rows) return rows;
    } catch (error) {
      if (isGone(error)) this.leave(error);
      else if (!isOwnTrouble(error)) throw error;
    } finally {
      this.retreats.delete(goes);
    }
    return this.primary.read(statement, hot, request);
  }

  write(statement: Statement, request?: Abortable): Promise<Cell[][]> {
    return this.primary.write(statement, request);
  }

  /** Looks how far it has come, by these marks, the latest last. */
  async look(marks: readonly Mark[]): Promise<void> {
    try {
      const place = await this.progress();
      const reached = marks.findLast((mark) => mark.place <= place);
      if (reached) this.asOf = Math.max(this.asOf, reached.at);
      if (performance.now() - this.asOf > this.limits.maxLagMs) this.leave('it is too far behind');
      else this.tell();
    } catch (error) {
      this.leave(error);
      this.drop();
    }
  }

  async close(): Promise<void> {
    await this.watch?.end();
    await this.own.close();
    await this.pool.end();
  }

  private async progress(): Promise<number> {
    this.watch ??= await this.open();
    const { rows } = await this.watch.query<[boolean, string | null]>({ text: PROGRESS, rowMode: 'array' });
    const [follows, place] = rows[0] ?? [];
    // One that has been promoted goes ways of its own.
    if (!follows || place == null) throw new Error('it follows no primary');
    return Number(place);
  }

  private async open(): Promise<pg.Client> {
    const client = new pg.Client({ ...this.limits.config, connectionTimeoutMillis: SILENT_MS, query_timeout: SILENT_MS });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  }

  private leave(reason: unknown): void {
    this.notBefore = performance.now() + RETURNS_MS;
    this.tell(reason);
  }

  // Once each way.
  private tell(reason?: unknown): void {
    const serves = this.serves();
    if (serves === this.served) return;
    this.served = serves;
    if (serves) this.log.info({ event: 'database.replica', replica: this.name, outcome: 'success' }, 'a replica is read from');
    else this.log.warn({ event: 'database.replica', replica: this.name, outcome: 'failure', err: reason }, 'a replica is left out');
  }

  // It may be silent for good, and nobody is to wait for that.
  private drop(): void {
    void this.watch?.end().catch(() => undefined);
    this.watch = undefined;
    for (const retreat of this.retreats) retreat();
    this.clients.forEach(lose);
  }
}

// What the server itself has to say about a statement comes as an error of the database.
function isGone(error: unknown): boolean {
  if (!(error instanceof Error) || error.name === 'AbortError' || isAcquireTimeout(error)) return false;
  return error instanceof pg.DatabaseError ? /^(08|57P0)/.test(error.code ?? '') : true;
}

function isOwnTrouble(error: unknown): boolean {
  return isAcquireTimeout(error) || (error instanceof pg.DatabaseError && OWN_TROUBLE.test(error.code ?? ''));
}
