import type { IncomingMessage } from 'node:http';
import { GraphQLError, type ExecutionArgs } from 'graphql';
import { CloseCode, type SubscribePayload } from 'graphql-ws';
import { useServer } from 'graphql-ws/use/ws';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Caller, Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { RequestContext, findCaller } from '../../http/dependencies.ts';
import { duplicateError, isAnonymous, networkOfClient } from '../../http/headers.ts';
import { HttpError, unavailableError, visibleError } from '../../http/http-error.ts';
import type { Upgrades } from '../../http/http-server.ts';
import type { SubscriberConnection, SubscriptionConnections } from './connections.ts';
import { ActiveSubscription } from './subscription.ts';

/** Close codes (RFC 6455, 7.4.1). The code for slow consumers is our own. */
const GOING_AWAY = 1001;
const TOO_MANY_MESSAGES = 1008;
const TRY_AGAIN_LATER = 1013;
const SLOW_CONSUMER = 4410;
/** Maximum number of bytes of a message, and of its fragments. */
const MAX_MESSAGE_BYTES = 16 * 1024;
const MAX_FRAGMENTS = 100;
/** Maximum number of messages, pings and pongs of a client in a period, and its length in ms. */
const MAX_MESSAGES = 100;
const PERIOD_MS = 10_000;
/** Maximum number of bytes that a client may leave unread. A further message disconnects it. */
const MAX_UNREAD_BYTES = 1_000_000;
/** Maximum time until a client responds to the closing of its socket, in ms. */
const CLOSE_TIMEOUT_MS = 5_000;
/** Time in which the errors of subscriptions are sent before the socket is closed, in ms. */
const GRACE_MS = 1_000;

/**
 * Serves subscriptions over WebSocket at the GraphQL path, by the protocol `graphql-transport-ws`.
 * Credentials come with `connection_init`, because a browser cannot set headers here. Credentials
 * are never ambient, so the origin of the page does not matter.
 */
export function openWebSockets(connections: SubscriptionConnections): Upgrades {
  const { dependencies, registry, upgradeErrors, isOverloaded, subscriptions } = connections;
  const { config } = dependencies;
  const path = `${config.basePath}/graphql`;
  const limits = { maxPayload: MAX_MESSAGE_BYTES, maxFragments: MAX_FRAGMENTS };
  const options = { noServer: true, closeTimeout: CLOSE_TIMEOUT_MS, ...limits };
  const server = new WebSocketServer(options);
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
      onConnect: (ctx) => connectionOf(ctx).identify(ctx.connectionParams),
      onSubscribe: (ctx, _id, payload) => connectionOf(ctx).prepare(payload),
      subscribe: (args) => subscriptions.subscribe(args),
      onNext: (ctx) => connectionOf(ctx).disconnectIfUnread(),
    },
    server,
  );
  // useServer prints each violation of the protocol and each network error to the console.
  server.on('connection', (socket) =>
    socket.removeAllListeners('error').on('error', () => socket.terminate()),
  );
  return {
    // A rejected handshake gets the response of a request without an upgrade.
    accepts(req) {
      const { method, url = '', headers } = req;
      const [pathname] = url.split('?', 1);
      if (method !== 'GET' || headers.upgrade?.toLowerCase() !== 'websocket' || pathname !== path)
        return false;
      try {
        const duplicate = duplicateError(req);
        if (duplicate) throw duplicate;
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
      server.handleUpgrade(req, socket, head, (opened) => server.emit('connection', opened, req));
    },
  };
}

/** A WebSocket with its subscriptions. */
class WebSocketConnection implements SubscriberConnection {
  readonly network: string;
  caller: Caller | undefined;
  private readonly active = new Set<ActiveSubscription>();
  private isEnding = false;
  /** Number of messages since `countedFrom`. */
  private messages = 0;
  private countedFrom = performance.now();

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
      for (const subscription of this.active) subscription.end();
    });
  }

  /**
   * Authenticates by the parameters of `connection_init`, or else by the headers of the request.
   * Returns whether the connection is accepted.
   */
  async identify(params: Readonly<Record<string, unknown>> = {}): Promise<boolean> {
    const headers = Object.fromEntries(
      Object.entries(params).flatMap(([name, value]) =>
        typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
      ),
    );
    const ctx = this.contextOf(new ActiveSubscription(this.req));
    try {
      await findCaller(ctx, isAnonymous({ headers }) ? this.req : { headers });
      this.caller = ctx.caller;
      return true;
    } catch (error) {
      const refusal = visibleError(error);
      if (refusal instanceof DomainError) {
        const isRetryable = refusal.code === 'UNAVAILABLE';
        this.socket.close(isRetryable ? TRY_AGAIN_LATER : CloseCode.Forbidden, refusal.message);
      } else {
        ctx.log.error({ err: error }, 'WebSocket message failed');
        this.socket.close(CloseCode.InternalServerError, 'Internal server error');
      }
      return false;
    }
  }

  /** Returns the arguments of a subscription for graphql-ws, or its errors if it is rejected. */
  async prepare(payload: SubscribePayload): Promise<ExecutionArgs | readonly GraphQLError[]> {
    const { subscriptions, dependencies, trusted } = this.connections;
    // Messages that arrive while the socket is closing must not start anything.
    if (this.isEnding || this.socket.readyState !== this.socket.OPEN)
      return [new GraphQLError('The connection is closed')];
    const subscription = new ActiveSubscription(this.req);
    if (this.caller) subscription.record.user = this.caller.username;
    this.active.add(subscription);
    onAbort(subscription.signal, () => {
      this.active.delete(subscription);
      dependencies.observe(subscription.record, performance.now() - subscription.startedAt);
      const { error } = subscription;
      if (error?.code === 'SLOW_CONSUMER') this.endAll(SLOW_CONSUMER, error);
    });
    const ctx = this.contextOf(subscription);
    if (this.caller) ctx.caller = this.caller;
    const readRequest = () => {
      if (!trusted) return payload;
      const { query, ...rest } = trusted.readBody(payload);
      return { query: query ?? '', ...rest };
    };
    return subscriptions.prepare(ctx, readRequest, subscription);
  }

  /** Disconnects a client that reads too little. */
  disconnectIfUnread(): void {
    if (this.socket.bufferedAmount > MAX_UNREAD_BYTES) this.socket.terminate();
  }

  endExpired(refusal: DomainError): void {
    this.endAll(CloseCode.Forbidden, refusal);
  }

  endForShutdown(): void {
    this.socket.close(GOING_AWAY, 'Going away');
  }

  private contextOf(subscription: ActiveSubscription): Context {
    return new RequestContext(this.connections.dependencies, this.req, subscription);
  }

  // Ends all subscriptions with an error, and closes the socket after that is sent.
  private endAll(code: number, refusal: DomainError): void {
    if (this.isEnding) return;
    this.isEnding = true;
    for (const subscription of this.active) subscription.end(refusal);
    setTimeout(() => this.socket.close(code, refusal.message), GRACE_MS).unref();
  }

  private limitClient(): void {
    const now = performance.now();
    if (now - this.countedFrom > PERIOD_MS) [this.messages, this.countedFrom] = [0, now];
    if (++this.messages > MAX_MESSAGES) this.socket.close(TOO_MANY_MESSAGES, 'Too many messages');
    this.disconnectIfUnread();
  }
}
