import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, type FormattedExecutionResult } from 'graphql';
import { CloseCode, MessageType, parseMessage, stringifyMessage, type Message, type Server, type SubscribePayload } from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Caller, Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { Turns } from '../../core/keyed-limit.ts';
import { findCaller, isAnonymous } from '../../http/credentials.ts';
import { unavailable, visibleError } from '../../http/http-error.ts';
import { inFlight } from '../../http/in-flight.ts';
import { contextOf, type Services } from '../../http/dependencies.ts';
import type { Seen } from '../../telemetry/request-record.ts';
import type { Delivery } from './shared-events.ts';
import { refusalsOf } from '../errors.ts';
import { tellBehind, type Listener, type Listeners } from './registry.ts';
import { Listening } from './active-subscription.ts';
import { GRACE_MS } from './connections.ts';
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
/** Maximum number of messages, pings and unexpected pongs of a client at once, and of those a second from then on. */
const BURST = 100;
const PER_SECOND = 10;
/** Maximum number of bytes that a client leaves unread before it is disconnected, beside the message that exceeds it. */
const MAX_UNSENT_BYTES = 1_000_000;
const PING_BYTES = 8;

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
/** How many subscriptions of a network begin at a time. */
const BEGINNING_AT_ONCE = 4;
/** What the protocol's server is told of an answer, whose text it need not know. */
const ANSWER = {};
/** How what the protocol's server tells of an operation begins: with our key of it, in place of which the client is told its id. */
const OF_OPERATION = /^\{"id":"(\d+)","type":"(\w+)"/;

const beginning = new Turns(BEGINNING_AT_ONCE);

/** A subscription that cannot begin. */
interface Failed {
  readonly errors?: readonly GraphQLError[] | undefined;
}

/** Has the protocol's server take a message. */
type Take = (text: string) => Promise<void>;

/** An operation of the client's, until all that was done for it is over. */
interface Operation {
  /** The client's name for it. */
  readonly id: string;
  /** Ours. */
  readonly key: string;
  /** What it asks for, until that is read. */
  asked: SubscribePayload | undefined;
  readonly listening: Listening;
  readonly seen: Seen;
  readonly begunAt: number;
  /** Why it is rejected, as known when the client asked for it. */
  readonly refusal: DomainError | undefined;
  /** The next answer, until it is sent. */
  answer: string | undefined;
  /** Called when it is decided whether it begins: from then on it costs nothing but its events, and the next of its network has its turn. */
  endTurn: () => void;
  /** Called when it has begun, or the client has been told why not: from then on, the socket's next message is read. */
  onBegun: () => void;
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
  private readonly most: number;
  /** The data of the last ping, until the client has answered it. */
  private unanswered: Buffer | undefined;
  private isPongWaiting = false;
  /** Number of complete messages, and what it was at the last ping where a message was incomplete. */
  private messages = 0;
  private messagesBeforeFragment: number | undefined;
  /** Resolves when all messages so far have been handled, each after the one before. */
  private turns = Promise.resolve();
  private isLeaving = false;
  private allowance = BURST;
  private countedAt = performance.now();
  private onIdle: (() => void) | undefined;

  constructor(
    private readonly socket: WebSocket,
    private readonly req: IncomingMessage,
    private readonly services: Services,
    readonly network: string,
  ) {
    this.most = services.config.maxSubscriptionsPerSocket;
  }

  /** Speaks the protocol, until the socket closes. */
  open(protocol: Server<SocketListener>, listeners: Listeners): void {
    const { socket } = this;
    const remove = listeners.add(this);
    socket.on('error', () => socket.terminate());
    socket.on('ping', (data: Buffer) => {
      if (this.mayContinue()) void this.pong(() => new Promise((done) => socket.pong(data, false, () => done())));
    });
    socket.on('pong', (data: Buffer) => {
      if (this.unanswered?.equals(data)) this.unanswered = undefined;
      else this.mayContinue();
    });
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (text) => this.send(text),
        close: (code = CloseCode.InternalServerError, reason = '') => this.close(code, reason),
        onMessage: (take) =>
          socket.on('message', (bytes: Buffer) => {
            this.messages++;
            if (!this.mayContinue()) return;
            const text = bytes.toString();
            this.turns = this.turns.then(() => this.receive(text, take)).catch((error: unknown) => this.fail(error));
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
      if (!isAnonymous(bearer)) await this.inTurn(() => findCaller(ctx, bearer));
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
    prepare: (ctx: Context, listening: Listening, asked: SubscribePayload) => Prepared | readonly GraphQLError[],
  ): Prepared | readonly GraphQLError[] {
    const operation = this.operations.get(key);
    if (!operation?.asked) throw new TypeError('An operation begins once');
    const { asked } = operation;
    operation.asked = undefined;
    let begins = false;
    try {
      if (operation.refusal) throw operation.refusal;
      const { listening } = operation;
      const ctx = this.contextFor(listening);
      if (this.caller) ctx.caller = this.caller;
      const prepared = prepare(ctx, listening, asked);
      if (!('listening' in prepared)) return prepared;
      begins = true;
      prepared.onBegun = operation.onBegun;
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
    } finally {
      // The client may take as long as it likes to read why it does not begin.
      if (!begins) operation.endTurn();
    }
  }

  /** What the observer will be told of the operation of this key. */
  seenOf(key: string): Seen {
    const operation = this.operations.get(key);
    if (!operation) throw new TypeError('Nothing is told of an operation that is over');
    return operation.seen;
  }

  /** Notes the text of an answer, which is sent in place of what this returns; the errors of a subscription that cannot begin are returned. */
  deliver(key: string, result: Delivery | Failed): FormattedExecutionResult {
    if (!('text' in result)) return { errors: refusalsOf(this.services, result.errors ?? [], this.seenOf(key)) };
    const operation = this.operations.get(key);
    if (operation) operation.answer = result.text;
    return ANSWER;
  }

  lapse(refusal: DomainError): void {
    void this.leave(CloseCode.Forbidden, refusal);
  }

  goAway(): void {
    this.close(GOING_AWAY, 'Going away');
  }

  beat(): void {
    const isSame = this.messagesBeforeFragment === this.messages;
    this.messagesBeforeFragment = isFragmented(this.socket) ? this.messages : undefined;
    // Between the fragments of a message, pings are answered (RFC 6455, 5.4).
    if (this.unanswered || (isSame && this.messagesBeforeFragment !== undefined)) return this.socket.terminate();
    this.unanswered = randomBytes(PING_BYTES);
    this.socket.ping(this.unanswered);
  }

  private contextFor(listening: Listening): Context {
    return contextOf(this.services, listening);
  }

  // A subscription is begun before the next message is handled. What else takes long is not waited for.
  private async receive(text: string, take: Take): Promise<void> {
    if (!this.isOpen()) return;
    const message = messageIn(text);
    if (message?.type !== MessageType.Subscribe && text.length > MOST_BESIDE) return this.close(TOO_LARGE, 'Message too large');
    switch (message?.type) {
      case MessageType.Subscribe:
        return this.operate(message.id, message.payload, take);
      case MessageType.Complete:
        return this.complete(message.id, take);
      case MessageType.Ping:
        return this.inBackground(this.pong(() => take(text)));
      case MessageType.ConnectionInit:
      case MessageType.Pong:
        return this.inBackground(take(text));
      default:
        return this.close(CloseCode.BadRequest, 'Invalid message received');
    }
  }

  private async operate(id: string, asked: SubscribePayload, take: Take): Promise<void> {
    if (id.length > MAX_ID) return this.close(CloseCode.BadRequest, `An id has at most ${MAX_ID} characters`);
    if (this.named.has(id)) return this.close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    const operation = this.operationOf(id, asked);
    this.operations.set(operation.key, operation);
    this.named.set(id, operation);
    // Nothing more is read meanwhile.
    this.socket.pause();
    await this.begun(operation, take);
    this.socket.resume();
  }

  // Until it has begun or was refused, it is queued and counted as a request is. What is rejected on arrival is not.
  private async begun(operation: Operation, take: Take): Promise<void> {
    if (!operation.refusal) operation.endTurn = await this.takeTurn();
    return new Promise((done) => {
      operation.onBegun = () => {
        operation.endTurn();
        done();
      };
      this.inBackground(this.run(operation, take));
    });
  }

  // Waits for a turn of the network, and then in the queue of requests. Returns what ends the turn.
  private async takeTurn(): Promise<() => void> {
    const endTurn = await beginning.take(this.network);
    return new Promise((start) => {
      const end = () => {
        inFlight.remove(ticket, true);
        endTurn();
      };
      const ticket = inFlight.issue(
        () => start(end),
        () => true,
      );
      inFlight.add(ticket);
    });
  }

  private async inTurn(work: () => Promise<void>): Promise<void> {
    const endTurn = await this.takeTurn();
    try {
      // The client may have left meanwhile.
      if (this.isOpen()) await work();
    } finally {
      endTurn();
    }
  }

  private operationOf(id: string, asked: SubscribePayload): Operation {
    const requestId = randomUUID();
    const seen: Seen = { ...SEEN, requestId };
    if (this.caller) seen.user = this.caller.username;
    const listening = new Listening(this.req, requestId, seen);
    const key = String(++this.lastKey);
    return {
      id,
      key,
      asked,
      listening,
      seen,
      begunAt: performance.now(),
      refusal: this.refusalOfMore(),
      answer: undefined,
      endTurn: () => undefined,
      onBegun: () => undefined,
    };
  }

  private refusalOfMore(): DomainError | undefined {
    if (inFlight.isFull()) return unavailable();
    // Those that are still ending count, too, but leave room for a client that ends all it has and begins as many.
    const isTooMany = this.named.size >= this.most || this.operations.size >= 2 * this.most;
    return isTooMany ? new DomainError('RATE_LIMITED', `This connection has ${this.most} subscriptions already`) : undefined;
  }

  private async run(operation: Operation, take: Take): Promise<void> {
    try {
      // The protocol's server would keep what the client asks for until the end.
      if (!operation.listening.isGivenUp)
        await take(stringifyMessage({ id: operation.key, type: MessageType.Subscribe, payload: { query: '' } }));
    } finally {
      operation.listening.end();
      this.forget(operation);
      this.operations.delete(operation.key);
      operation.onBegun();
      if (!operation.asked) this.services.observe(operation.seen, performance.now() - operation.begunAt);
      if (this.operations.size === 0) this.onIdle?.();
    }
  }

  // It ends at once, for what it waits for may take long.
  private complete(id: string, take: Take): void {
    const operation = this.named.get(id);
    if (!operation) return;
    this.forget(operation);
    operation.listening.end();
    this.inBackground(take(stringifyMessage({ id: operation.key, type: MessageType.Complete })));
  }

  private forget(operation: Operation): void {
    if (this.named.get(operation.id) === operation) this.named.delete(operation.id);
  }

  private send(text: string): Promise<void> {
    const [start, key = '', type] = OF_OPERATION.exec(text) ?? [];
    if (start === undefined) return this.write(text);
    const operation = this.operations.get(key);
    // Of what the client has ended, it is told nothing more.
    if (!operation || this.named.get(operation.id) !== operation) return Promise.resolve();
    if (type !== MessageType.Next) this.forget(operation);
    const { id, answer } = operation;
    const rest = answer === undefined ? text.slice(start.length) : `,"payload":${answer}}`;
    operation.answer = undefined;
    const told = `{"id":${JSON.stringify(id)},"type":"${type}"${rest}`;
    operation.seen.bytes += Buffer.byteLength(told);
    return this.write(told);
  }

  // What is not taken by the network yet is waited for, so that no more than one answer of a subscription ever lies here.
  private write(text: string): Promise<void> {
    const { socket } = this;
    if (socket.readyState !== socket.OPEN) return Promise.resolve();
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) {
      tellBehind(this.services, this.network);
      socket.terminate();
      return Promise.resolve();
    }
    return new Promise((done) => socket.send(text, () => done()));
  }

  // Only the last ping needs an answer (RFC 6455, 5.5.3): while a client does not read, one waits for it.
  private async pong(send: () => Promise<void>): Promise<void> {
    if (this.isPongWaiting) return;
    this.isPongWaiting = true;
    await send().finally(() => (this.isPongWaiting = false));
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

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.fail(error));
  }

  private fail(error: unknown): void {
    this.services.log.error({ err: error }, 'a message of a WebSocket failed');
    this.close(CloseCode.InternalServerError, 'Internal server error');
  }

  // What comes while it is being closed would begin what nobody is to have.
  private isOpen(): boolean {
    return !this.isLeaving && this.socket.readyState === this.socket.OPEN;
  }

  private mayContinue(): boolean {
    if (!this.isOpen()) return false;
    const now = performance.now();
    this.allowance = Math.min(BURST, this.allowance + ((now - this.countedAt) / 1000) * PER_SECOND);
    this.countedAt = now;
    if (--this.allowance >= 0) return true;
    this.close(TOO_MANY_MESSAGES, 'Too many messages');
    return false;
  }
}

// Whether fragments of a message have come and its end has not. The library tells only of whole messages.
function isFragmented(socket: WebSocket): boolean {
  const receiver: unknown = Reflect.get(socket, '_receiver');
  return typeof receiver === 'object' && receiver !== null && Boolean(Reflect.get(receiver, '_fragmented'));
}

function messageIn(text: string): Message | undefined {
  try {
    return parseMessage(text);
  } catch {
    return undefined;
  }
}
