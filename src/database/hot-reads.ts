import { CompiledQuery, Kysely } from 'kysely';
import type { Abortable } from '../core/abort.ts';
import { KeyedLimit } from '../core/keyed-limit.ts';
import { databaseChannel } from '../core/tracing-channels.ts';
import { Connection, isLost } from './connection.ts';
import { cancelledWith } from './kysely.ts';
import type { ConnectionPool } from './pool.ts';
import type { Row, Statement, Statements } from './sql.ts';

// Kysely takes a connection for each statement, which PostgreSQL parses and plans each time. Reads
// that nearly every request needs are named statements, many at a time on one connection.

/** Maximum number of named statements. Further ones run on the pool. */
const MAX_NAMES = 500;
/** Maximum number of pending statements of the pipelined connection. */
const MAX_PENDING = 100;
/** Time without a response after which pending statements run on the pool, in ms. */
const STALL_MS = 500;
/** Delay before a lost connection is reopened, in ms. */
const REOPEN_MS = 1_000;
/** Maximum number of connections of the pool that one request uses at a time. */
const MAX_PER_REQUEST = 2;

/** Single reads: named ones on a pipelined connection if there is one, others on the pool. */
export class HotReads implements Statements {
  commits = 0;
  private readonly requestLimit = new KeyedLimit(MAX_PER_REQUEST);
  private readonly queries: Kysely<unknown>;
  private readonly names = new Map<string, string>();
  private client: Connection | undefined;
  private isOpen = false;
  private notBefore = 0;
  private pending = 0;
  private respondedAt = 0;
  private watch: NodeJS.Timeout | undefined;

  constructor(
    private readonly pool: ConnectionPool,
    private readonly isPipelined: boolean,
  ) {
    this.queries = new Kysely({ dialect: pool.dialect('read') });
  }

  read(statement: Statement, prepared = false, request?: Abortable): Promise<Row[]> {
    const onPool = () =>
      this.requestLimit.run(request?.parent ?? request ?? statement, () =>
        this.readOnPool(statement, request),
      );
    return (prepared ? this.pipeline(statement, onPool) : undefined) ?? onPool();
  }

  /** Reopens the pipelined connection. */
  renew(): void {
    this.drop();
    this.notBefore = 0;
  }

  close(): void {
    this.drop();
    this.notBefore = Infinity;
  }

  private async readOnPool(
    { text, values }: Statement,
    request: Abortable | undefined,
  ): Promise<Row[]> {
    request?.begin?.();
    const query = CompiledQuery.raw(text, [...values]);
    return (await this.queries.executeQuery<Row>(query, cancelledWith(request))).rows;
  }

  // Returns the rows, or undefined if the statement must run on the pool.
  private pipeline(
    { text, values }: Statement,
    onPool: () => Promise<Row[]>,
  ): Promise<Row[]> | undefined {
    const client = this.isOpen ? this.client : undefined;
    if (!this.client) this.open();
    let name = this.names.get(text);
    if (name === undefined && this.names.size < MAX_NAMES)
      this.names.set(text, (name = `s${this.names.size}`));
    if (!client || name === undefined || this.pending >= MAX_PENDING) return undefined;
    if (this.pending++ === 0) this.respondedAt = performance.now();
    // Sends the statements of one turn of the event loop in one write.
    if (client.socket.writableCorked === 0) {
      client.socket.cork();
      setImmediate(() => client.socket.uncork());
    }
    const onResponse = () => {
      if (this.client !== client) return false;
      this.pending--;
      this.respondedAt = performance.now();
      return true;
    };
    const query = () => client.query<Row>({ name, text, values: [...values] });
    return databaseChannel.tracePromise(query, { kind: 'read', text }).then(
      ({ rows }) => {
        onResponse();
        return rows;
      },
      (error: Error & { code?: string }) => {
        const isCurrent = onResponse();
        // After a change of its table, a prepared statement stays invalid on this connection.
        if (isCurrent && error.code === '0A000') this.drop();
        else if (isCurrent && error.code !== '26000' && !isLost(error)) throw error;
        return onPool();
      },
    );
  }

  // Closes the connection. Pending statements run on the pool.
  private drop(): void {
    const { client, pending } = this;
    clearInterval(this.watch);
    this.client = undefined;
    this.isOpen = false;
    this.pending = 0;
    this.notBefore = performance.now() + REOPEN_MS;
    // The backend notices the closed connection only after its statement.
    if (pending > 0 && !client?.socket.destroyed) void client?.cancel();
    client?.destroy();
  }

  // Opens the connection on first use and after a loss. The pool reports errors, which it has too.
  private open(): void {
    if (!this.isPipelined || performance.now() < this.notBefore) return;
    const { options } = this.pool;
    // For an array or OFFSET, PostgreSQL would plan each time, which takes longer than the read.
    const client = (this.client = new Connection({
      ...options,
      pipeline: true,
      options: `${options.options ?? ''} -c plan_cache_mode=force_generic_plan`,
    }));
    client.on('end', () => this.client === client && this.drop());
    client.connect().then(
      () => (this.isOpen ||= this.client === client),
      () => undefined,
    );
    // One blocked statement blocks all behind it.
    this.watch = setInterval(() => {
      if (this.pending > 0 && performance.now() - this.respondedAt >= STALL_MS) this.drop();
    }, STALL_MS).unref();
  }
}
