import { createServer, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../core/config.ts';
import { counters } from '../core/metrics.ts';
import { boundUnread } from './body.ts';
import { drop, isClosing, isDropped, noteClosing } from './closing-connection.ts';
import { giveUpFor } from './request-timeout.ts';
import { trackConnections } from './drain.ts';
import { closeQueue, isPending, responseOn } from './in-flight.ts';
import { ignoreLongHeaders } from './request-headers.ts';
import type { Upgrades } from '../graphql/subscriptions/websocket.ts';

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
const TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';
/** A client that leaves before the end of its request. */
const LEFT = 'HPE_INVALID_EOF_STATE';
/** The status of what Node cannot read, by the code of its error; 400 for all else. */
const STATUS: Readonly<Record<string, string>> = {
  [TIMEOUT]: '408 Request Timeout',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
};

/** What the response to a request that Node cannot read has besides its status. */
const RAW_HEADERS = ['Connection: close', 'Access-Control-Allow-Origin: *', 'Cache-Control: no-store', 'Content-Length: 0'].join('\r\n');

/** Connections on which a request could not be read, and so nothing behind it. They are closed when their pending requests have been answered. */
const unreadable = new WeakSet<Socket>();

/** A server that listens nowhere yet, with its limits on slow and on many clients. Bodies and numbers of headers are limited further in. */
export function createHttpServer(config: Config, listener: RequestListener, upgrades?: Upgrades): Server {
  const onRequest: RequestListener = (req, res) => {
    if (isClosing(req.socket)) return drop(req, res);
    boundUnread(req);
    ignoreLongHeaders(req);
    listener(req, res);
  };
  const server = createServer(
    {
      shouldUpgradeCallback: (req) => upgrades?.takes(req) ?? false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Node would reject a request without Host by itself and still emit the requests received behind it. See refuseHeaders.
      requireHostHeader: false,
    },
    onRequest,
  );
  // Without this listener, Node would answer by itself, past all limits. See refuseHeaders.
  server.on('checkExpectation', onRequest);
  // Without this one, Node would send 100 (Continue) for a request that is dropped.
  server.on('checkContinue', (req, res) => {
    if (!isClosing(req.socket)) res.writeContinue();
    server.emit('request', req, res);
  });
  server.on('upgrade', (req, socket, head) => {
    ignoreLongHeaders(req);
    // Of HTTP's own server, the stream is a socket.
    upgrades?.upgrade(req, socket as Socket, head);
  });
  server.timeout = Math.max(STALLED_MS, config.requestDeadlineMs + AFTER_DEADLINE_MS);
  server.on('clientError', (error, stream) => refuseMalformed(error, stream, server.timeout));
  server.on('drop', () => rejected.connections++);
  // Without this listener, Node destroys the socket.
  server.on('timeout', (socket) => isPending(socket) || socket.destroy());
  server.maxConnections = config.maxConnections;
  trackConnections(server);
  server.on('connection', (socket) =>
    socket.once('close', () => {
      giveUpFor(socket);
      closeQueue(socket);
    }),
  );
  return server;
}

// As Node does without a listener, and counted.
function refuseMalformed({ code = '' }: NodeJS.ErrnoException, stream: Duplex, timeout: number): void {
  // Of HTTP's own server, the stream is a socket.
  const socket = stream as Socket;
  // Node reports each further packet, too.
  if (unreadable.has(socket)) return;
  unreadable.add(socket);
  noteClosing(socket);
  // A client that goes on sending and reads no response would keep the connection open.
  const timer = setTimeout(() => socket.destroy(), timeout).unref();
  socket.once('close', () => clearTimeout(timer));
  if (code === TIMEOUT) rejected.timeout++;
  else if (code.startsWith('HPE_') && code !== LEFT) rejected.malformed++;
  const pending = responseOn(socket);
  if (!socket.writable || !pending?.req.complete) return endWith(socket, code);
  // What cannot be read is no part of the request that the client waits for, nor of those behind it that are complete.
  closeBehind(socket, pending, code);
}

function closeBehind(socket: Socket, pending: ServerResponse, code: string): void {
  pending.once('close', () => {
    const next = responseOn(socket);
    if (!next || isDropped(next)) socket.destroySoon();
    else if (next.req.complete) closeBehind(socket, next, code);
    else endWith(socket, code);
  });
}

function endWith(socket: Socket, code: string): void {
  if (socket.writable && !responseOn(socket)?.headersSent)
    socket.write(`HTTP/1.1 ${STATUS[code] ?? '400 Bad Request'}\r\n${RAW_HEADERS}\r\n\r\n`);
  socket.destroySoon();
}
