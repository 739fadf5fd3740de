import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Config } from '../core/config.ts';
import { counters } from '../core/metrics.ts';
import { limitUnread, memoryOf, REQUEST_BYTES } from './body.ts';
import { drop, droppedBytes, isClosing, isDropped, markClosing } from './closing-connection.ts';
import { networkOfClient } from './dependencies.ts';
import { cancelFor } from './request-timeout.ts';
import { trackConnections } from './drain.ts';
import { isPending, responseOn } from './in-flight.ts';
import { limitMemory } from './memory-limit.ts';
import { MAX_HEADERS, shortenHeaders } from './request-headers.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const RECEIVE_TIMEOUT_MS = 30_000;
/**
 * Interval between checks of the two timeouts above, in ms. Node's default of 30 seconds would keep
 * slow clients that much longer.
 */
const CHECK_INTERVAL_MS = 1_000;
const KEEP_ALIVE_MS = 5_000;
/**
 * Minimum time without traffic after which a connection is destroyed, in ms. Longer than the
 * timeouts that send an error response: the two above and the request timeout.
 */
const STALLED_MS = 35_000;
const AFTER_TIMEOUT_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;

const rejected = counters(
  'shopfront_http_rejected_total',
  'Malformed requests, requests not received in time, connections beyond MAX_CONNECTIONS, and connections closed to free memory.',
  'reason',
  ['malformed', 'timeout', 'connections', 'memory'],
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

/** Maximum number of requests that wait for their turn on a connection, and of their bytes. */
const MAX_WAITING = 64;
const MAX_WAITING_BYTES = 64_000;
/** Memory of an unsent response per byte: Node keeps a text and its encoded form. */
const RESPONSE_FACTOR = 2;
/** Requests that wait for their turn. */
const waitingOn = new WeakMap<Socket, Set<IncomingMessage>>();

/** Connections that are closed after their pending responses: later data cannot be parsed. */
const unreadable = new WeakSet<Socket>();

/** Handles connections that upgrade from HTTP to another protocol. */
export interface Upgrades {
  /** Returns whether to upgrade this request. Others get a normal response. */
  accepts(req: IncomingMessage): boolean;
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

/**
 * Creates a server that does not listen yet, with limits on slow clients and on connections. The
 * size of bodies is limited elsewhere.
 */
export function createHttpServer(
  config: Config,
  listener: RequestListener,
  upgrades?: Upgrades,
): Server {
  const onRequest: RequestListener = (req, res) => {
    if (isClosing(req.socket)) return drop(req, res);
    limitUnread(req);
    shortenHeaders(req);
    if (res.socket) listener(req, res);
    else inTurn(req, res, listener);
  };
  const server = createServer(
    {
      shouldUpgradeCallback: (req) => upgrades?.accepts(req) ?? false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: RECEIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
      // Node would reject a request without Host and still emit the requests received behind it.
      // See rejectInvalidHeaders.
      requireHostHeader: false,
    },
    onRequest,
  );
  // Without this listener, Node would respond itself, without any limits. See rejectInvalidHeaders.
  server.on('checkExpectation', onRequest);
  // Without this listener, Node would send 100 (Continue) for a request that is dropped.
  server.on('checkContinue', (req, res) => {
    if (!isClosing(req.socket)) res.writeContinue();
    server.emit('request', req, res);
  });
  server.on('upgrade', (req, socket, head) => {
    shortenHeaders(req);
    // The stream of an HTTP server is a socket.
    upgrades?.upgrade(req, socket as Socket, head);
  });
  // Some versions of Node drop further lines instead of rejecting the request.
  server.maxHeadersCount = MAX_HEADERS + 1;
  server.timeout = Math.max(STALLED_MS, config.requestTimeoutMs + AFTER_TIMEOUT_MS);
  server.on('clientError', (error, stream) => rejectMalformed(error, stream, server.timeout));
  server.on('drop', () => rejected.connections++);
  // Without this listener, Node destroys the socket.
  server.on('timeout', (socket) => isPending(socket) || socket.destroy());
  server.maxConnections = config.maxConnections;
  trackConnections(server);
  const networkOf = (socket: Socket) =>
    networkOfClient(config, responseOn(socket)?.req ?? { socket, headers: {} });
  limitMemory(server, { bytesOf, networkOf }, () => rejected.memory++);
  server.on('connection', (socket) => socket.once('close', () => cancelFor(socket)));
  return server;
}

/**
 * Passes on a pipelined request (RFC 9112, 9.3.2) when all earlier responses of the connection have
 * been sent. Executed at once, its response would have to be kept until then.
 */
function inTurn(req: IncomingMessage, res: ServerResponse, listener: RequestListener): void {
  const { socket } = req;
  const queue = waitingOn.get(socket) ?? new Set();
  waitingOn.set(socket, queue);
  // Node goes on reading after a complete body, even if nobody has read it.
  if (queue.size >= MAX_WAITING || waitingBytes(socket) > MAX_WAITING_BYTES)
    return void socket.destroy();
  queue.add(req);
  res.once('socket', () => {
    queue.delete(req);
    // Node 22 also finishes a response whose client has disconnected.
    if (socket.writable) listener(req, res);
  });
}

// Returns the memory of the requests that wait for their turn, in bytes.
function waitingBytes(socket: Socket): number {
  let bytes = 0;
  for (const req of waitingOn.get(socket) ?? []) bytes += memoryOf(req);
  return bytes;
}

// Returns the approximate memory of the unsent responses and of the requests of a connection.
function bytesOf(socket: Socket): number {
  const current = responseOn(socket)?.req;
  const requests = waitingOn.get(socket)?.size ?? 0;
  return (
    socket.writableLength * RESPONSE_FACTOR +
    (current ? memoryOf(current) : 0) +
    waitingBytes(socket) +
    requests * REQUEST_BYTES +
    droppedBytes(socket)
  );
}

// Responds as Node does without a listener, and counts the error.
function rejectMalformed(
  { code = '' }: NodeJS.ErrnoException,
  stream: Duplex,
  timeout: number,
): void {
  // The stream of an HTTP server is a socket.
  const socket = stream as Socket;
  // Node also reports all data that arrives later.
  if (unreadable.has(socket)) return;
  unreadable.add(socket);
  markClosing(socket);
  // A client that keeps sending and reads no response would keep the connection open.
  const timer = setTimeout(() => socket.destroy(), timeout).unref();
  socket.once('close', () => clearTimeout(timer));
  if (code === TIMEOUT) rejected.timeout++;
  else if (code.startsWith('HPE_') && code !== CLIENT_DISCONNECTED) rejected.malformed++;
  const pending = responseOn(socket);
  if (!socket.writable || !pending?.req.complete) return respondAndClose(socket, code);
  // The malformed data belongs neither to the pending request nor to complete requests behind it.
  closeAfterPending(socket, pending, code);
}

function closeAfterPending(socket: Socket, pending: ServerResponse, code: string): void {
  pending.once('close', () => {
    const next = responseOn(socket);
    if (!next || isDropped(next)) socket.destroySoon();
    else if (next.req.complete) closeAfterPending(socket, next, code);
    else respondAndClose(socket, code);
  });
}

function respondAndClose(socket: Socket, code: string): void {
  if (socket.writable && !responseOn(socket)?.headersSent)
    socket.write(`HTTP/1.1 ${STATUS_LINES[code] ?? '400 Bad Request'}\r\n${RAW_HEADERS}\r\n\r\n`);
  socket.destroySoon();
}
