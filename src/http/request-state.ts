import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Express, RequestHandler, Response } from 'express';
import type { Context, RequestHandle } from '../request/context.ts';
import { requestIdOf } from '../telemetry/request-id.ts';
import type { RequestRecord } from '../telemetry/request-record.ts';
import type { Dependencies } from './dependencies.ts';
import type { ErrorFormat, SendError } from './responses.ts';

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
  /** Error format of the endpoint, once it is known. */
  errorFormat?: ErrorFormat;
  /** Context of the services, once the caller is authenticated. */
  ctx?: Context | undefined;
  /** Number of bytes of the body that were written before its end. */
  written = 0;
  /** The body holds no credential and may be compressed. */
  isCompressible = false;
  /** Ends the request for admission, because it now waits for other than the event loop. */
  exclude: () => void = () => undefined;
  private controller: AbortController | undefined;
  private aborted: { reason: Error | undefined } | undefined;
  private closeListeners: (() => void)[] = [];

  constructor(
    { headers, method = '' }: IncomingMessage,
    /** Sends an error while the handlers are still at work, whose later results are dropped. */
    public sendError: (error: unknown) => void,
  ) {
    this.requestId = requestIdOf(headers);
    this.record = { requestId: this.requestId, method, api: 'other', bytes: 0, end: 'answered' };
  }

  /** Aborted when the client is gone or the time is up. */
  get signal(): AbortSignal {
    // Created on first access, because most requests need none.
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.aborted) this.controller.abort(this.aborted.reason);
    }
    return this.controller.signal;
  }

  /** Calls the listener when the response closes, complete or not. */
  onClose(listener: () => void): void {
    this.closeListeners.push(listener);
  }

  /** Calls the listeners, and releases the response: statements keep this object for a while. */
  close(): void {
    const listeners = this.closeListeners;
    this.closeListeners = [];
    for (const listener of listeners) listener();
    this.ctx = undefined;
    this.sendError = () => undefined;
    this.exclude = () => undefined;
  }

  abort(reason?: Error): void {
    this.aborted ??= { reason };
    this.controller?.abort(reason);
  }
}

/** Sets `res.locals` and `X-Request-Id`, and reports the request when its response closes. */
export function openRequest(
  { isDraining, observe, tracing }: Dependencies,
  sendError: SendError,
): RequestHandler {
  return (req, res, next) => {
    const startedAt = performance.now();
    const state = (res.locals = new RequestState(req, (error) => sendError(res, error)));
    res.setHeader('X-Request-Id', state.requestId);
    if (isDraining()) res.setHeader('Connection', 'close');
    res.once('close', () => {
      completeRecord(state, res);
      if (!res.writableFinished) state.abort();
      state.close();
      observe(state.record, performance.now() - startedAt);
    });
    if (tracing) tracing.run(req, res, state.record, next);
    else next();
  };
}

/** Counts the bytes of bodies of unknown length, for the responses of an Express app. */
export function countWrites(response: Express['response']): void {
  response.write = function (this: Response, ...args: unknown[]) {
    this.locals.written += Buffer.byteLength(args[0] as string | Uint8Array);
    // oxlint-disable-next-line typescript/unbound-method -- Called with the response.
    return Reflect.apply(ServerResponse.prototype.write, this, args);
  };
}

function completeRecord({ record, written }: RequestState, res: Response): void {
  if (res.headersSent) {
    record.status = res.statusCode;
    const length =
      res.writableFinished && record.method !== 'HEAD' && res.getHeader('Content-Length');
    record.bytes = length ? Number(length) : written;
  }
  // A subscription ends whenever its client disconnects.
  const isDone =
    res.writableFinished || (res.headersSent && record.operation?.type === 'subscription');
  if (!isDone && record.end === 'answered') record.end = 'aborted';
}
