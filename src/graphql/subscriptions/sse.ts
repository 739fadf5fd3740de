import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import type { ExecutionResult } from 'graphql';
import { createHandler } from 'graphql-sse';
import type { Caller, Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import type { DomainError } from '../../core/errors.ts';
import { parseJson } from '../../http/body.ts';
import { identify, isAnonymous } from '../../http/credentials.ts';
import { contextOf } from '../../http/dependencies.ts';
import { HttpError, unavailableError } from '../../http/http-error.ts';
import {
  queryStringOf,
  textIn,
  withoutEmptyMembers,
  withoutEmptyParameters,
} from '../request-parameters.ts';
import { ActiveSubscription, SUBSCRIPTION } from './active-subscription.ts';
import type { SubscriptionConnections } from './connections.ts';
import { logSlowConsumer, type SubscriberConnection } from './registry.ts';
import type { SharedEvent } from './subscription.ts';

// GraphQL over server-sent events, in distinct connections mode: each subscription is a separate
// request. Beyond the protocol, events with a cursor have an id, so that a browser resumes
// automatically (HTML, 9.2.3, `Last-Event-ID`).

/** Media type of event streams. */
export const EVENTS = 'text/event-stream';
const MALFORMED = 'An event stream needs one GraphQL request: an object with a query';
/** Result of graphql-sse for a client that has gone. */
const CLOSED = { status: 499, statusText: 'Client Closed Request' };
const NEXT = 'event: next\n';
const COMPLETE = 'event: complete\ndata:\n\n';

/**
 * Sends a subscription as events. Errors of the request are HTTP errors. Errors of the operation
 * are events, because a browser does not show its page the error of a rejected stream.
 */
export async function sendEventStream(
  { dependencies, registry, subscriptions, trusted }: SubscriptionConnections,
  res: Response,
): Promise<void> {
  const { req, locals } = res;
  const subscription = new ActiveSubscription(req, locals.record);
  locals.onClose(() => subscription.end());
  const ctx = contextOf(dependencies, req, subscription);
  const lastEventId = req.headers['last-event-id'];
  if (typeof lastEventId === 'string' && lastEventId !== '') ctx.resumeAfter = lastEventId;
  const sent =
    req.method === 'POST'
      ? withoutEmptyMembers(parseJson(textIn(req) ?? ''))
      : readSearch(withoutEmptyParameters(queryStringOf(req)));
  const stream = new EventStream(res, subscription, ctx);
  const handle = createHandler<IncomingMessage>({
    // Without a token of graphql-sse, no stream can be reserved for several operations.
    authenticate: async () => {
      if (!isAnonymous(req)) await identify(ctx, res);
      // A connection that is closed already would never be removed from the registry.
      if (res.headersSent || subscription.signal.aborted) return [null, CLOSED];
      locals.record.operation = SUBSCRIPTION;
      locals.onClose(registry.add(stream));
      return null;
    },
    onSubscribe: async (_req, params) => {
      const opened = await subscriptions.open(ctx, params, subscription);
      // graphql-sse knows a result by its member `data`.
      return ('next' in opened ? opened : { data: undefined, errors: opened }) as ExecutionResult;
    },
    onNext: (_ctx, _req, event) => stream.accept(event as SharedEvent | ExecutionResult),
  });
  onAbort(subscription.signal, () => {
    if (subscription.error?.code === 'SLOW_CONSUMER') logSlowConsumer(dependencies, stream.network);
    // Nothing is left to abort where the client has disconnected.
    const { subscriptionGraceMs } = dependencies.config;
    if (!res.destroyed) setTimeout(() => res.destroy(), subscriptionGraceMs).unref();
  });
  const request = {
    method: 'POST',
    url: req.url,
    headers: new Headers({ accept: EVENTS, 'content-type': 'application/json' }),
    body: (trusted ? trusted.readBody(sent) : sent) as Record<string, unknown> | null,
    raw: req,
    context: undefined,
  };
  const [parts, { status }] = await handle(request);
  // graphql-sse and Express would keep them until the end.
  request.body = null;
  req.body = undefined;
  const isStream = typeof parts === 'object' && parts !== null;
  // The request may have been rejected meanwhile, for example at its timeout.
  if (res.destroyed || res.headersSent) return void (isStream && parts.return());
  if (!isStream) throw new HttpError(status, MALFORMED);
  // Express would add a charset, which the media type does not have.
  res.setHeader('Content-Type', EVENTS);
  res.set({ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  locals.exclude();
  void stream.send(parts);
}

class EventStream implements SubscriberConnection {
  readonly network: string;
  /** Cursor of the event that is sent next. */
  private cursor: string | undefined;
  /** Resolves when the network has accepted the last event. */
  private accepted: Promise<void> | undefined;
  private onAccepted = (): void => undefined;
  /** The write that the network has not accepted yet, now and at the last ping. */
  private writing: object | undefined;
  private writingAtLastPing: object | undefined;

  constructor(
    private readonly res: Response,
    private readonly subscription: ActiveSubscription,
    private readonly ctx: Context,
  ) {
    this.network = ctx.network ?? '';
  }

  get caller(): Caller | undefined {
    return this.ctx.caller;
  }

  /** Returns the response to send for an event, once the network has accepted the previous one. */
  async accept(event: SharedEvent | ExecutionResult): Promise<ExecutionResult> {
    await this.accepted;
    this.accepted = new Promise((done) => (this.onAccepted = done));
    if (!('response' in event)) return event;
    this.cursor = event.cursor;
    return event.response as ExecutionResult;
  }

  /** Sends what graphql-sse writes, each part after the network has accepted the previous one. */
  async send(parts: AsyncGenerator<string>): Promise<void> {
    const { res } = this;
    res.locals.onClose(() => void parts.return(undefined));
    try {
      for await (const part of parts) await this.write(part);
    } catch (error) {
      await this.write(`${NEXT}data: ${JSON.stringify({ errors: [error] })}\n\n${COMPLETE}`);
    }
    res.end();
  }

  endExpired(refusal: DomainError): void {
    this.subscription.end(refusal);
  }

  // Without the completion event, the client reconnects.
  endForShutdown(): void {
    if (this.res.headersSent) this.res.end();
    else this.res.locals.sendError(unavailableError());
    this.subscription.end();
  }

  ping(): void {
    if (this.writing && this.writing === this.writingAtLastPing) this.res.destroy();
    this.writingAtLastPing = this.writing;
  }

  private write(part: string): Promise<void> {
    const { res, cursor } = this;
    if (res.writableEnded || res.destroyed) return Promise.resolve();
    const isEvent = part.startsWith(NEXT);
    if (isEvent) this.cursor = undefined;
    this.writing = {};
    return new Promise((done) => {
      res.write(isEvent && cursor !== undefined ? `id: ${cursor}\n${part}` : part, () => {
        this.writing = undefined;
        if (isEvent) this.onAccepted();
        done();
      });
    });
  }
}

// Reads the parameters of a query string (GraphQL over HTTP, 5.1).
function readSearch(search: string): Record<string, unknown> {
  const params = new URLSearchParams(search);
  const values: Record<string, unknown> = {};
  for (const [name, value] of params) {
    if (Object.hasOwn(values, name))
      throw new HttpError(400, `The query string has ${name} more than once`);
    values[name] = name === 'variables' || name === 'extensions' ? parseJson(value) : value;
  }
  return values;
}
