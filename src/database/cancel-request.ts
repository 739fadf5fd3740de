import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import pg, { type ClientBase } from 'pg';
import { lose } from './pool-repair.ts';

/** How many are asked at a time, beside the pool's connections. */
const AT_ONCE = 2;
const CONNECT_MS = 2_000;
const AGAIN_MS = 100;
const MAX_ATTEMPTS = 50;
const NEVER = new AbortController().signal;

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

const turn = pLimit(AT_ONCE);

/**
 * Cancels what the backend of this connection is doing (PostgreSQL, 55.2.8): on a connection of its own, which needs no login, and reaches the
 * right backend through a pooler as well. Best effort: where that fails, the statement's own time limit ends it.
 */
export function cancel(client: ClientBase): void {
  void turn(() => cancelOnce(client, NEVER));
}

/**
 * Cancels the statement that runs on this connection, and again until it has ended: a cancel request that arrives before the statement
 * does nothing. Resolves when the statement has ended and no cancel request is on its way. Until then nothing else may run on
 * this connection: a cancel request ends whatever runs when it arrives.
 */
export async function cancelUntilEnded(client: ClientBase, ended: AbortSignal): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !ended.aborted; attempt++) {
    await turn(() => cancelOnce(client, ended));
    await setTimeout(AGAIN_MS, undefined, { ref: false, signal: ended }).catch(() => undefined);
  }
  if (!ended.aborted) await once(ended, 'abort');
}

// Resolves when the server has closed the connection, which says that it has signalled the backend; or when that fails.
function cancelOnce(client: ClientBase, ended: AbortSignal): Promise<void> {
  const { host, port, ssl, processID, secretKey } = client as unknown as Cancellable;
  if (processID === null || secretKey === null || ended.aborted) return Promise.resolve();
  const wire = new pg.Connection({ ssl }) as unknown as Wire;
  return new Promise((done) => {
    let isSent = false;
    const timer = globalThis
      .setTimeout(() => {
        wire.stream.destroy();
        // It may arrive yet.
        if (isSent) lose(client);
      }, CONNECT_MS)
      .unref();
    const send = () => {
      if (ended.aborted) return wire.stream.destroy();
      isSent = true;
      wire.cancel(processID, secretKey);
    };
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
