import { randomBytes, randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { GraphQLError, type FormattedExecutionResult } from 'graphql';
import {
  CloseCode,
  MessageType,
  parseMessage,
  stringifyMessage,
  type Message,
  type Server,
  type SubscribePayload,
} from 'graphql-ws';
import type { WebSocket } from 'ws';
import type { Caller, Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { KeyedLimit } from '../../core/keyed-limit.ts';
import { findCaller, isAnonymous } from '../../http/credentials.ts';
import { unavailableError, visibleError } from '../../http/http-error.ts';
import { contextOf, type Dependencies } from '../../http/dependencies.ts';
import type { RequestRecord } from '../../telemetry/request-record.ts';
import type { SharedEvent } from './shared-events.ts';
import { formatAndRecordErrors } from '../errors.ts';
import {
  logSlowConsumer,
  type SubscriberConnection,
  type SubscriptionRegistry,
} from './registry.ts';
import { ActiveSubscription } from './active-subscription.ts';
import { SUBSCRIPTION, type Prepared } from './subscription.ts';

/** Close codes (RFC 6455, 7.4.1). The code for slow consumers is our own. */
const GOING_AWAY = 1001;
const TOO_MANY_MESSAGES = 1008;
const TOO_LARGE = 1009;
const TRY_AGAIN_LATER = 1013;
const SLOW_CONSUMER = 4410;
/** Maximum number of bytes of a reason in a close frame. */
const MAX_REASON_BYTES = 123;
/**
 * Maximum number of characters of messages other than subscribe: graphql-ws retains the payload of
 * `connection_init` and sends back that of a ping.
 */
const MAX_OTHER_MESSAGE = 8_000;
/** Maximum number of characters of an operation id, which is stored and sent with each event. */
const MAX_ID_LENGTH = 100;
/** Maximum number of messages, pings and unexpected pongs of a client: at once, and per second. */
const BURST = 100;
const PER_SECOND = 10;
/** Maximum number of bytes that a client may leave unread. A further message disconnects it. */
const MAX_UNSENT_BYTES = 1_000_000;
const PING_BYTES = 8;

/** The request record of each subscription. The status is that of the handshake. */
const RECORD_DEFAULTS = {
  method: 'GET',
  api: 'graphql',
  endpoint: 'GET /graphql',
  operation: SUBSCRIPTION,
  status: 101,
  bytes: 0,
  end: 'answered',
} as const;
/** Maximum number of subscriptions of a network that start at the same time. */
const MAX_STARTING_PER_NETWORK = 4;
/** Result passed to graphql-ws in place of a response, whose text we send ourselves. */
const EMPTY_RESULT = {};
/** Start of a graphql-ws message about an operation. Our key is replaced by the client's id. */
const OPERATION_MESSAGE = /^\{"id":"(\d+)","type":"(\w+)"/;

const starting = new KeyedLimit(MAX_STARTING_PER_NETWORK);
/** One subscription starts in each turn of the event loop, because documents may be long. */
const turns = new KeyedLimit();

/** Result of a subscription that cannot start. */
interface Failed {
  readonly errors?: readonly GraphQLError[] | undefined;
}

/** Passes a message to graphql-ws. */
type HandleMessage = (text: string) => Promise<void>;

/** An operation of the client, until all its work has ended. */
interface Operation {
  /** The client's id of the operation. */
  readonly id: string;
  /** Our unique key of the operation. */
  readonly key: string;
  /** The client's payload, until it is prepared. */
  payload: SubscribePayload | undefined;
  readonly subscription: ActiveSubscription;
  readonly record: RequestRecord;
  readonly startedAt: number;
  /** Error for which it is rejected on arrival. */
  readonly refusal: DomainError | undefined;
  /** The next response, until it is sent. */
  response: string | undefined;
  /** Releases the network's start slot, once it is decided whether the operation starts. */
  releaseSlot: () => void;
  /** Called when it has started, or its error is sent. The next message is then read. */
  onStarted: () => void;
}

/**
 * A WebSocket with its subscriptions. graphql-ws gets a unique key for each, because a client may
 * reuse an id as soon as it has completed an operation, before the operation's work has ended.
 */
export class WebSocketConnection implements SubscriberConnection {
  caller: Caller | undefined;
  /** All operations whose work has not ended, by our keys. */
  private readonly operations = new Map<string, Operation>();
  /** Operations that neither the client nor the server has completed, by the client's ids. */
  private readonly active = new Map<string, Operation>();
  private lastKey = 0;
  private readonly maxSubscriptions: number;
  /** Data of the last ping, until the client has responded. */
  private pendingPing: Buffer | undefined;
  private isPongWaiting = false;
  /** Number of complete messages, and its value at the last ping if a message was incomplete. */
  private messages = 0;
  private messagesBeforeFragment: number | undefined;
  /** Resolves when all received messages have been handled, in order. */
  private queue = Promise.resolve();
  private isEnding = false;
  private allowance = BURST;
  private refilledAt = performance.now();
  private onIdle: (() => void) | undefined;

  private readonly graceMs: number;

  constructor(
    private readonly socket: WebSocket,
    private readonly req: IncomingMessage,
    private readonly dependencies: Dependencies,
    readonly network: string,
    private readonly isOverloaded: () => boolean,
  ) {
    this.maxSubscriptions = dependencies.config.maxSubscriptionsPerSocket;
    this.graceMs = dependencies.config.subscriptionGraceMs;
  }

  /** Runs the protocol until the socket closes. */
  open(protocol: Server<WebSocketConnection>, registry: SubscriptionRegistry): void {
    const { socket } = this;
    const remove = registry.add(this);
    socket.on('error', () => socket.terminate());
    socket.on('ping', (data: Buffer) => {
      if (this.checkRate())
        void this.pong(() => new Promise((done) => socket.pong(data, false, () => done())));
    });
    socket.on('pong', (data: Buffer) => {
      if (this.pendingPing?.equals(data)) this.pendingPing = undefined;
      else this.checkRate();
    });
    const closed = protocol.opened(
      {
        protocol: socket.protocol,
        send: (text) => this.send(text),
        close: (code = CloseCode.InternalServerError, reason = '') => this.close(code, reason),
        onMessage: (handle) =>
          socket.on('message', (bytes: Buffer) => {
            this.messages++;
            if (!this.checkRate()) return;
            const text = bytes.toString();
            this.queue = this.queue
              .then(() => this.receive(text, handle))
              .catch((error: unknown) => this.fail(error));
          }),
      },
      this,
    );
    socket.once('close', (code, reason) => {
      for (const { subscription } of this.operations.values()) subscription.end();
      remove();
      void closed(code, reason.toString());
    });
  }

  /**
   * Authenticates by the parameters of `connection_init`, or else by their `headers`, or else by the
   * request's headers.
   */
  async identify(params: Readonly<Record<string, unknown>>): Promise<boolean> {
    const sources = [headersIn(params), headersIn(params['headers'])];
    const ctx = this.contextFor(new ActiveSubscription(this.req));
    try {
      const bearer = sources.find((source) => !isAnonymous(source)) ?? this.req;
      if (!isAnonymous(bearer)) await this.withSlot(() => findCaller(ctx, bearer));
      this.caller = ctx.caller;
      return true;
    } catch (error) {
      const refusal = visibleError(error);
      if (!(refusal instanceof DomainError)) throw error;
      this.close(
        refusal.code === 'UNAVAILABLE' ? TRY_AGAIN_LATER : CloseCode.Forbidden,
        refusal.message,
      );
      return false;
    }
  }

  /** Prepares the subscription with this key. Returns its errors if it is rejected. */
  prepare(
    key: string,
    prepare: (
      ctx: Context,
      subscription: ActiveSubscription,
      payload: SubscribePayload,
    ) => Prepared | readonly GraphQLError[],
  ): Prepared | readonly GraphQLError[] {
    const operation = this.operations.get(key);
    if (!operation?.payload) throw new TypeError('The operation has already started');
    const { payload } = operation;
    operation.payload = undefined;
    let isStarting = false;
    try {
      if (operation.refusal) throw operation.refusal;
      const { subscription } = operation;
      const ctx = this.contextFor(subscription);
      if (this.caller) ctx.caller = this.caller;
      const prepared = prepare(ctx, subscription, payload);
      if (!('subscription' in prepared)) return prepared;
      isStarting = true;
      prepared.onStarted = operation.onStarted;
      onAbort(subscription.signal, () => {
        if (subscription.error?.code !== 'SLOW_CONSUMER' || this.isEnding) return;
        logSlowConsumer(this.dependencies, this.network);
        void this.endAll(SLOW_CONSUMER, subscription.error);
      });
      return prepared;
    } catch (error) {
      const refusal = visibleError(error);
      if (!refusal) throw error;
      if (refusal instanceof DomainError)
        return [new GraphQLError(refusal.message, { originalError: refusal })];
      return [
        new GraphQLError(refusal.message, {
          extensions: { code: ApolloServerErrorCode.BAD_REQUEST },
        }),
      ];
    } finally {
      // Sending the error to a slow client does not occupy the slot.
      if (!isStarting) operation.releaseSlot();
    }
  }

  /** Returns the request record of the operation with this key. */
  recordOf(key: string): RequestRecord {
    const operation = this.operations.get(key);
    if (!operation) throw new TypeError('The operation has already ended');
    return operation.record;
  }

  /** Stores a response, which is sent in place of the returned result. Returns start errors. */
  deliver(key: string, result: SharedEvent | Failed): FormattedExecutionResult {
    if (!('text' in result))
      return {
        errors: formatAndRecordErrors(this.dependencies, result.errors ?? [], this.recordOf(key)),
      };
    const operation = this.operations.get(key);
    if (operation) operation.response = result.text;
    return EMPTY_RESULT;
  }

  endExpired(refusal: DomainError): void {
    void this.endAll(CloseCode.Forbidden, refusal);
  }

  endForShutdown(): void {
    this.close(GOING_AWAY, 'Going away');
  }

  ping(): void {
    const isSame = this.messagesBeforeFragment === this.messages;
    this.messagesBeforeFragment = isFragmented(this.socket) ? this.messages : undefined;
    // Clients respond to pings between the fragments of a message (RFC 6455, 5.4).
    if (this.pendingPing || (isSame && this.messagesBeforeFragment !== undefined))
      return this.socket.terminate();
    this.pendingPing = randomBytes(PING_BYTES);
    this.socket.ping(this.pendingPing);
  }

  private contextFor(subscription: ActiveSubscription): Context {
    return contextOf(this.dependencies, this.req, subscription);
  }

  // Waits until a subscription has started. Other messages are handled in the background.
  private async receive(text: string, handle: HandleMessage): Promise<void> {
    if (!this.isOpen()) return;
    const message = parse(text);
    if (message?.type !== MessageType.Subscribe && text.length > MAX_OTHER_MESSAGE)
      return this.close(TOO_LARGE, 'Message too large');
    switch (message?.type) {
      case MessageType.Subscribe:
        return this.subscribe(message.id, message.payload, handle);
      case MessageType.Complete:
        return this.complete(message.id, handle);
      case MessageType.Ping:
        return this.inBackground(this.pong(() => handle(text)));
      case MessageType.ConnectionInit:
      case MessageType.Pong:
        return this.inBackground(handle(text));
      default:
        return this.close(CloseCode.BadRequest, 'Invalid message received');
    }
  }

  private async subscribe(
    id: string,
    payload: SubscribePayload,
    handle: HandleMessage,
  ): Promise<void> {
    if (id.length > MAX_ID_LENGTH)
      return this.close(
        CloseCode.BadRequest,
        `An id must have at most ${MAX_ID_LENGTH} characters`,
      );
    if (this.active.has(id))
      return this.close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    const operation = this.operationOf(id, payload);
    this.operations.set(operation.key, operation);
    this.active.set(id, operation);
    // No further message is read meanwhile.
    this.socket.pause();
    await this.start(operation, handle);
    this.socket.resume();
  }

  // Waits for a slot of the network, unless the operation is rejected on arrival.
  private async start(operation: Operation, handle: HandleMessage): Promise<void> {
    if (!operation.refusal) operation.releaseSlot = await starting.take(this.network);
    await turns.run(undefined, () => nextTurn());
    return new Promise((done) => {
      operation.onStarted = () => {
        operation.releaseSlot();
        done();
      };
      this.inBackground(this.run(operation, handle));
    });
  }

  private async withSlot(work: () => Promise<void>): Promise<void> {
    const releaseSlot = await starting.take(this.network);
    try {
      // The socket may have closed meanwhile.
      if (this.isOpen()) await work();
    } finally {
      releaseSlot();
    }
  }

  private operationOf(id: string, payload: SubscribePayload): Operation {
    const requestId = randomUUID();
    const record: RequestRecord = { ...RECORD_DEFAULTS, requestId };
    if (this.caller) record.user = this.caller.username;
    const subscription = new ActiveSubscription(this.req, requestId, record);
    const key = String(++this.lastKey);
    return {
      id,
      key,
      payload,
      subscription,
      record,
      startedAt: performance.now(),
      refusal: this.limitError(),
      response: undefined,
      releaseSlot: () => undefined,
      onStarted: () => undefined,
    };
  }

  private limitError(): DomainError | undefined {
    if (this.isOverloaded()) return unavailableError();
    // Operations that are still ending count, but a client may replace all its operations at once.
    const isTooMany =
      this.active.size >= this.maxSubscriptions ||
      this.operations.size >= 2 * this.maxSubscriptions;
    return isTooMany
      ? new DomainError(
          'RATE_LIMITED',
          `This connection has ${this.maxSubscriptions} subscriptions, the maximum`,
        )
      : undefined;
  }

  private async run(operation: Operation, handle: HandleMessage): Promise<void> {
    try {
      // The payload is not passed on, because graphql-ws would retain it until the end.
      if (!operation.subscription.signal.aborted)
        await handle(
          stringifyMessage({
            id: operation.key,
            type: MessageType.Subscribe,
            payload: { query: '' },
          }),
        );
    } finally {
      operation.subscription.end();
      this.forget(operation);
      this.operations.delete(operation.key);
      operation.onStarted();
      if (!operation.payload)
        this.dependencies.observe(operation.record, performance.now() - operation.startedAt);
      if (this.operations.size === 0) this.onIdle?.();
    }
  }

  // Ends the subscription at once, because graphql-ws may wait long for its next event.
  private complete(id: string, handle: HandleMessage): void {
    const operation = this.active.get(id);
    if (!operation) return;
    this.forget(operation);
    operation.subscription.end();
    this.inBackground(handle(stringifyMessage({ id: operation.key, type: MessageType.Complete })));
  }

  private forget(operation: Operation): void {
    if (this.active.get(operation.id) === operation) this.active.delete(operation.id);
  }

  private send(text: string): Promise<void> {
    const [start, key = '', type] = OPERATION_MESSAGE.exec(text) ?? [];
    if (start === undefined) return this.write(text);
    const operation = this.operations.get(key);
    // Nothing more is sent about an operation that the client has completed.
    if (!operation || this.active.get(operation.id) !== operation) return Promise.resolve();
    if (type !== MessageType.Next) this.forget(operation);
    const { id, response } = operation;
    const rest = response === undefined ? text.slice(start.length) : `,"payload":${response}}`;
    operation.response = undefined;
    const frame = `{"id":${JSON.stringify(id)},"type":"${type}"${rest}`;
    operation.record.bytes += Buffer.byteLength(frame);
    return this.write(frame);
  }

  // Resolves when the network has accepted the text, so that at most one response of a subscription
  // is buffered.
  private write(text: string): Promise<void> {
    const { socket } = this;
    if (socket.readyState !== socket.OPEN) return Promise.resolve();
    if (socket.bufferedAmount > MAX_UNSENT_BYTES) {
      logSlowConsumer(this.dependencies, this.network);
      socket.terminate();
      return Promise.resolve();
    }
    return new Promise((done) => socket.send(text, () => done()));
  }

  // Only the last ping needs a pong (RFC 6455, 5.5.3), so at most one waits for a slow client.
  private async pong(send: () => Promise<void>): Promise<void> {
    if (this.isPongWaiting) return;
    this.isPongWaiting = true;
    await send().finally(() => (this.isPongWaiting = false));
  }

  // Sends the error of each subscription, for a limited time, and then closes the socket.
  private async endAll(code: number, refusal: DomainError): Promise<void> {
    if (this.isEnding) return;
    this.isEnding = true;
    for (const { subscription } of this.operations.values()) subscription.end(refusal);
    if (this.operations.size > 0) {
      const idle = new Promise<void>((done) => (this.onIdle = done));
      await Promise.race([idle, delay(this.graceMs, undefined, { ref: false })]);
    }
    this.close(code, refusal.message);
  }

  private close(code: number, reason: string): void {
    // Drops an incomplete character at the end of the truncated reason.
    this.socket.close(
      code,
      new TextDecoder().decode(Buffer.from(reason).subarray(0, MAX_REASON_BYTES), { stream: true }),
    );
    setTimeout(() => this.socket.terminate(), this.graceMs).unref();
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.fail(error));
  }

  private fail(error: unknown): void {
    this.dependencies.log.error({ err: error }, 'WebSocket message failed');
    this.close(CloseCode.InternalServerError, 'Internal server error');
  }

  // Messages that arrive while the socket is closing must not start anything.
  private isOpen(): boolean {
    return !this.isEnding && this.socket.readyState === this.socket.OPEN;
  }

  private checkRate(): boolean {
    if (!this.isOpen()) return false;
    const now = performance.now();
    this.allowance = Math.min(
      BURST,
      this.allowance + ((now - this.refilledAt) / 1000) * PER_SECOND,
    );
    this.refilledAt = now;
    if (--this.allowance >= 0) return true;
    this.close(TOO_MANY_MESSAGES, 'Too many messages');
    return false;
  }
}

// Returns the texts of an object as headers.
function headersIn(params: unknown): Pick<IncomingMessage, 'headers'> {
  const texts = Object.entries(params ?? {}).filter(([, value]) => typeof value === 'string');
  return { headers: Object.fromEntries(texts.map(([name, text]) => [name.toLowerCase(), text])) };
}

// Returns whether a message is incomplete. The library only reports complete messages.
function isFragmented(socket: WebSocket): boolean {
  const receiver: unknown = Reflect.get(socket, '_receiver');
  return (
    typeof receiver === 'object' &&
    receiver !== null &&
    Boolean(Reflect.get(receiver, '_fragmented'))
  );
}

function parse(text: string): Message | undefined {
  try {
    return parseMessage(text);
  } catch {
    return undefined;
  }
}
