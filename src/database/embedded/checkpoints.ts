import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

const EVERY_MS = 10_000;
/** A log of this length is replayed in a fraction of a second. */
const MAX_LOG_BYTES = 32 * 1024 * 1024;
const LOG_BYTES = 'select pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::float8 as bytes from pg_control_checkpoint()';

/**
 * Makes checkpoints of the embedded database as its log grows, until the signal is aborted. A PostgreSQL server has a process for that; PGlite has none, and
 * without, its log would grow for as long as it runs, and all of it be replayed after a kill.
 */
export async function keepCheckpoints(socketDir: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // Where the database is away, there is nothing to do.
    await checkpoint(socketDir).catch(() => undefined);
    await setTimeout(EVERY_MS, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

async function checkpoint(socketDir: string): Promise<void> {
  const client = new pg.Client({ host: socketDir, user: 'postgres', database: 'postgres' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ bytes: number }>(LOG_BYTES);
    if (Number(rows[0]?.bytes) > MAX_LOG_BYTES) await client.query('checkpoint');
  } finally {
    await client.end();
  }
}
