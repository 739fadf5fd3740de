import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError } from 'graphql';
import { CloseCode, MessageType, parseMessage, stringifyMessage, type Message, type Server, type SubscribePayload } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Caller, Context } from '../../kit/context.ts';
import { DomainError } from '../../kit/errors.ts';
import { findCaller, isAnonymous } from '../credentials.ts';
import { unavailable, visibleError } from '../http-error.ts';
import { inFlight } from '../in-flight.ts';
import { contextOf, type Services } from '../services.ts';
import type { Seen } from '../telemetry/seen.ts';
import { tellBehind, type Listener, type Listeners } from './listeners.ts';
import { Listening } from './listening.ts';
import { GRACE_MS } from './live.ts';
import { SUBSCRIPTION, type Prepared } from './subscription.ts';

/** What WebSockets are closed with (RFC 6455, 7.4.1), and of our own the one for clients that fall behind. */
const GOING_AWAY = 1001;
const TOO_MANY_MESSAGES = 1008;
const TOO_LARGE = 1009;
const TRY_AGAIN_LATER = 1013;
const FELL_BEHIND = 4410;
/** How many bytes of a reason fit into a frame with the code. */
const MAX_REASON = 123;
/** How long a message may be that asks for nothing, in characters: what says who is there is kept, and a ping is sent back. */
const MOST_BESIDE = 8_000;
/** How long a client's name for an operation may be: it is kept, and told with each event. */
const MAX_ID = 100;
/** How many messages a client may send at once, and how many a second from then on. */
const BURST = 100;
const PER_SECOND = 10;

