import { setTimeout } from 'node:timers/promises';
import pg, { type ClientBase, type ClientConfig } from 'pg';

const CONNECTIONS = 2;
const IDLE_MS = 5_000;
const CONNECT_MS = 2_000;
const AGAIN_MS = 100;
const MAX_ATTEMPTS = 50;

/** Connections beside the pool, for what has to get through when all of that is taken. Opened when they are needed. */
export class Control {
  private pool: pg.Pool | undefined;

  constructor(private readonly config: ClientConfig) {}

  /** Cancels what the backend of this connection is doing. Best effort: who asks does not wait. */
  cancel(client: ClientBase): void {
    const pid = backendOf(client);
    // Where that fails, the statement's own time limit ends it.
    if (pid !== undefined) this.cancelOnce(pid, () => true).catch(() => undefined);
  }

  /** As `cancel`, until it is done: what reaches a backend before the statement does, passes by. */
  async cancelUntilDone(client: ClientBase, isRunning: () => boolean): Promise<void> {
    const pid = backendOf(client);
    if (pid === undefined) return;
    for (let attempt = 0; attempt < MAX_ATTEMPTS && isRunning(); attempt++) {
      await this.cancelOnce(pid, isRunning).catch(() => undefined);
      await setTimeout(AGAIN_MS, undefined, { ref: false });
    }
  }

  async close(): Promise<void> {
    await this.pool?.end();
  }

  private async cancelOnce(pid: number, isRunning: () => boolean): Promise<void> {
    this.pool ??= this.open();
    const client = await this.pool.connect();
    try {
      // What runs there next is somebody else's.
      if (isRunning()) await client.query('select pg_cancel_backend($1)', [pid]);
    } finally {
      client.release();
    }
  }

  private open(): pg.Pool {
    const pool = new pg.Pool({ ...this.config, max: CONNECTIONS, idleTimeoutMillis: IDLE_MS, connectionTimeoutMillis: CONNECT_MS });
    pool.on('error', () => undefined);
    return pool;
  }
}

// Known to the driver from the server's greeting, and not to its types.
function backendOf(client: ClientBase): number | undefined {
  return (client as { processID?: number }).processID;
}
