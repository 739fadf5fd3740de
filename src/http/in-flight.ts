import { ServerResponse, type IncomingMessage, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { hasBody } from './request-headers.ts';
import { RequestQueue, Ticket } from './request-queue.ts';

/** Queue of the requests without a response: one per process, as there is one event loop. */
export const inFlight = new RequestQueue();

/** Property of a response with its ticket. A WeakMap would be slower in garbage collection. */
const TICKET = Symbol('ticket');
type CountedResponse = ServerResponse & { [TICKET]?: RequestTicket };

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

/** Destroys the connection of an incomplete response. */
export function abortResponse(res: ServerResponse): void {
  // The connection of a finished response may serve other requests.
  if (!res.destroyed && !res.writableFinished) res.req.socket.destroy();
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
