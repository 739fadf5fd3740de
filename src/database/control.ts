import { setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import pg, { type ClientBase } from 'pg';

/** How many are asked at a time, beside the pool's connections. */
const AT_ONCE = 2;
const CONNECT_MS = 2_000;
const AGAIN_MS = 100;
const MAX_ATTEMPTS = 50;

/** What of the driver's client and connection a cancellation uses; its types leave it out. */
interface Cancellable {
  host: string;
  port: number;
  ssl: boolean | object;
  processID: number | null;
  secretKey: number | null;
}

interface Wire {
  stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
  on(event: string, listener: () => void): void;
  once(event: string, listener: () => void): void;
}

/**
 * Cancels what runs on connections, as the protocol has it (PostgreSQL, 55.2.8): on a connection of its own, which needs no login, and
 * reaches the right backend also through a pooler.
 */
export class Control {
  private readonly turn = pLimit(AT_ONCE);

  /** What is asked of a database that does not answer would reach it later, and cancel what runs there by then. */
  constructor(private readonly isAnswering: () => boolean) {}

  /** Cancels what the backend of this connection is doing. Best effort: who asks does not wait. */
  cancel(client: ClientBase): void {
    // Where that fails, the statement's own time limit ends it.
    void this.turn(() => cancelOnce(client as unknown as Cancellable, this.isAnswering));
  }

  /** As `cancel`, until it is done: what reaches a backend before the statement does, passes by. */
  async cancelUntilDone(client: ClientBase, isRunning: () => boolean): Promise<void> {
    for (let attempt = 0; attempt < MAX_ATTEMPTS && isRunning(); attempt++) {
      await this.turn(() => cancelOnce(client as unknown as Cancellable, () => isRunning() && this.isAnswering()));
      await setTimeout(AGAIN_MS, undefined, { ref: false });
    }
  }
}

// Resolves when it was sent and the server has closed the connection, which says that it has passed it on; or when that fails.
function cancelOnce({ host, port, ssl, processID, secretKey }: Cancellable, isRunning: () => boolean): Promise<void> {
  if (processID === null || secretKey === null || !isRunning()) return Promise.resolve();
  const wire = new pg.Connection({ ssl }) as unknown as Wire;
  return new Promise((done) => {
    const timer = globalThis.setTimeout(() => wire.stream.destroy(), CONNECT_MS).unref();
    // What runs there next is somebody else's.
    const send = () => (isRunning() ? wire.cancel(processID, secretKey) : wire.stream.destroy());
    wire.once('connect', () => (ssl ? wire.requestSsl() : send()));
    wire.once('sslconnect', send);
    wire.on('error', () => wire.stream.destroy());
    wire.once('end', () => {
      clearTimeout(timer);
      done();
    });
    if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`);
    else wire.connect(port, host);
  });
}
