import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

/** Delay between two checks, in ms. */
const DELAY_MS = 10_000;
/** Maximum size of the log, in bytes. It is replayed in a fraction of a second. */
const MAX_LOG_BYTES = 32 * 1024 * 1024;
const LOG_BYTES =
  'select pg_wal_lsn_diff(pg_current_wal_lsn(), redo_lsn)::float8 as bytes from pg_control_checkpoint()';

/**
 * Creates checkpoints of the embedded database as its log grows, until the signal is aborted.
 * PostgreSQL has a process for that. PGlite has none, so its log would grow without limit and be
 * replayed whole after a kill.
 */
export async function runCheckpoints(socketDir: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // While the database is down, there is nothing to do.
    await checkpoint(socketDir).catch(() => undefined);
    await setTimeout(DELAY_MS, undefined, { signal, ref: false }).catch(() => undefined);
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
