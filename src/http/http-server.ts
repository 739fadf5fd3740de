import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import type { Config } from '../core/config.ts';
import { counters } from '../core/metrics.ts';
import { MAX_HEADERS } from './headers.ts';

// Limits of Node on connections. A proxy in front has stricter ones (deploy/nginx).
const HEADERS_TIMEOUT_MS = 10_000;
const RECEIVE_TIMEOUT_MS = 30_000;
/** Interval between checks of the two timeouts above, in ms. */
const CHECK_INTERVAL_MS = 1_000;
const KEEP_ALIVE_MS = 5_000;
/** Minimum time without traffic after which a connection is destroyed, in ms. */
const STALLED_MS = 35_000;
const AFTER_TIMEOUT_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;

const rejected = counters(
  'shopfront_http_rejected_total',
  'Malformed requests, requests not received in time, and connections beyond MAX_CONNECTIONS.',
  'reason',
  ['malformed', 'timeout', 'connections'],
);
const TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';
/** A client that disconnects before the end of its request. */
const CLIENT_DISCONNECTED = 'HPE_INVALID_EOF_STATE';
/** Status lines for requests that Node cannot parse, by error code. 400 for all others. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  [TIMEOUT]: '408 Request Timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};
/** Headers of the response to a request that Node cannot parse. */
const RAW_HEADERS = [
  'Connection: close',
  'Access-Control-Allow-Origin: *',
  'Cache-Control: no-store',
  'Content-Length: 0',
].join('\r\n');

/** Handles connections that upgrade from HTTP to another protocol. */
export interface Upgrades {
  /** Returns whether to upgrade this request. Others get a normal response. */
  accepts(req: IncomingMessage): boolean;
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

/** Creates a server that does not listen yet, with Node's limits on slow clients. */
export function createHttpServer(
  config: Pick<Config, 'maxConnections' | 'requestTimeoutMs'>,
  listener: RequestListener | Express,
  upgrades?: Upgrades,
): Server {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: RECEIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      shouldUpgradeCallback: (req) => upgrades?.accepts(req) ?? false,
    },
    listener,
  );
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.maxConnections = config.maxConnections;
  server.timeout = Math.max(STALLED_MS, config.requestTimeoutMs + AFTER_TIMEOUT_MS);
  // Express finds no path in a target such as `foo://x?y`, and would respond itself.
  server.prependListener('request', (req) => {
    if (!/^(?:\/|[a-z][a-z\d+.-]*:\/\/[^?#]*\/)/i.test(req.url ?? '')) req.url = '*';
  });
  // The stream of an HTTP server is a socket.
  server.on('upgrade', (req, socket, head) => upgrades?.upgrade(req, socket as Socket, head));
  server.on('drop', () => rejected.connections++);
  // Responds as Node does without a listener, and counts the error.
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    if (code === TIMEOUT) rejected.timeout++;
    else if (code.startsWith('HPE_') && code !== CLIENT_DISCONNECTED) rejected.malformed++;
    if (!socket.writable) socket.destroy();
    else
      socket.end(`HTTP/1.1 ${STATUS_LINES[code] ?? '400 Bad Request'}\r\n${RAW_HEADERS}\r\n\r\n`);
  });
  return server;
}
