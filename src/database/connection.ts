import { Socket } from 'node:net';
import pg, { type ClientConfig } from 'pg';

/** Maximum duration of a cancel request, in ms. */
const CANCEL_TIMEOUT_MS = 2_000;

/** Methods of the driver's connection that its types omit. */
interface Wire {
  stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
  on(event: string, listener: () => void): void;
}

/** A connection that can be closed at once, and whose statement can be cancelled. */
export class Connection extends pg.Client {
  // The driver's types omit these (PostgreSQL, 55.2.8).
  declare readonly processID: number | null;
  declare readonly secretKey: number | null;
  readonly socket: Socket;
  readonly createdAt = performance.now();

  constructor(config: ClientConfig = {}) {
    const socket = new Socket();
    super({ ...config, stream: () => socket });
    this.socket = socket;
    // Otherwise a lost connection would be an uncaught exception. Statements reject by themselves.
    this.on('error', () => undefined);
  }

  /** Breaks the connection as if the peer had closed it: pending statements fail. */
  destroy(): void {
    this.socket.destroy();
  }

  /**
   * Cancels whatever statement runs when the request arrives, by a separate connection that needs no
   * login and reaches the right backend through a pooler, too. Resolves when the server has closed
   * that connection, which means that it has signalled the backend, or when the request has failed.
   */
  cancel(): Promise<void> {
    const { host, port, ssl, processID, secretKey } = this;
    if (processID === null || secretKey === null) return Promise.resolve();
    const wire = new pg.Connection({ ssl }) as unknown as Wire;
    const { promise, resolve } = Promise.withResolvers<void>();
    let isSent = false;
    const timer = setTimeout(() => {
      wire.stream.destroy();
      // The request may still arrive, and would cancel the next statement.
      if (isSent) this.destroy();
    }, CANCEL_TIMEOUT_MS).unref();
    const send = () => {
      isSent = true;
      wire.cancel(processID, secretKey);
    };
    wire.on('connect', () => (ssl ? wire.requestSsl() : send()));
    wire.on('sslconnect', send);
    wire.on('error', () => wire.stream.destroy());
    wire.on('end', () => {
      clearTimeout(timer);
      resolve();
    });
    if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`);
    else wire.connect(port, host);
    return promise;
  }
}

/** Returns whether the connection was lost before or during a statement: its outcome is unknown. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // 57P: the server closes the connection, whatever the statement (PostgreSQL, appendix A).
  if ('code' in error) return /^(57P\d\d|ECONNRESET|EPIPE)$/.test(String(error.code));
  // Errors of the driver.
  return /^(Connection terminated( unexpectedly)?|Client (was closed|has encountered a connection error) and is not queryable)$/.test(
    error.message,
  );
}
