import { pipeline } from 'node:stream/promises';
import type { Pool, PoolClient } from 'pg';
import { from } from 'pg-copy-streams';
import type { CopyTransaction, RunCopyTransaction } from './copy.ts';
import { withRetries } from './retry.ts';
import { identifier, join, raw, sql, type Cell, type Statement } from './sql.ts';
import { isLost } from './pipelined-connection.ts';

/** Creates transactions that write many rows at a time: by COPY. */
export function createCopyTransactions(pool: Pool): RunCopyTransaction {
  return (work) => withRetries(() => transaction(pool, (client) => work(new Session(client))));
}

async function transaction<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let isBroken = false;
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } catch (error) {
    isBroken = isLost(error);
    if (!isBroken) await client.query('rollback').catch(() => (isBroken = true));
    throw error;
  } finally {
    client.release(isBroken);
  }
}

class Session implements CopyTransaction {
  constructor(private readonly client: PoolClient) {}

  async run({ text, values }: Statement): Promise<Cell[][]> {
    return (await this.client.query<Cell[]>({ text, values, rowMode: 'array' })).rows;
  }

  async stage(
    table: string,
    columns: Readonly<Record<string, string>>,
    rows: readonly (readonly (string | null)[])[],
  ): Promise<void> {
    const types = Object.entries(columns);
    const definitions = types.map(([name, type]) => sql`${identifier(name)} ${raw(type)}`);
    // Behind a pooler, the next transaction may be on another connection.
    await this.run(
      sql`create temporary table ${identifier(table)} (${join(definitions)}) on commit drop`,
    );
    const text = rows.map((row) => `${row.map(escaped).join('\t')}\n`).join('');
    await pipeline([text], this.client.query(from(sql`copy ${identifier(table)} from stdin`.text)));
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
};

// Escapes a cell (PostgreSQL, COPY, "Text Format").
function escaped(cell: string | null): string {
  if (cell === null) return '\\N';
  return cell.replace(/[\\\t\n\r]/g, (character) => ESCAPES[character] ?? character);
}
