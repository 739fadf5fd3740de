import type { Socket } from 'node:net';
import type { RequestHandler, Response } from 'express';
import type { Context, RequestHandle } from '../request/context.ts';
import { requestIdOf } from '../telemetry/request-log.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';
import type { Dependencies } from './dependencies.ts';
import type { Endpoint } from './endpoints.ts';
import type { ErrorKey } from './error-response.ts';

declare global {
  // eslint-disable-next-line typescript/no-namespace -- Express documents this way to type them.
  namespace Express {
    interface Locals extends RequestState {}
  }
}

/** What the middleware and the services know of a request: `res.locals`. */
class RequestState implements RequestHandle {
  /** Identifies the request in its response and in the log. */
  readonly requestId: string;
  /** Passed to the observer when the request is over. */
  readonly record: RequestRecord;
  /** Of the endpoint, once it is known. */
  errorKey?: ErrorKey;
  /** Whether errors also have `error` and `error_description` (RFC 6749, 5.2). */
  isOauth = false;
  /** Context of the services. */
  ctx: Context | undefined;
  /** Ends the request for admission, because it now waits for other than the event loop. */
  exclude: () => void = () => undefined;
  private controller: AbortController | undefined;
  private closeListeners: (() => void)[] = [];

  constructor(
    { req: { headers, method } }: Response,
    /** Sends an error while the handlers are still at work, whose later results are dropped. */
    public sendError: (error: unknown) => void,
  ) {
    this.requestId = requestIdOf(headers);
    this.record = { requestId: this.requestId, method, api: 'other', bytes: 0, end: 'answered' };
  }

  /** Aborted when the client is gone or the time is up. */
  get signal(): AbortSignal {
    // Created on first access, because most requests need none.
    return (this.controller ??= new AbortController()).signal;
  }

  abort(reason?: Error): void {
    (this.controller ??= new AbortController()).abort(reason);
  }

  /** Calls the listener when the response closes, complete or not. */
  onClose(listener: () => void): void {
    this.closeListeners.push(listener);
  }

  /** Calls the listeners, and releases the response: statements keep this object for a while. */
  close(): void {
    this.exclude();
    for (const listener of this.closeListeners) listener();
    this.closeListeners = [];
    this.ctx = undefined;
    this.sendError = () => undefined;
  }
}

const openResponses = new WeakMap<Socket, Response[]>();

/** Returns the open responses of the connection, which Node forgets at an upgrade and at CONNECT. */
export function responsesOf(socket: Socket): readonly Response[] {
  return openResponses.get(socket) ?? [];
}

/** Sets `res.locals`, and reports the request when its response closes. */
export function openRequest(
  { isDraining, observe, tracing }: Dependencies,
  sendError: (res: Response, error: unknown) => void,
): RequestHandler {
  return (req, res, next) => {
    const startedAt = performance.now();
    const { socket } = req;
    const { bytesWritten } = socket;
    const open = openResponses.get(socket) ?? [];
    openResponses.set(socket, open);
    open.push(res);
    const state = (res.locals = new RequestState(res, (error) => sendError(res, error)));
    if (isDraining()) res.setHeader('Connection', 'close');
    res.once('close', () => {
      open.splice(open.indexOf(res), 1);
      const { record, ctx } = state;
      if (ctx?.caller) record.user = ctx.caller.username;
      const isDone = res.writableFinished;
      if (!isDone) state.abort();
      if (res.headersSent) {
        record.status = res.statusCode;
        // Without `Content-Length`, counts the headers and chunks, too.
        const length = res.getHeader('Content-Length') ?? socket.bytesWritten - bytesWritten;
        record.bytes ||= req.method === 'HEAD' ? 0 : Number(length);
      }
      // A subscription ends whenever its client disconnects.
      const isSubscription = res.headersSent && record.operation?.type === 'subscription';
      if (!isDone && !isSubscription && record.end === 'answered') record.end = 'aborted';
      state.close();
      observe(record, performance.now() - startedAt);
    });
    if (tracing) tracing.run(req, res, state.record, next);
    else next();
  };
}

/** Names the endpoint in the request's record, and sets the key of its errors. */
export function describe({ api = 'other', errorKey }: Endpoint, name: string): RequestHandler {
  return (_req, { locals }, next) => {
    Object.assign(locals.record, { api, endpoint: name });
    locals.errorKey = errorKey ?? 'detail';
    next();
  };
}
