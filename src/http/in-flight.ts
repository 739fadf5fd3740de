import { ServerResponse, type IncomingMessage, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import { isClosing, noteClosing } from './closing-connection.ts';
import { hasBody } from './request-headers.ts';
import { RequestQueue, Ticket } from './request-queue.ts';

/** The requests without a response. One process has one event loop, and so one queue. */
export const inFlight = new RequestQueue();

/** Where a response has its ticket: a WeakMap costs the garbage collector more than a property. */
const TICKET = Symbol('ticket');
type Counted = ServerResponse & { [TICKET]?: Ticket };

/** Maximum number of responses that wait for the one before them on the same connection. */
const MAX_QUEUED = 64;

/** Maximum number of bytes of the same responses. */
const MAX_QUEUED_BYTES = 1_000_000;

/** Responses that wait for others on their connection to go first, for a client may send more before it is answered (RFC 9112, 9.3.2). */
const queues = new WeakMap<Socket, Set<ServerResponse>>();

/** Methods of the requests whose body is read. Others are executed without it, and so never wait for it. */
const READ: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/** What is done with a request: it is started, or rejected. */
export interface Listeners {
  start: RequestListener;
  reject: RequestListener;
}

/** A request over HTTP. */
class RequestTicket extends Ticket {
  constructor(
    private readonly req: IncomingMessage,
    private readonly res: ServerResponse,
    private readonly listeners: Listeners,
  ) {
    super(performance.now(), READ.has(req.method ?? '') && hasBody(req));
    (res as Counted)[TICKET] = this;
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

/** Starts the request when its turn comes, unless its client has left, and counts it until it is answered. */
export function takeOff(req: IncomingMessage, res: ServerResponse, listeners: Listeners): void {
  inFlight.add(new RequestTicket(req, res, listeners));
}

/** Starts the request at once, and counts it until it is answered. */
export function takeOffAtOnce(req: IncomingMessage, res: ServerResponse, listeners: Listeners): void {
  const ticket = new RequestTicket(req, res, listeners);
  inFlight.addStarted(ticket);
  ticket.start();
}

/**
 * Counts the request no longer, though it may have no response yet: it waits for something that neither the event loop nor the database
 * does, such as a slow reader or a password hash.
 */
export function setAside(res: ServerResponse): void {
  const ticket = (res as Counted)[TICKET];
  if (ticket) inFlight.remove(ticket, res.headersSent && res.statusCode < 500);
}

/** Returns when the request arrived, on the clock of `performance.now()`. */
export function arrivalOf(res: ServerResponse): number {
  return (res as Counted)[TICKET]?.arrivedAt ?? performance.now();
}

/** Returns the response that the socket is for at the moment. */
export function responseOn(socket: Socket): Counted | undefined {
  // Node has no other name for it.
  const res: unknown = Reflect.get(socket, '_httpMessage');
  return res instanceof ServerResponse ? res : undefined;
}

/** Returns whether the request that the socket waits for is queued or in progress. */
export function isPending(socket: Socket): boolean {
  const state = responseOn(socket)?.[TICKET]?.state;
  return state === 'queued' || state === 'running';
}

/** Whether the answer may wait for those before it on its connection. Where they are too many, nobody reads them. */
export function mayQueue(res: ServerResponse): boolean {
  const { socket } = res.req;
  const queue = queues.get(socket) ?? new Set();
  queues.set(socket, queue.add(res));
  res.once('close', () => queue.delete(res));
  return queue.size <= MAX_QUEUED;
}

/** Returns whether the responses that wait on the connection of this one, of which it is one, hold too much: nobody reads the one in front. */
export function holdsTooMuch(res: ServerResponse): boolean {
  if (res.socket) return false;
  let held = 0;
  for (const waiting of queues.get(res.req.socket) ?? []) if (!waiting.socket) held += waiting.writableLength;
  return held > MAX_QUEUED_BYTES;
}

/**
 * Closes the connection after the response to the last request that has been received on it: the server has perhaps started that one,
 * and its client needs the response. Requests that arrive later are not executed. Returns whether this response is that one.
 */
export function closeAfterLast(res: ServerResponse): boolean {
  const { socket } = res.req;
  const last = [...(queues.get(socket) ?? [])].at(-1) ?? res;
  const isNoted = isClosing(socket);
  noteClosing(socket);
  // Its head may be written already, and say that the connection stays.
  if (last !== res && !isNoted) last.once('finish', () => socket.destroySoon());
  return last === res;
}

/** Ends the connection of a response that has begun and cannot be completed: once those in front of it have been sent. */
export function breakOff(res: ServerResponse): void {
  noteClosing(res.req.socket);
  // Node still sends the queued part of a destroyed response, and leaves the connection open without the responses behind it.
  whenInFront(res, () => res.req.socket.destroy());
  res.destroy();
}

/** Runs the function when all earlier responses of the connection have been sent. A queued response is not written to the socket until then. */
export function whenInFront(res: ServerResponse, run: () => void): void {
  if (res.socket) run();
  else res.once('socket', run);
}

/** Closes the answers that waited on a connection that is closed: those in front of a CONNECT, Node forgets. */
export function closeQueue(socket: Socket): void {
  for (const res of queues.get(socket) ?? []) res.destroy();
}

function onClose(this: ServerResponse): void {
  setAside(this);
}
