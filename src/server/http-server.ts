import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../kit/config.ts';
import { counters } from '../kit/metrics.ts';
import { boundUnread } from './body.ts';
import { giveUpFor } from './deadline.ts';
import { closeQueue, isPending, responseOn } from './in-flight.ts';
import type { Upgrades } from './graphql/web-socket.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How often the two above are looked at: Node's own half a minute would let slow clients sit that much longer. */
const CHECK_EVERY_MS = 1_000;
const KEEP_ALIVE_MS = 5_000;
/** A connection on which nothing moves for so long is broken off: later than what says why, the two above and the deadline of requests. */
const STALLED_MS = 35_000;
const AFTER_DEADLINE_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;

const rejected = counters(
  'shopfront_http_rejected_total',
  'Requests that are not HTTP or did not arrive in time, and connections beyond MAX_CONNECTIONS.',
  'reason',
  ['malformed', 'timeout', 'connections'],
);
/** The status of what Node cannot read, by the code of its error; 400 for all else. */
const STATUS: Readonly<Record<string, string>> = {
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

/** A server that listens nowhere yet, with its limits on slow and on many clients. Bodies and numbers of headers are limited further in. */
export function createHttpServer(config: Config, listener: RequestListener, upgrades?: Upgrades): Server {
  const server = createServer(
    {
      shouldUpgradeCallback: (req) => upgrades?.takes(req) ?? false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (req, res) => {
      boundUnread(req);
      listener(req, res);
    },
  );
  // Of HTTP's own server, the stream is a socket.
  server.on('upgrade', (req, socket, head) => upgrades?.upgrade(req, socket as Socket, head));
  server.timeout = Math.max(STALLED_MS, config.requestDeadlineMs + AFTER_DEADLINE_MS);
  server.on('clientError', refuseMalformed);
  server.on('drop', () => rejected.connections++);
  // Without this listener, Node destroys the socket.
  server.on('timeout', (socket) => isPending(socket) || socket.destroy());
  server.maxConnections = config.maxConnections;
  server.on('connection', (socket) =>
    socket.once('close', () => {
      giveUpFor(socket);
      closeQueue(socket);
    }),
  );
  return server;
}

// As Node does without a listener, and counted.
function refuseMalformed({ code = '' }: NodeJS.ErrnoException, stream: Duplex): void {
  // Of HTTP's own server, the stream is a socket.
  const socket = stream as Socket;
  if (code !== 'ECONNRESET') rejected[code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'timeout' : 'malformed']++;
  if (socket.writable && !responseOn(socket)?.headersSent)
    socket.write(`HTTP/1.1 ${STATUS[code] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  socket.destroySoon();
}
