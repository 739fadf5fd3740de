import { isRaw, type Configuration } from '@mikro-orm/core';
import { PostgreSqlConnection, PostgreSqlDriver } from '@mikro-orm/postgresql';
import { CompiledQuery, PostgresDriver, type DatabaseConnection, type QueryResult } from 'kysely';
import type { Pool, PoolClient, QueryResultRow } from 'pg';
import { abortOptionsOf } from './sql.ts';
import { databaseChannel } from '../core/tracing-channels.ts';
import { cancelUntilEnded } from './cancel-request.ts';

/** Commands whose row count is the number of changed rows. */
const CHANGES = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

type Execute = PostgreSqlConnection['execute'];

interface Bound {
  text: string;
  values: unknown[];
}

/**
 * The ORM's driver, with values sent separately from the statement. The ORM itself writes escaped
 * values into the text. That is safe from injection, but a database that logs statements would then
 * log what users write, and their hashes.
 */
export class BindingDriver extends PostgreSqlDriver {
  constructor(config: Configuration) {
    super(config);
    Object.assign(this, { connection: new BindingConnection(config) });
  }
}

class BindingConnection extends PostgreSqlConnection {
  override createKyselyDialect(
    overrides: Parameters<PostgreSqlConnection['createKyselyDialect']>[0],
  ) {
    let pool: Pool | undefined;
    const onPoolCreated = (created: Pool) => (pool = created);
    const dialect = super.createKyselyDialect(Object.assign({}, overrides, { onPoolCreated }));
    if (!pool) throw new Error('The ORM created no pool');
    const driver = new CancellingDriver(pool);
    return Object.assign(dialect, { createDriver: () => driver });
  }

  override async execute<T extends Awaited<ReturnType<Execute>>>(
    ...args: Parameters<Execute>
  ): Promise<T> {
    const [query, params = [], method = 'all', transaction, options] = args;
    const bound = boundOf(query, params);
    if (!bound) return super.execute<T>(...args);
    await this.ensureConnection();
    const compiled = CompiledQuery.raw(bound.text, bound.values);
    const client = transaction ?? this.getClient();
    return this.transformRawResult<T>(
      await client.executeQuery(compiled, abortOptionsOf(options)),
      method,
    );
  }
}

/** Acquires and releases connections of the pool. Cancels statements as statements.ts does. */
class CancellingDriver extends PostgresDriver {
  private readonly connections = new WeakMap<PoolClient, CancellingConnection>();

  constructor(private readonly pool: Pool) {
    super({ pool });
  }

  override async acquireConnection(): Promise<CancellingConnection> {
    const client = await this.pool.connect();
    const connection = this.connections.get(client) ?? new CancellingConnection(client);
    this.connections.set(client, connection);
    return connection;
  }

  override async releaseConnection(connection: DatabaseConnection): Promise<void> {
    if (!(connection instanceof CancellingConnection))
      throw new TypeError('The connection was not acquired from this driver');
    await connection.cancelling;
    connection.client.release();
  }
}

class CancellingConnection implements DatabaseConnection {
  /** Resolves when the cancelled statement has ended. */
  cancelling: Promise<void> | undefined;
  private isRunning = false;
  private ended: AbortController | undefined;

  constructor(readonly client: PoolClient) {}

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    // ROLLBACK is serialize while a cancelled statement runs or its cancel request is pending.
    await this.cancelling;
    this.isRunning = true;
    try {
      const run = () => this.client.query<R & QueryResultRow>(query.sql, [...query.parameters]);
      const { command, rowCount, rows } = await databaseChannel.tracePromise(run, {
        kind: 'statement',
        text: withoutValues(query),
      });
      // For several statements in one text, the driver returns a list of results.
      const result = { rows: rows ?? [] };
      return CHANGES.has(command) ? { ...result, numAffectedRows: BigInt(rowCount ?? 0) } : result;
    } finally {
      this.isRunning = false;
      this.ended?.abort();
      this.ended = undefined;
    }
  }

  async cancelQuery(): Promise<void> {
    if (!this.isRunning) return;
    this.ended = new AbortController();
    this.cancelling = cancelUntilEnded(this.client, this.ended.signal);
    await this.cancelling;
    this.cancelling = undefined;
  }

  streamQuery(): never {
    throw new Error('The ORM does not stream statements');
  }
}

// Without parameters, the ORM may have written values into the text.
function withoutValues({ sql, parameters }: CompiledQuery): string {
  return parameters.length > 0 ? sql : (/^\w+(?: into| from)?(?: "\w+")?/.exec(sql)?.[0] ?? '');
}

// Returns undefined unless the values are plain: the ORM handles its own kinds.
function boundOf(
  query: Parameters<Execute>[0],
  args: NonNullable<Parameters<Execute>[1]>,
): Bound | undefined {
  const { sql, params } =
    typeof query === 'string'
      ? { sql: query, params: args }
      : isRaw(query)
        ? query
        : (query.toRaw() as { sql: string; params: unknown[] });
  if (
    !Array.isArray(params) ||
    params.length === 0 ||
    /\?\?|\\\?/.test(sql) ||
    !params.every(isPlain)
  )
    return undefined;
  let count = 0;
  const text = sql.replace(/\?/g, () => `$${++count}`);
  return count === params.length ? { text, values: params.map(serialize) } : undefined;
}

function isPlain(value: unknown): boolean {
  return (
    value === null ||
    typeof value !== 'object' ||
    value instanceof Date ||
    ArrayBuffer.isView(value)
  );
}

function serialize(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? String(value) : value;
}
