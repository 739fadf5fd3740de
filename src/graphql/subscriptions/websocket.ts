import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { GraphQLError, parse, type ExecutionArgs, type ExecutionResult } from 'graphql';
import { CloseCode, type SubscribePayload } from 'graphql-ws';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Caller, Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { findCaller, isAnonymous } from '../../http/credentials.ts';
import { contextOf, networkOfClient } from '../../http/dependencies.ts';
import { checkHeaders } from '../../http/headers.ts';
import { HttpError, unavailableError, visibleError } from '../../http/http-error.ts';
import type { Upgrades } from '../../http/http-server.ts';
import { withoutEmptyMembers } from '../request-parameters.ts';
import { ActiveSubscription } from './active-subscription.ts';
import type { SubscriptionConnections } from './connections.ts';
import { logSlowConsumer, type SubscriberConnection } from './registry.ts';
import type { SharedEvent } from './subscription.ts';

/** Close codes (RFC 6455, 7.4.1). The code for slow consumers is our own. */
const GOING_AWAY = 1001;
const TOO_MANY_MESSAGES = 1008;
const TRY_AGAIN_LATER = 1013;
const SLOW_CONSUMER = 4410;
/** Maximum time until `connection_init`, in milliseconds. */
const INIT_TIMEOUT_MS = 5_000;
/** Interval of pings, and maximum time until the response to one, in milliseconds. */
const PING_INTERVAL_MS = 12_000;
/** Maximum number of bytes of a message. */
const MAX_MESSAGE_BYTES = 16 * 1024;
/** Maximum number of fragments of a message, and of buffered network chunks of a fragment. */
const MAX_FRAGMENTS = 100;
const MAX_BUFFERED_CHUNKS = 1_000;
/** Maximum number of bytes of an operation id, which close reasons of at most 123 bytes repeat. */
const MAX_ID_BYTES = 90;
/** Maximum number of messages, pings and pongs of a client: at once, and per second. */
const BURST = 100;
const PER_SECOND = 10;
/** Maximum number of bytes that a client may leave unread. A further message disconnects it. */
const MAX_UNREAD_BYTES = 1_000_000;
/** The document that graphql-ws gets, which reads only its type. It keeps it until the end. */
const DOCUMENT = parse('subscription { event }', { noLocation: true });

/**
 * Serves subscriptions over WebSocket at the GraphQL path, by the protocol `graphql-transport-ws`.
 * Credentials come with `connection_init`, because a browser cannot set headers here. Credentials
 * are never ambient, so the origin of the page does not matter.
 */
export function openWebSockets(connections: SubscriptionConnections): Upgrades {
  const { dependencies, registry, upgradeErrors, isOverloaded } = connections;
  const { config } = dependencies;
  const path = `${config.basePath}/graphql`;
  const serverOptions = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_BUFFERED_CHUNKS,
    closeTimeout: config.subscriptionGraceMs,
  };
  const server = new WebSocketServer(serverOptions);
  const open = new WeakMap<WebSocket, WebSocketConnection>();
  const connectionOf = ({ extra: { socket } }: { extra: { socket: WebSocket } }) => {
    const connection = open.get(socket);
    if (!connection) throw new TypeError('Unknown WebSocket');
    return connection;
  };
  server.on('connection', (socket, req) =>
    open.set(socket, new WebSocketConnection(socket, req, connections)),
  );
  useServer(
    {
      isProd: true,
      connectionInitWaitTimeout: INIT_TIMEOUT_MS,
      onConnect(ctx) {
        const { connectionParams = {} } = ctx;
        // graphql-ws would keep them until the end.
        Reflect.deleteProperty(ctx, 'connectionParams');
        return connectionOf(ctx).identify(connectionParams);
      },
      // A pong confirms that the subscriptions requested before the ping have started.
      onPing: (ctx) => connectionOf(ctx).starting,
      onSubscribe: (ctx, id, payload) => connectionOf(ctx).subscribe(id, payload),
      subscribe: ({ contextValue }) => contextValue as AsyncGenerator<ExecutionResult>,
      onNext: (ctx, id, _payload, _args, event) =>
        connectionOf(ctx).responseTo(id, event as unknown as SharedEvent),
      onComplete: (ctx, id) => connectionOf(ctx).complete(id),
    },
    server,
    PING_INTERVAL_MS,
  );
  // useServer prints each violation of the protocol and each network error to the console.
  server.on('connection', (socket) =>
    socket.removeAllListeners('error').on('error', () => socket.terminate()),
  );
  return {
    // A rejected handshake gets the response of a request without an upgrade.
    accepts(req) {
      const { method, url = '', headers } = req;
      if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket' || !isAt(path, url))
        return false;
      try {
        checkHeaders(req);
        if (isOverloaded()) throw unavailableError();
        registry.rejectIfFull(networkOfClient(config, req));
        return true;
      } catch (error) {
        if (!(error instanceof DomainError || error instanceof HttpError)) throw error;
        upgradeErrors.set(req, error);
        return false;
      }
    },
    upgrade(req, socket, head) {
      socket.on('error', () => socket.destroy());
      // For a rejection that the client does not read. An open WebSocket has no such limit.
      socket.setTimeout(config.subscriptionGraceMs, () => socket.destroy());
      server.handleUpgrade(req, socket, head, (opened) => server.emit('connection', opened, req));
    },
  };
}

