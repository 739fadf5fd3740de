import { isRaw, type Configuration } from '@mikro-orm/core';
import { PostgreSqlConnection, PostgreSqlDriver } from '@mikro-orm/postgresql';
import { CompiledQuery, PostgresDialect, type DatabaseConnection, type Driver } from 'kysely';
import { abortOptionsOf } from '../kit/sql.ts';
import { asking } from '../kit/timings.ts';

type Execute = PostgreSqlConnection['execute'];

interface Bound {
  text: string;
  values: unknown[];
}

/**
 * The ORM's driver, with values sent beside the statement. By itself the ORM writes them into its text, escaped: nobody gets past
 * that, but a database that logs its statements then logs what users write, and their hashes.
 */
export class BindingDriver extends PostgreSqlDriver {
  constructor(config: Configuration) {
    super(config);
    Object.assign(this, { connection: new BindingConnection(config) });
  }
}

class BindingConnection extends PostgreSqlConnection {
  override createKyselyDialect(...args: Parameters<PostgreSqlConnection['createKyselyDialect']>) {
    const dialect = super.createKyselyDialect(...args);
    const driver = () => timed(steady(PostgresDialect.prototype.createDriver.call(dialect)));
    return Object.assign(dialect, { createDriver: driver });
  }

  override async execute<T extends Awaited<ReturnType<Execute>>>(...args: Parameters<Execute>): Promise<T> {
    const [query, params = [], method = 'all', transaction, options] = args;
    const bound = boundOf(query, params);
    if (!bound) return super.execute<T>(...args);
    await this.ensureConnection();
    const compiled = CompiledQuery.raw(bound.text, bound.values);
    const client = transaction ?? this.getClient();
    return this.transformRawResult<T>(await client.executeQuery(compiled, abortOptionsOf(options)), method);
  }
}

// A cancellation may come late, and reach the next statement on its connection. Where that is one that begins or ends a transaction, the
// connection would be forgotten by whoever has it. A second time does no harm.
function steady(driver: Driver): Driver {
  const begin = driver.beginTransaction.bind(driver);
  const rollback = driver.rollbackTransaction.bind(driver);
  return Object.assign(driver, {
    beginTransaction: (...args: Parameters<Driver['beginTransaction']>) => twice(() => begin(...args)),
    rollbackTransaction: (connection: DatabaseConnection) => twice(() => rollback(connection)),
  });
}

// Each connection once, when it is lent for the first time.
function timed(driver: Driver): Driver {
  const known = new WeakSet<DatabaseConnection>();
  const acquire = driver.acquireConnection.bind(driver);
  return Object.assign(driver, {
    async acquireConnection(...args: Parameters<Driver['acquireConnection']>) {
      const connection = await acquire(...args);
      if (known.has(connection)) return connection;
      known.add(connection);
      const run = connection.executeQuery.bind(connection);
      const executeQuery = <R>(query: CompiledQuery) =>
        asking.tracePromise(() => run<R>(query), { kind: 'statement', text: withoutValues(query) });
      return Object.assign(connection, { executeQuery });
    },
  });
}

// Of what has no values beside it, the ORM may have written them into its text.
function withoutValues({ sql, parameters }: CompiledQuery): string {
  return parameters.length > 0 ? sql : (/^\w+(?: into| from)?(?: "\w+")?/.exec(sql)?.[0] ?? '');
}

async function twice(act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch {
    await act();
  }
}

// What is no plain statement with plain values is left to the ORM, which knows all its own kinds.
function boundOf(query: Parameters<Execute>[0], given: NonNullable<Parameters<Execute>[1]>): Bound | undefined {
  const { sql, params } =
    typeof query === 'string'
      ? { sql: query, params: given }
      : isRaw(query)
        ? query
        : (query.toRaw() as { sql: string; params: unknown[] });
  if (!Array.isArray(params) || params.length === 0 || /\?\?|\\\?/.test(sql) || !params.every(isPlain)) return undefined;
  let count = 0;
  const text = sql.replace(/\?/g, () => `$${++count}`);
  return count === params.length ? { text, values: params.map(sent) } : undefined;
}

function isPlain(value: unknown): boolean {
  return value === null || typeof value !== 'object' || value instanceof Date || ArrayBuffer.isView(value);
}

function sent(value: unknown): unknown {
  if (value instanceof Date) return value.toISOString();
  return typeof value === 'bigint' ? String(value) : value;
}
