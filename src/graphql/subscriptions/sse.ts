import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import type { ExecutionResult, GraphQLError } from 'graphql';
import type { Caller, Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import type { DomainError } from '../../core/errors.ts';
import { parseJson } from '../../http/body.ts';
import { identify, isAnonymous } from '../../http/credentials.ts';
import { contextOf } from '../../http/dependencies.ts';
import { HttpError } from '../../http/http-error.ts';
import { formatAndRecordErrors, graphqlErrorOf } from '../errors.ts';
import {
  queryStringOf,
  textIn,
  withoutEmptyMembers,
  withoutEmptyParameters,
} from '../request-parameters.ts';
import { logSlowConsumer, type SubscriberConnection } from './registry.ts';
import { ActiveSubscription } from './active-subscription.ts';
import type { SubscriptionConnections } from './connections.ts';
import type { SharedEvent } from './shared-events.ts';
import { start, SUBSCRIPTION, type SubscriptionRequest } from './subscription.ts';

// GraphQL over server-sent events, in distinct connections mode: each subscription is a separate
// request. Beyond the protocol, events with a cursor have an id, so that a browser resumes
// automatically (HTML, 9.2.3, `Last-Event-ID`).

const EVENTS = 'text/event-stream';
const JSON_TYPES = ['application/json', 'application/graphql-response+json'];
/** A comment, which clients ignore. */
const KEEP_ALIVE = ':\n\n';
const COMPLETE = 'event: complete\ndata:\n\n';

/** Returns whether the client accepts events and none of the media types of query responses. */
export function acceptsEventStream(req: IncomingMessage): boolean {
  return req.headers.accept?.includes(EVENTS) === true && accepts(req).type(JSON_TYPES) === false;
}

/**
 * Sends a subscription as events. Errors of the request are HTTP errors. Errors of the operation
 * are events, because a browser does not show its page the error of a rejected stream.
 */
export async function sendEventStream(
  connections: SubscriptionConnections,
  res: Response,
): Promise<void> {
  const { dependencies, registry, subscriptions, trusted } = connections;
  const { req } = res;
  const { requestId, record } = res.locals;
  const subscription = new ActiveSubscription(req, requestId, record);
  res.locals.onClose(() => subscription.end());
  const ctx = contextOf(dependencies, req, subscription);
  const lastEventId = req.headers['last-event-id'];
  if (typeof lastEventId === 'string' && lastEventId !== '') ctx.resumeAfter = lastEventId;
  const body =
    req.method === 'POST'
      ? withoutEmptyMembers(parseJson(textIn(req) ?? ''))
      : readSearch(withoutEmptyParameters(queryStringOf(req)));
  const request = readRequest(trusted ? trusted.readBody(body) : body);
  if (!isAnonymous(req)) await identify(ctx, res);
  // A connection that is closed already would never be removed from the registry.
  if (res.headersSent || subscription.signal.aborted) return;

  record.operation = SUBSCRIPTION;
  const stream = new EventStream(res, subscription, ctx);
  onAbort(subscription.signal, () => {
    if (subscription.error?.code === 'SLOW_CONSUMER') logSlowConsumer(dependencies, stream.network);
  });
  const remove = registry.add(stream);
  res.locals.onClose(remove);
  const prepared = subscriptions.prepare(ctx, request, subscription);
  const source = 'subscription' in prepared ? await start(prepared) : { errors: prepared };
  if (res.destroyed || res.headersSent) return;
  const errorResponse = (errors: readonly GraphQLError[]) => ({
    errors: formatAndRecordErrors(dependencies, errors, record),
  });
  // Express would add a charset, which the media type does not have.
  res.setHeader('Content-Type', EVENTS);
  res.set({ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  res.flushHeaders();
  res.locals.exclude();
  void stream
    .send(source, errorResponse)
    .catch((error: unknown) => stream.sendLast(errorResponse([graphqlErrorOf(error)])));
}

class EventStream implements SubscriberConnection {
  readonly network: string;
  readonly caller: Caller | undefined;
  private isShuttingDown = false;
  /** Number of writes that the network has not accepted yet. */
  private pendingWrites = 0;
  /** Number of writes that the network has accepted, now and at the last ping. */
  private flushedWrites = 0;
  private flushedAtLastPing: number | undefined;

  constructor(
    private readonly res: Response,
    private readonly subscription: ActiveSubscription,
    { network = '', caller, config }: Context,
  ) {
    this.network = network;
    this.caller = caller;
    const abort = () => res.destroy();
    // Nothing is left to abort where the client has disconnected.
    onAbort(subscription.signal, () => {
      if (!res.destroyed) setTimeout(abort, config.subscriptionGraceMs).unref();
    });
  }

  /** Sends each response after the network has accepted the previous one. */
  async send(
    source: AsyncIterable<SharedEvent> | Pick<ExecutionResult, 'errors'>,
    errorResponse: (errors: readonly GraphQLError[]) => object,
  ): Promise<void> {
    await this.write(KEEP_ALIVE);
    if (!(Symbol.asyncIterator in source)) return this.sendLast(errorResponse(source.errors ?? []));
    for await (const { text, id } of source) await this.write(eventOf(text, id));
    this.end();
  }

  /** Sends the last response and ends the stream. */
  async sendLast(response: object): Promise<void> {
    await this.write(eventOf(JSON.stringify(response)));
    this.end();
  }

  endExpired(refusal: DomainError): void {
    this.subscription.end(refusal);
  }

  endForShutdown(): void {
    this.isShuttingDown = true;
    this.subscription.end();
  }

  ping(): void {
    const { res } = this;
    // Nothing may be written before the head or after the end.
    if (!res.headersSent || res.writableEnded) return;
    if (this.pendingWrites === 0) void this.write(KEEP_ALIVE);
    else if (this.flushedWrites === this.flushedAtLastPing) res.destroy();
    this.flushedAtLastPing = this.flushedWrites;
  }

  // Without the completion event, the client reconnects.
  private end(): void {
    if (!this.isShuttingDown) this.res.write(COMPLETE);
    this.res.end();
  }

  private write(text: string): Promise<void> {
    this.pendingWrites++;
    return new Promise((done) => {
      this.res.write(text, () => {
        this.pendingWrites--;
        this.flushedWrites++;
        done();
      });
    });
  }
}

function eventOf(json: string, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: next\ndata: ${json}\n\n`;
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

function readRequest(body: unknown): SubscriptionRequest {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new HttpError(400, 'An event stream needs a single GraphQL request, as a JSON object');
  const { query, operationName, variables } = body as Record<string, unknown>;
  if (typeof query !== 'string' || query === '')
    throw new HttpError(400, 'query must be a non-empty string');
  if (operationName != null && typeof operationName !== 'string')
    throw new HttpError(400, 'operationName must be a string');
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables)))
    throw new HttpError(400, 'variables must be an object');
  return { query, operationName, variables: variables as SubscriptionRequest['variables'] };
}
