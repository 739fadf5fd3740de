import { ServerResponse, type IncomingMessage, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { isClosing, markClosing } from './closing-connection.ts';
import { hasBody } from './request-headers.ts';
import { RequestQueue, Ticket } from './request-queue.ts';

/** Queue of the requests without a response: one per process, as there is one event loop. */
export const inFlight = new RequestQueue();

/** Property of a response with its ticket. A WeakMap would be slower in garbage collection. */
const TICKET = Symbol('ticket');
type CountedResponse = ServerResponse & { [TICKET]?: RequestTicket };

/** Maximum number of responses that wait for the one before them on the same connection. */
const MAX_QUEUED = 64;

/** Maximum size of these responses, in bytes. */
const MAX_QUEUED_BYTES = 1_000_000;

/**
 * Pending responses by connection, in order. Clients may pipeline requests (RFC 9112, 9.3.2), and
 * each response waits for the earlier ones.
 */
const queues = new WeakMap<Socket, Set<ServerResponse>>();

/** Methods whose request body is read. Other requests never wait for their body. */
const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** Called to start or to reject a request. */
export interface TicketListeners {
  start: RequestListener;
  reject: RequestListener;
}

/** A request over HTTP. */
class RequestTicket extends Ticket {
  /** Called when the response closes. */
  onClosed: (() => void) | undefined;

  constructor(
    private readonly req: IncomingMessage,
    private readonly res: ServerResponse,
    private readonly listeners: TicketListeners,
  ) {
    super(performance.now(), METHODS_WITH_BODY.has(req.method ?? '') && hasBody(req));
    (res as CountedResponse)[TICKET] = this;
    res.on('close', onClose);
  }

  start(): void {
    this.listeners.start(this.req, this.res);
  }

  reject(): void {
    this.listeners.reject(this.req, this.res);
  }

  isReceived(): boolean {
    return !this.hasBody || this.req.complete;
  }

  onceReceived(listener: () => void): void {
    this.req.once('end', listener);
  }
}

/**
 * Queues the request, starts it unless its client disconnects, and counts it until its response.
 */
export function begin(req: IncomingMessage, res: ServerResponse, listeners: TicketListeners): void {
  inFlight.add(new RequestTicket(req, res, listeners));
}

/** Starts the request at once, and counts it until its response. */
export function beginAtOnce(
  req: IncomingMessage,
  res: ServerResponse,
  listeners: TicketListeners,
): void {
  const ticket = new RequestTicket(req, res, listeners);
  inFlight.addStarted(ticket);
  ticket.start();
}

/**
 * Stops counting the request, even without a response: it waits for something other than the event
 * loop or the database, such as a slow reader or a password hash.
 */
export function exclude(res: ServerResponse): void {
  const ticket = (res as CountedResponse)[TICKET];
  if (ticket) inFlight.remove(ticket, res.headersSent && res.statusCode < 500);
}

/** Returns when the request arrived, in ms of `performance.now()`. */
export function arrivalOf(res: ServerResponse): number {
  return (res as CountedResponse)[TICKET]?.arrivedAt ?? performance.now();
}

/** Returns the response that currently owns the socket. */
export function responseOn(socket: Socket): CountedResponse | undefined {
  // Node has no public property for it.
  const res: unknown = Reflect.get(socket, '_httpMessage');
  return res instanceof ServerResponse ? res : undefined;
}

/** Returns whether the current request of the socket is queued or in progress. */
export function isPending(socket: Socket): boolean {
  const state = responseOn(socket)?.[TICKET]?.state;
  return state === 'queued' || state === 'running';
}

/**
 * Adds the response to those of its connection. Returns false if too many are pending, because the
 * client does not read them.
 */
export function mayQueue(res: ServerResponse): boolean {
  const { socket } = res.req;
  const queue = queues.get(socket) ?? new Set();
  queues.set(socket, queue.add(res));
  res.once('close', () => queue.delete(res));
  return queue.size <= MAX_QUEUED;
}

/**
 * Returns whether this response waits on its connection and the waiting responses are too large,
 * because the client does not read the current one.
 */
export function exceedsQueueLimit(res: ServerResponse): boolean {
  if (res.socket) return false;
  let bytes = 0;
  for (const waiting of queues.get(res.req.socket) ?? [])
    if (!waiting.socket) bytes += waiting.writableLength;
  return bytes > MAX_QUEUED_BYTES;
}

/**
 * Closes the connection after the response to the last request received on it, because that request
 * may have started. Requests that arrive later are not executed. Returns whether this response is
 * the last.
 */
export function closeAfterLast(res: ServerResponse): boolean {
  const { socket } = res.req;
  const last = [...(queues.get(socket) ?? [])].at(-1) ?? res;
  const wasClosing = isClosing(socket);
  markClosing(socket);
  // Its head may be written already, without `Connection: close`.
  if (last !== res && !wasClosing) last.once('finish', () => socket.destroySoon());
  return last === res;
}

/** Destroys the connection of an incomplete response when the earlier responses have been sent. */
export function abortResponse(res: ServerResponse): void {
  // The connection of a finished response may serve other requests.
  if (res.destroyed || res.writableFinished) return;
  markClosing(res.req.socket);
  // Node still sends the queued part of a destroyed response, and leaves the connection open
  // without the later responses.
  whenCurrent(res, () => res.req.socket.destroy());
  res.destroy();
}

/**
 * Runs the function when all earlier responses of the connection have been sent. Until then, a
 * queued response is not written to the socket.
 */
export function whenCurrent(res: ServerResponse, run: () => void): void {
  if (res.socket) run();
  else res.once('socket', run);
}

/** Destroys the pending responses of a closed connection. Node ignores those before a CONNECT. */
export function closeQueue(socket: Socket): void {
  for (const res of queues.get(socket) ?? []) res.destroy();
}

/** Calls the listener when the response closes. At most once for each response. */
export function onceClosed(res: ServerResponse, listener: () => void): void {
  const ticket = (res as CountedResponse)[TICKET];
  // One listener of the event is cheaper than two.
  if (ticket) ticket.onClosed = listener;
  else res.on('close', listener);
}

function onClose(this: CountedResponse): void {
  exclude(this);
  this[TICKET]?.onClosed?.();
}