/** A WebSocket with its subscriptions. */
class WebSocketConnection implements SubscriberConnection {
  readonly network: string;
  caller: Caller | undefined;
  /** Resolves when all requested subscriptions have started, or their errors are sent. */
  starting = Promise.resolve();
  /** Subscriptions whose work has not ended, by the client's ids. */
  private readonly active = new Map<string, ActiveSubscription>();
  /** Closes the socket. Set when all subscriptions are being ended. */
  private finish: (() => void) | undefined;
  private allowance = BURST;
  private refilledAt = performance.now();

  constructor(
    private readonly socket: WebSocket,
    private readonly req: IncomingMessage,
    private readonly connections: SubscriptionConnections,
  ) {
    const { dependencies, registry } = connections;
    this.network = networkOfClient(dependencies.config, req);
    const remove = registry.add(this);
    for (const event of ['message', 'ping', 'pong']) socket.on(event, () => this.limitClient());
    socket.once('close', () => {
      remove();
      for (const subscription of this.active.values()) subscription.end();
    });
  }

  /**
   * Authenticates by the parameters of `connection_init`, or else by their `headers`, or else by the
   * request's headers. Returns whether the connection is accepted.
   */
  async identify(params: Readonly<Record<string, unknown>>): Promise<boolean> {
    const sources = [headersIn(params), headersIn(params['headers'])];
    const ctx = this.contextOf(new ActiveSubscription(this.req));
    try {
      await findCaller(ctx, sources.find((source) => !isAnonymous(source)) ?? this.req);
      this.caller = ctx.caller;
      return true;
    } catch (error) {
      const refusal = visibleError(error);
      if (refusal instanceof DomainError) {
        const isRetryable = refusal.code === 'UNAVAILABLE';
        this.socket.close(isRetryable ? TRY_AGAIN_LATER : CloseCode.Forbidden, refusal.message);
      } else {
        this.connections.dependencies.log.error({ err: error }, 'WebSocket message failed');
        this.socket.close(CloseCode.InternalServerError, 'Internal server error');
      }
      return false;
    }
  }

  /** Starts a subscription for graphql-ws. Returns its errors if it is rejected. */
  async subscribe(
    id: string,
    payload: SubscribePayload,
  ): Promise<ExecutionArgs | readonly GraphQLError[]> {
    const { socket } = this;
    if (Buffer.byteLength(id) > MAX_ID_BYTES)
      socket.close(CloseCode.BadRequest, `An id must have at most ${MAX_ID_BYTES} bytes`);
    // graphql-ws would mix up an operation with one of the same id that is still ending.
    if (this.active.has(id))
      socket.close(CloseCode.SubscriberAlreadyExists, `Subscriber for ${id} already exists`);
    // Messages that arrive while the socket is closing must not start anything.
    if (this.finish || socket.readyState !== socket.OPEN)
      return [new GraphQLError('The connection is closed')];
    const subscription = new ActiveSubscription(this.req);
    if (this.caller) subscription.record.user = this.caller.username;
    const opening = this.open(id, payload, subscription).catch((error: unknown) =>
      this.connections.subscriptions.formatted([error], subscription),
    );
    this.starting = Promise.all([this.starting, opening]).then(() => setImmediate());
    const opened = await opening;
    // graphql-ws passes the context to the hook `subscribe`.
    if ('next' in opened) return { document: DOCUMENT, contextValue: opened } as ExecutionArgs;
    subscription.end();
    this.complete(id, subscription);
    return opened;
  }

