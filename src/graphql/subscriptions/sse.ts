import type { IncomingMessage } from 'node:http';
import accepts from 'accepts';
import { GraphQLError, type ExecutionResult } from 'graphql';
import type { Caller } from '../../request/context.ts';
import type { DomainError } from '../../core/errors.ts';
import { parseJson, readGraphqlText } from '../../http/body.ts';
import { identify, isAnonymous } from '../../http/credentials.ts';
import type { Exchange } from '../../http/exchange.ts';
import { HttpError } from '../../http/http-error.ts';
import { breakOff, whenInFront } from '../../http/in-flight.ts';
import { searchOf } from '../../http/request-headers.ts';
import { contextOf } from '../../http/dependencies.ts';
import { refusalsOf } from '../errors.ts';
import { tellBehind, type Listener } from './registry.ts';
import { Listening } from './active-subscription.ts';
import { GRACE_MS, type Live } from './connections.ts';
import type { Delivery } from './shared-events.ts';
import { begin, SUBSCRIPTION, type AskedSubscription } from './subscription.ts';

// GraphQL over server-sent events, in distinct connections mode: each subscription is a request of its own. Beyond the protocol, each event whose place is
// known has an id, so that a browser goes on by itself where it was (HTML, 9.2.3, `Last-Event-ID`).

const EVENTS = 'text/event-stream';
const ANSWERS = ['application/json', 'application/graphql-response+json'];
/** A comment, which clients pass over. */
const SIGN_OF_LIFE = ':\n\n';
const COMPLETE = 'event: complete\ndata:\n\n';

/** Whether the client takes events, and nothing that a query is answered with. */
export function asksForEvents(req: IncomingMessage): boolean {
  return req.headers.accept?.includes(EVENTS) === true && accepts(req).type(ANSWERS) === false;
}

/**
 * Answers a subscription as events. What is wrong with the request is answered as to any other; what is wrong with the operation is an event, for a
 * browser tells its page nothing of a refused stream.
 */
export async function answerEvents(live: Live, exchange: Exchange): Promise<void> {
  const { services, listeners, subscriptions, trusted } = live;
  const { req, res } = exchange;
  const listening = new Listening(req, exchange.requestId, exchange.seen);
  res.once('close', () => listening.end());
  const ctx = contextOf(services, listening);
  const lastEventId = req.headers['last-event-id'];
  if (typeof lastEventId === 'string' && lastEventId !== '') ctx.resumeAfter = lastEventId;
  const text = req.method === 'POST' ? ((await readGraphqlText(exchange)) ?? '') : searchOf(req);
  const sent = req.method === 'POST' ? parseJson(text) : valuesOf(text);
  const asked = askedBy(trusted ? trusted.readBody(ctx, sent) : sent);
  if (!isAnonymous(req)) await identify(ctx, exchange);
  // Who has left meanwhile would never be taken off the list.
  if (listening.isGivenUp) return;

  exchange.seen.operation = SUBSCRIPTION;
  const stream = new EventStream(exchange, listening, ctx.network ?? '', ctx.caller);
  listening.onGiveUp(() => {
    if (listening.refusal?.code === 'FELL_BEHIND') tellBehind(services, stream.network);
  });
  const leave = listeners.add(stream);
  res.once('close', leave);
  const prepared = subscriptions.prepare(ctx, asked, listening);
  const begun = 'listening' in prepared ? await begin(prepared) : { errors: prepared };
  if (res.destroyed) return;
  const refused = (errors: readonly GraphQLError[]) => ({ errors: refusalsOf(services, errors, exchange.seen) });
  exchange.set({ 'Content-Type': EVENTS, 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' });
  exchange.start(200);
  exchange.setAside();
  void stream.send(begun, refused).catch((error: unknown) => stream.sendLast(refused([errorOf(error)])));
}

class EventStream implements Listener {
  private isLeaving = false;
  /** What has been written and not yet been taken by the network. */
  private unsent = 0;
  /** How many writes the network has taken, and how many it had at the last beat. */
  private taken = 0;
  private takenBefore: number | undefined;

  constructor(
    private readonly exchange: Exchange,
    private readonly listening: Listening,
    readonly network: string,
    readonly caller: Caller | undefined,
  ) {
    const { res } = exchange;
    listening.onGiveUp(() => whenInFront(res, () => setTimeout(() => breakOff(res), GRACE_MS).unref()));
  }

  /** Sends the answers as they come, one after the other was taken. */
  async send(
    begun: AsyncIterable<Delivery> | Pick<ExecutionResult, 'errors'>,
    refused: (errors: readonly GraphQLError[]) => object,
  ): Promise<void> {
    await this.write(SIGN_OF_LIFE);
    if (!(Symbol.asyncIterator in begun)) return this.sendLast(refused(begun.errors ?? []));
    for await (const { text, id } of begun) await this.write(eventOf(text, id));
    this.end();
  }

  /** Sends an answer after which there is no other. */
  async sendLast(answer: object): Promise<void> {
    await this.write(eventOf(JSON.stringify(answer)));
    this.end();
  }

  lapse(refusal: DomainError): void {
    this.listening.end(refusal);
  }

  goAway(): void {
    this.isLeaving = true;
    this.listening.end();
  }

  beat(): void {
    const { res } = this.exchange;
    // Before its head and after its end, nothing may be written. Behind other responses, nothing can be taken.
    if (!res.headersSent || res.writableEnded || !res.socket) return;
    if (this.unsent === 0) void this.write(SIGN_OF_LIFE);
    else if (this.taken === this.takenBefore) breakOff(res);
    this.takenBefore = this.taken;
  }

  // A stream that ends without a word is one that the client opens again.
  private end(): void {
    if (!this.isLeaving) this.exchange.write(COMPLETE);
    this.exchange.res.end();
  }

  private write(text: string): Promise<void> {
    this.unsent++;
    return new Promise((done) => {
      this.exchange.write(text, () => {
        this.unsent--;
        this.taken++;
        done();
      });
    });
  }
}

function eventOf(json: string, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: next\ndata: ${json}\n\n`;
}

// GraphQL over HTTP, 5.1.
function valuesOf(search: string): Record<string, unknown> {
  const params = new URLSearchParams(search);
  const values: Record<string, unknown> = {};
  for (const [name, value] of params) {
    if (Object.hasOwn(values, name)) throw new HttpError(400, `The query has ${name} more than once`);
    values[name] = name === 'variables' || name === 'extensions' ? parseJson(value) : value;
  }
  return values;
}

function askedBy(sent: unknown): AskedSubscription {
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) throw new HttpError(400, 'A stream of events is for one operation');
  const { query, operationName, variables } = sent as Record<string, unknown>;
  if (typeof query !== 'string' || query === '') throw new HttpError(400, 'A request has a query, as text');
  if (operationName != null && typeof operationName !== 'string') throw new HttpError(400, 'operationName has to be text');
  if (variables != null && (typeof variables !== 'object' || Array.isArray(variables)))
    throw new HttpError(400, 'variables has to be an object');
  return { query, operationName, variables: variables as AskedSubscription['variables'] };
}

function errorOf(error: unknown): GraphQLError {
  const originalError = error instanceof Error ? error : new Error(String(error));
  return new GraphQLError(originalError.message, { originalError });
}
