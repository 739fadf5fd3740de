import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import pLimit from 'p-limit';
import pg, { type ClientBase } from 'pg';
import { destroyConnection } from './pool-repair.ts';

/** Maximum number of concurrent cancel requests. They use no connections of the pool. */
const MAX_CONCURRENT = 2;
/** Maximum duration of a cancel request, in ms. */
const TIMEOUT_MS = 2_000;
/** Delay before the next cancel request, in ms. */
const RETRY_MS = 100;
const MAX_ATTEMPTS = 50;
const NEVER = new AbortController().signal;

/** Members of the driver's client that its types omit. */
interface CancellableClient {
  host: string;
  port: number;
  ssl: boolean | object;
  processID: number | null;
  secretKey: number | null;
}

/** Members of the driver's connection that its types omit. */
interface Wire {
  stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
  on(event: string, listener: () => void): void;
  once(event: string, listener: () => void): void;
}

const limit = pLimit(MAX_CONCURRENT);

/**
 * Cancels the statement that runs on this connection (PostgreSQL, 55.2.8). The cancel request uses
 * a separate connection, which needs no login and reaches the right backend through a pooler, too.
 * Best effort: if the request fails, the statement's own time limit ends the statement.
 */
export function cancel(client: ClientBase): void {
  void limit(() => cancelOnce(client, NEVER));
}

/**
 * Cancels the statement that runs on this connection. Repeats the cancel request until the
 * statement has ended, because a request that arrives before the statement does nothing. Resolves
 * when the statement has ended and no cancel request is pending. Until then nothing else may run on
 * this connection: a cancel request ends whatever runs when it arrives.
 */
export async function cancelUntilEnded(client: ClientBase, ended: AbortSignal): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS && !ended.aborted; attempt++) {
    await limit(() => cancelOnce(client, ended));
    await setTimeout(RETRY_MS, undefined, { ref: false, signal: ended }).catch(() => undefined);
  }
  if (!ended.aborted) await once(ended, 'abort');
}

// Resolves when the server has closed the connection, which means that it has signalled the
// backend, or when the request fails.
function cancelOnce(client: ClientBase, ended: AbortSignal): Promise<void> {
  const { host, port, ssl, processID, secretKey } = client as unknown as CancellableClient;
  if (processID === null || secretKey === null || ended.aborted) return Promise.resolve();
  const wire = new pg.Connection({ ssl }) as unknown as Wire;
  return new Promise((done) => {
    let isSent = false;
    const timer = globalThis
      .setTimeout(() => {
        wire.stream.destroy();
        // The request may still arrive, and would cancel the next statement.
        if (isSent) destroyConnection(client);
      }, TIMEOUT_MS)
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
