import pg, { type ClientConfig } from 'pg';

/** A row of a result. */
type Row = Record<string, unknown>;

/** Runs one statement on a connection of its own, at this URL or with these options. */
export async function querySql(
  target: string | ClientConfig,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const config = typeof target === 'string' ? { connectionString: target } : target;
  const client = new pg.Client(config);
  // A lost connection rejects the statement.
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
