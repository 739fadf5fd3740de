import type { IncomingMessage } from 'node:http';
import type { HTTPGraphQLRequest } from '@apollo/server';
import type { Response } from 'express';
import type { ExecutionResult } from 'graphql';
import { createHandler } from 'graphql-sse';
import type { Caller, Context } from '../../request/context.ts';
import type { DomainError } from '../../core/errors.ts';
import { RequestContext, findCaller } from '../../http/dependencies.ts';
import { HttpError, unavailableError } from '../../http/http-error.ts';
import type { SubscriberConnection, SubscriptionConnections } from './connections.ts';
import { ActiveSubscription } from './subscription.ts';

// GraphQL over server-sent events, in distinct connections mode: each subscription is a separate
// request. Beyond the protocol, events with a cursor have an id, so that a browser resumes
// automatically (HTML, 9.2.3, `Last-Event-ID`).

/** Media type of event streams. */
export const EVENTS = 'text/event-stream';
const MALFORMED = 'An event stream needs one GraphQL request: an object with a query';
const NEXT = 'event: next\n';
const COMPLETE = 'event: complete\n';

/**
 * Sends a subscription as events. Errors of the request are HTTP errors. Errors of the operation
 * are events, because a browser does not show its page the error of a rejected stream.
 */
export async function sendEventStream(
  { dependencies, registry, subscriptions }: SubscriptionConnections,
  res: Response,
  { method, search, body }: HTTPGraphQLRequest,
): Promise<void> {
  const { req, locals } = res;
  // Otherwise kept as long as the stream.
  req.body = undefined;
  const subscription = new ActiveSubscription(req, locals.record);
  res.once('close', () => subscription.end());
  const ctx = (locals.ctx = new RequestContext(dependencies, req, subscription));
  const lastEventId = req.headers['last-event-id'];
  if (typeof lastEventId === 'string' && lastEventId !== '') ctx.resumeAfter = lastEventId;
  await findCaller(ctx, req);
  // A connection that is closed already would never be removed from the registry.
  if (res.headersSent || res.destroyed) return;
  const stream = new EventStream(res, subscription, ctx);
  res.once('close', registry.add(stream));
  // A start waits for others of its network, and the rest depends on the reader.
  locals.exclude();
  const handle = createHandler<IncomingMessage>({
    // Without a token of graphql-sse, no stream can be reserved for several operations.
    authenticate: () => null,
    onSubscribe: async (_req, params) => {
      const prepared = await subscriptions.prepare(ctx, () => params, subscription);
      // graphql-sse knows a result by its member `data`.
      return (
        'key' in prepared ? prepared : { data: undefined, errors: prepared }
      ) as ExecutionResult;
    },
    validate: () => [],
    subscribe: (args) => subscriptions.subscribe(args),
    onNext: (_ctx, _req, result) => stream.accept(subscriptions.cursorOf(result)),
  });
  const { query, operationName, variables, extensions } = Object(body) as Record<string, unknown>;
  const [parts, { status }] = await handle({
    method,
    // graphql-sse ends it at a second question mark.
    url: `/graphql?${new URLSearchParams(search).toString()}`,
    headers: new Headers({ accept: EVENTS, 'content-type': 'application/json' }),
    // Without other members, which would be kept as well.
    body: { query, operationName, variables, extensions },
    raw: req,
    context: undefined,
  });
  const isStream = typeof parts === 'object' && parts !== null;
  // The request may have been rejected meanwhile, for example at its timeout.
  if (res.destroyed || res.headersSent) return void (isStream && parts.return(undefined));
  if (!isStream) throw new HttpError(status, MALFORMED);
  // Express would add a charset, which the media type does not have.
  res.setHeader('Content-Type', EVENTS);
  res.set({ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  void stream.send(parts);
}

class EventStream implements SubscriberConnection {
  readonly network: string;
  private parts: AsyncGenerator<string> | undefined;
  private isShuttingDown = false;
  /** Cursors of the events that are not written yet. */
  private readonly cursors: (string | undefined)[] = [];
  /** Resolves when the network has accepted the last part. */
  private accepted: Promise<unknown> = Promise.resolve();

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

  /** Waits until the network has accepted the previous part, before an event with this cursor. */
  async accept(cursor: string | undefined): Promise<void> {
    await this.accepted;
    this.cursors.push(cursor);
  }

  /** Sends what graphql-sse writes, each part after the network has accepted the previous one. */
  async send(parts: AsyncGenerator<string>): Promise<void> {
    const { res } = this;
    this.parts = parts;
    res.once('close', () => void parts.return(undefined));
    try {
      for await (const part of parts) {
        // Without the completion event, the client reconnects.
        if (this.isShuttingDown && part.startsWith(COMPLETE)) break;
        await this.write(part);
      }
    } catch (error) {
      await this.write(`${NEXT}data: ${JSON.stringify({ errors: [error] })}\n\n`);
      await this.write(`${COMPLETE}data:\n\n`);
    }
    res.end();
  }

  endExpired(refusal: DomainError): void {
    this.subscription.end(refusal);
  }

  endForShutdown(): void {
    this.isShuttingDown = true;
    if (this.parts) void this.parts.return(undefined);
    else this.res.locals.sendError(unavailableError());
    this.subscription.end();
  }

  private write(part: string): Promise<unknown> {
    const cursor = part.startsWith(NEXT) ? this.cursors.shift() : undefined;
    const id = cursor === undefined ? '' : `id: ${cursor}\n`;
    return (this.accepted = new Promise((done) => this.res.write(id + part, done)));
  }
}