  /** Returns the response to send for an event. */
  responseTo(id: string, { response, size }: SharedEvent): SharedEvent['response'] {
    this.disconnectIfUnread();
    const subscription = this.active.get(id);
    if (subscription) subscription.record.bytes += size;
    return response;
  }

  /** Removes a subscription whose work has ended. */
  complete(id: string, subscription = this.active.get(id)): void {
    if (!subscription) return;
    if (this.active.get(id) === subscription) this.active.delete(id);
    const { record, startedAt } = subscription;
    this.connections.dependencies.observe(record, performance.now() - startedAt);
    if (this.active.size === 0) this.finish?.();
  }

  endExpired(refusal: DomainError): void {
    this.endAll(CloseCode.Forbidden, refusal);
  }

  endForShutdown(): void {
    this.socket.close(GOING_AWAY, 'Going away');
  }

  private contextOf(subscription: ActiveSubscription): Context {
    return contextOf(this.connections.dependencies, this.req, subscription);
  }

  private async open(
    id: string,
    payload: SubscribePayload,
    subscription: ActiveSubscription,
  ): Promise<AsyncGenerator<SharedEvent> | readonly GraphQLError[]> {
    const { dependencies, isOverloaded, subscriptions, trusted } = this.connections;
    const { maxSubscriptionsPerSocket: max } = dependencies.config;
    if (isOverloaded()) throw unavailableError();
    if ([...this.active.values()].filter(({ signal }) => !signal.aborted).length >= max)
      throw new DomainError(
        'RATE_LIMITED',
        `This connection has ${max} subscriptions, the maximum`,
      );
    this.active.set(id, subscription);
    onAbort(subscription.signal, () => {
      const { error } = subscription;
      if (error?.code !== 'SLOW_CONSUMER' || this.finish) return;
      logSlowConsumer(dependencies, this.network);
      this.endAll(SLOW_CONSUMER, error);
    });
    // The protocol requires a query. It is empty if the client sends a document id.
    const { query, ...rest } = payload;
    // graphql-ws would keep them until the end.
    Object.assign(payload, { query: '', variables: undefined, extensions: undefined });
    const request = withoutEmptyMembers(query === '' ? rest : { query, ...rest });
    const body = (trusted ? trusted.readBody(request) : request) as SubscribePayload;
    const ctx = this.contextOf(subscription);
    if (this.caller) ctx.caller = this.caller;
    return subscriptions.open(ctx, { ...body, query: body.query ?? '' }, subscription);
  }

  // Sends the error of each subscription, for a limited time, and then closes the socket.
  private endAll(code: number, refusal: DomainError): void {
    if (this.finish) return;
    this.finish = () => this.socket.close(code, refusal.message);
    for (const subscription of this.active.values()) subscription.end(refusal);
    const { subscriptionGraceMs } = this.connections.dependencies.config;
    if (this.active.size === 0) this.finish();
    else setTimeout(this.finish, subscriptionGraceMs).unref();
  }

  private limitClient(): void {
    const now = performance.now();
    const refill = ((now - this.refilledAt) / 1000) * PER_SECOND;
    this.allowance = Math.min(BURST, this.allowance + refill) - 1;
    this.refilledAt = now;
    if (this.allowance < -BURST) this.socket.terminate();
    else if (this.allowance < 0) this.socket.close(TOO_MANY_MESSAGES, 'Too many messages');
    this.disconnectIfUnread();
  }

  private disconnectIfUnread(): void {
    const { socket, network } = this;
    if (socket.readyState !== socket.OPEN || socket.bufferedAmount <= MAX_UNREAD_BYTES) return;
    logSlowConsumer(this.connections.dependencies, network);
    socket.terminate();
  }
}

// Returns the texts of an object as headers.
function headersIn(params: unknown): Pick<IncomingMessage, 'headers'> {
  const texts = Object.entries(params ?? {}).filter(([, value]) => typeof value === 'string');
  return { headers: Object.fromEntries(texts.map(([name, text]) => [name.toLowerCase(), text])) };
}

function isAt(path: string, url: string): boolean {
  const [pathname] = url.split('?', 1);
  return pathname === path || pathname === `${path}/`;
}
