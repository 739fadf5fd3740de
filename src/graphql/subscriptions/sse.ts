import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import type { ExecutionResult } from 'graphql';
import { createHandler, type RequestParams } from 'graphql-sse';
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
import type { SharedEvent } from './shared-events.ts';
import type { SubscriptionRequest } from './subscription.ts';

// GraphQL over server-sent events, in distinct connections mode: each subscription is a separate
// request. Beyond the protocol, events with a cursor have an id, so that a browser resumes
// automatically (HTML, 9.2.3, `Last-Event-ID`).

const EVENTS = 'text/event-stream';
const JSON_TYPES = ['application/json', 'application/graphql-response+json'];
const NEXT = 'event: next\n';
const COMPLETE = 'event: complete\ndata:\n\n';

/** Returns whether the client accepts events and none of the media types of query responses. */
export function acceptsEventStream(req: IncomingMessage): boolean {
  return req.headers.accept?.includes(EVENTS) === true && accepts(req).type(JSON_TYPES) === false;
}

const handle = createHandler<IncomingMessage, EventStream>({
  // Without a token, no stream can be reserved for several operations.
  authenticate: ({ context: stream }) => stream.identify(),
  onSubscribe: ({ context: stream }, params) => stream.subscribe(params),
  onNext: (_ctx, { context: stream }, event) => stream.accept(event as unknown as SharedEvent),
});

/**
 * Sends a subscription as events. Errors of the request are HTTP errors. Errors of the operation
 * are events, because a browser does not show its page the error of a rejected stream.
 */
export async function sendEventStream(
  connections: SubscriptionConnections,
  res: Response,
): Promise<void> {
  const { req } = res;
  const { trusted } = connections;
  const sent =
    req.method === 'POST'
      ? withoutEmptyMembers(parseJson(textIn(req) ?? ''))
      : readSearch(withoutEmptyParameters(queryStringOf(req)));
  const body = trusted ? trusted.readBody(sent) : sent;
  const stream = new EventStream(connections, res);
  const headers = new Headers({ accept: EVENTS, 'content-type': 'application/json' });
  const [events, { status }] = await handle({
    method: 'POST',
    url: req.url,
    headers,
    body: body as Record<string, unknown>,
    raw: req,
    context: stream,
  });
  if (typeof events !== 'object' || !events) {
    if (res.destroyed || res.headersSent) return;
    throw new HttpError(
      status,
      'An event stream needs one GraphQL request: an object with a query',
    );
  }
  // The request may have been rejected meanwhile, for example at its timeout.
  if (res.destroyed || res.headersSent) return void events.return();
  // Express would add a charset, which the media type does not have.
  res.setHeader('Content-Type', EVENTS);
  res.set({ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  res.locals.exclude();
  void stream.send(events);
}

/** The response to a subscription, and the hooks of its request. */
class EventStream implements SubscriberConnection {
  readonly network: string;
  private readonly subscription: ActiveSubscription;
  private readonly ctx: Context;
  /** Cursor of the event that is sent next. */
  private cursor: string | undefined;
  /** Resolves when the network has accepted the last event. */
  private accepted: Promise<void> | undefined;
  private onAccepted = (): void => undefined;
  /** The write that the network has not accepted yet, now and at the last ping. */
  private writing: object | undefined;
  private writingAtLastPing: object | undefined;

  constructor(
    private readonly connections: SubscriptionConnections,
    private readonly res: Response,
  ) {
    const { dependencies } = connections;
    const { req, locals } = res;
    const subscription = (this.subscription = new ActiveSubscription(req, locals.record));
    locals.onClose(() => subscription.end());
    this.ctx = contextOf(dependencies, req, subscription);
    this.network = this.ctx.network ?? '';
    const lastEventId = req.headers['last-event-id'];
    if (typeof lastEventId === 'string' && lastEventId !== '') this.ctx.resumeAfter = lastEventId;
    onAbort(subscription.signal, () => {
      if (subscription.error?.code === 'SLOW_CONSUMER') logSlowConsumer(dependencies, this.network);
      // Nothing is left to abort where the client has disconnected.
      if (!res.destroyed)
        setTimeout(() => res.destroy(), dependencies.config.subscriptionGraceMs).unref();
    });
  }

  get caller(): Caller | undefined {
    return this.ctx.caller;
  }

  /** Authenticates, and adds the stream to the registry. Returns no token of graphql-sse. */
  async identify(): Promise<null | [null, { status: number; statusText: string }]> {
    const { res, ctx, subscription } = this;
    if (!isAnonymous(res.req)) await identify(ctx, res);
    // A connection that is closed already would never be removed from the registry.
    if (res.headersSent || subscription.signal.aborted)
      return [null, { status: 400, statusText: '' }];
    subscription.record.operation = SUBSCRIPTION;
    res.locals.onClose(this.connections.registry.add(this));
    return null;
  }

  /** Starts the subscription. */
  async subscribe(
    params: RequestParams,
  ): Promise<AsyncGenerator<ExecutionResult> | ExecutionResult> {
    const { subscriptions } = this.connections;
    const request = params as SubscriptionRequest;
    const opened = await subscriptions.open(this.ctx, request, this.subscription);
    // graphql-sse knows a result by its member `data`.
    return (
      'next' in opened ? opened : { data: undefined, errors: opened }
    ) as AsyncGenerator<ExecutionResult>;
  }

  /** Returns the response to send for an event, once the network has accepted the previous one. */
  async accept(event: SharedEvent | ExecutionResult): Promise<ExecutionResult> {
    await this.accepted;
    this.accepted = new Promise((done) => (this.onAccepted = done));
    if (!('response' in event)) return event;
    this.cursor = event.cursor;
    return event.response as ExecutionResult;
  }

  /** Sends the stream of graphql-sse, each part after the network has accepted the previous one. */
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
    const isEvent = part.startsWith(NEXT);
    const id = isEvent && cursor !== undefined ? `id: ${cursor}\n` : '';
    if (isEvent) this.cursor = undefined;
    if (res.writableEnded || res.destroyed) return Promise.resolve();
    this.writing = {};
    return new Promise((done) => {
      res.write(id + part, () => {
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
