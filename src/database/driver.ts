import { isRaw, type Configuration } from '@mikro-orm/core';
import { PostgreSqlConnection, PostgreSqlDriver } from '@mikro-orm/postgresql';
import { CompiledQuery } from 'kysely';
import { abortOptionsOf } from '../kit/sql.ts';

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