/** What the observer is told of each subscription; its status is that of the handshake. */
const SEEN = {
  method: 'GET',
  door: 'graphql',
  row: 'GET /graphql',
  operation: SUBSCRIPTION,
  status: 101,
  bytes: 0,
  end: 'answered',
} as const;
/** How what the protocol's server tells of an operation begins: with our key of it, in place of which the client is told its id. */
const OF_OPERATION = /^\{"id":"(\d+)","type":"(\w+)"/;

/** Has the protocol's server take a message. */
type Take = (text: string) => Promise<void>;

/** What a client asks for, and how long its message was. */
interface Asked {
  payload: SubscribePayload;
  length: number;
}

/** An operation of the client's, until all that was done for it is over. */
interface Operation {
  /** The client's name for it. */
  readonly id: string;
  /** Ours. */
  readonly key: string;
  /** What it asks for, until that is read. */
  asked: Asked | undefined;
  readonly listening: Listening;
  readonly seen: Seen;
  readonly begunAt: number;
}

/**
 * One WebSocket with its subscriptions. The protocol's server knows each by a key that is never used again, for a client may use an id again as soon as it has ended
 * what had it, and that takes a while to be over.
 */
export class SocketListener implements Listener {
  caller: Caller | undefined;
  /** All that are not over, by our keys. */
  private readonly operations = new Map<string, Operation>();
  /** Those that the client neither has ended nor knows to have ended, by its ids. */
  private readonly named = new Map<string, Operation>();
  private lastKey = 0;
  private isAlive = true;
  private isLeaving = false;
  private allowance = BURST;
  private countedAt = performance.now();
  private onIdle: (() => void) | undefined;

  constructor(
    private readonly socket: WebSocket,
    private readonly req: IncomingMessage,
    private readonly services: Services,
    readonly network: string,
  ) {}

  /** Speaks the protocol, until the socket closes. */
  open(protocol: Server<SocketListener>, listeners: Listeners): void {
    const { socket } = this;
    const remove = listeners.add(this);
    socket.on('error', () => socket.terminate());
    socket.on('pong', () => (this.isAlive = true));
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (text) => this.send(text),
        close: (code = CloseCode.InternalServerError, reason = '') => this.close(code, reason),
        onMessage: (take) =>
          socket.on('message', (bytes: Buffer) => {
            // What comes while it is being closed would begin what nobody is to have.
            if (this.isLeaving || socket.readyState !== socket.OPEN) return;
            if (!this.mayTake()) this.close(TOO_MANY_MESSAGES, 'Too many messages');
            else this.receive(bytes.toString(), take).catch((error: unknown) => this.fail(error));
          }),
      },
      this,
    );
    socket.once('close', (code, reason) => {
      for (const { listening } of this.operations.values()) listening.end();
      remove();
      void closed(code, reason.toString());
    });
  }

  /** Makes who the parameters of `connection_init` name the caller; without credentials there, those of the request's headers. */
  async identify(params: Readonly<Record<string, unknown>>): Promise<boolean> {
    const named = Object.entries(params).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
    const headers = Object.fromEntries(named.map(([name, value]) => [name.toLowerCase(), value]));
    const ctx = this.contextFor(new Listening(this.req));
    try {
      if (inFlight.isFull()) throw unavailable();
      const bearer = isAnonymous({ headers }) ? this.req : { headers };
      if (!isAnonymous(bearer)) await findCaller(ctx, bearer);
      this.caller = ctx.caller;
      return true;
    } catch (error) {
      const refusal = visibleError(error);
      if (!(refusal instanceof DomainError)) throw error;
      this.close(refusal.code === 'UNAVAILABLE' ? TRY_AGAIN_LATER : CloseCode.Forbidden, refusal.message);
      return false;
    }
  }

  /** Begins the subscription of this key, as far as what prepares it does not refuse. */
  begin(
    key: string,
    prepare: (ctx: Context, listening: Listening, asked: Asked) => Prepared | readonly GraphQLError[],
  ): Prepared | readonly GraphQLError[] {
    const operation = this.operations.get(key);
    if (!operation?.asked) throw new TypeError('An operation begins once');
    const { asked } = operation;
    operation.asked = undefined;
    try {
      if (inFlight.isFull()) throw unavailable();
      this.refuseMore();
      const { listening } = operation;
      const ctx = this.contextFor(listening);
      if (this.caller) ctx.caller = this.caller;
      const prepared = prepare(ctx, listening, asked);
      if (!('listening' in prepared)) return prepared;
      listening.onGiveUp(() => {
        if (listening.refusal?.code !== 'FELL_BEHIND' || this.isLeaving) return;
        tellBehind(this.services, this.network);
        void this.leave(FELL_BEHIND, listening.refusal);
      });
      return prepared;
    } catch (error) {
      const refusal = visibleError(error);
      if (!refusal) throw error;
      if (refusal instanceof DomainError) return [new GraphQLError(refusal.message, { originalError: refusal })];
      return [new GraphQLError(refusal.message, { extensions: { code: ApolloServerErrorCode.BAD_REQUEST } })];
    }
  }

  /** What the observer will be told of the operation of this key. */
  seenOf(key: string): Seen {
    const operation = this.operations.get(key);
    if (!operation) throw new TypeError('Nothing is told of an operation that is over');
    return operation.seen;
  }

  lapse(refusal: DomainError): void {
    void this.leave(CloseCode.Forbidden, refusal);
  }

  goAway(): void {
    this.close(GOING_AWAY, 'Going away');
  }

  beat(): void {
    if (!this.isAlive) return this.socket.terminate();
    this.isAlive = false;
    this.socket.ping();
  }

  private contextFor(listening: Listening): Context {
    return contextOf(this.services, listening);
  }

  private receive(text: string, take: Take): Promise<void> {
    const message = messageIn(text);
    if (message?.type !== MessageType.Subscribe && text.length > MOST_BESIDE) return this.refuse(TOO_LARGE, 'Message too large');
    switch (message?.type) {
      case MessageType.Subscribe:
        return this.operate(message.id, { payload: message.payload, length: text.length }, take);
      case MessageType.Complete:
        return this.complete(message.id, take);
      case MessageType.ConnectionInit:
      case MessageType.Ping:
      case MessageType.Pong:
        return take(text);
      default:
        return this.refuse(CloseCode.BadRequest, 'Invalid message received');
    }
  }

  private refuse(code: number, reason: string): Promise<void> {
    this.close(code, reason);
    return Promise.resolve();
  }

  private operate(id: string, asked: Asked, take: Take): Promise<void> {
    if (id.length > MAX_ID) return this.refuse(CloseCode.BadRequest, `An id has at most ${MAX_ID} characters`);
    if (this.named.has(id)) return this.refuse(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    const operation = this.operationOf(id, asked);
    this.operations.set(operation.key, operation);
    this.named.set(id, operation);
    return this.run(operation, take);
  }

  private operationOf(id: string, asked: Asked): Operation {
    const requestId = randomUUID();
    const seen: Seen = { ...SEEN, requestId };
    if (this.caller) seen.user = this.caller.username;
    const listening = new Listening(this.req, requestId, seen);
    return { id, key: String(++this.lastKey), asked, listening, seen, begunAt: performance.now() };
  }

  private async run(operation: Operation, take: Take): Promise<void> {
    try {
      // The protocol's server would keep what the client asks for until the end.
      await take(stringifyMessage({ id: operation.key, type: MessageType.Subscribe, payload: { query: '' } }));
    } finally {
      operation.listening.end();
      this.forget(operation);
      this.operations.delete(operation.key);
      if (!operation.asked) this.services.observe(operation.seen, performance.now() - operation.begunAt);
      if (this.operations.size === 0) this.onIdle?.();
    }
  }

  // It ends at once, for what it waits for may take long.
  private complete(id: string, take: Take): Promise<void> {
    const operation = this.named.get(id);
    if (!operation) return Promise.resolve();
    this.forget(operation);
    operation.listening.end();
    return take(stringifyMessage({ id: operation.key, type: MessageType.Complete }));
  }

  private forget(operation: Operation): void {
    if (this.named.get(operation.id) === operation) this.named.delete(operation.id);
  }

  // Those that are still ending count, too, but leave room for a client that ends all it has and begins as many.
  private refuseMore(): void {
    const most = this.services.config.maxSubscriptionsPerSocket;
    if (this.named.size <= most && this.operations.size <= 2 * most) return;
    throw new DomainError('RATE_LIMITED', `This connection has ${most} subscriptions already`);
  }

  private send(text: string): Promise<void> {
    const [start, key = '', type] = OF_OPERATION.exec(text) ?? [];
    if (start === undefined) return this.write(text);
    const operation = this.operations.get(key);
    // Of what the client has ended, it is told nothing more.
    if (!operation || this.named.get(operation.id) !== operation) return Promise.resolve();
    if (type !== MessageType.Next) this.forget(operation);
    const told = `{"id":${JSON.stringify(operation.id)},"type":"${type}"${text.slice(start.length)}`;
    operation.seen.bytes += Buffer.byteLength(told);
    return this.write(told);
  }

  // What is not taken by the network yet is waited for, so that no more than one answer of a subscription ever lies here.
  private write(text: string): Promise<void> {
    if (this.socket.readyState !== this.socket.OPEN) return Promise.resolve();
    return new Promise((done) => this.socket.send(text, () => done()));
  }

  // First what each subscription is told, as far as the client reads it, and then the end.
  private async leave(code: number, refusal: DomainError): Promise<void> {
    if (this.isLeaving) return;
    this.isLeaving = true;
    for (const { listening } of this.operations.values()) listening.end(refusal);
    if (this.operations.size > 0) {
      const told = new Promise<void>((done) => (this.onIdle = done));
      await Promise.race([told, delay(GRACE_MS, undefined, { ref: false })]);
    }
    this.close(code, refusal.message);
  }

  private close(code: number, reason: string): void {
    // What is left of a letter that is cut in two goes with it.
    this.socket.close(code, new TextDecoder().decode(Buffer.from(reason).subarray(0, MAX_REASON), { stream: true }));
    setTimeout(() => this.socket.terminate(), GRACE_MS).unref();
  }

  private fail(error: unknown): void {
    this.services.log.error({ err: error }, 'a message of a WebSocket failed');
    this.close(CloseCode.InternalServerError, 'Internal server error');
  }

  private mayTake(): boolean {
    const now = performance.now();
    this.allowance = Math.min(BURST, this.allowance + ((now - this.countedAt) / 1000) * PER_SECOND);
    this.countedAt = now;
    return --this.allowance >= 0;
  }
}

function messageIn(text: string): Message | undefined {
  try {
    return parseMessage(text);
  } catch {
    return undefined;
  }
}
