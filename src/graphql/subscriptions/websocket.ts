import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { ExecutionResult } from 'graphql';
import { handleProtocols, makeServer, type ServerOptions } from 'graphql-ws';
import { WebSocketServer } from 'ws';
import { answerError } from '../../http/responses.ts';
import { GRAPHQL_LIMIT } from '../../http/body.ts';
import type { Exchange } from '../../http/exchange.ts';
import { unavailable } from '../../http/http-error.ts';
import { inFlight, responseOn } from '../../http/in-flight.ts';
import { refuseHeaders } from '../../http/request-headers.ts';
import { contextOf } from '../../http/dependencies.ts';
import { refusalsOf } from '../errors.ts';
import { Listening } from './active-subscription.ts';
import { GRACE_MS, WORDING, type Live } from './connections.ts';
import { SocketListener } from './websocket-connection.ts';
import { begin, type Prepared } from './subscription.ts';

/** How long a client may take to say `connection_init`, in ms. */
const INIT_MS = 5_000;

/** Maximum number of fragments of a message, and of the pieces in which the network delivers one of them. */
const MAX_FRAGMENTS = 100;
const MAX_BUFFERED_CHUNKS = 1_000;

/** Takes over connections that ask to become something else than HTTP. */
export interface Upgrades {
  /** Whether this request is taken over; any other is answered as usual. */
  takes(req: IncomingMessage): boolean;
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

type Options = ServerOptions<Record<string, unknown>, SocketListener>;

/**
 * GraphQL over WebSocket at the door's path, by the protocol `graphql-transport-ws`; subscriptions alone. Credentials come with `connection_init`, for a browser can set no headers
 * here. They are never ambient, so that it does not matter which page opens the connection.
 */
export function openWebSockets(live: Live, exchangeOf: (req: IncomingMessage, res: ServerResponse) => Exchange): Upgrades {
  const { services, listeners, subscriptions, trusted } = live;
  const { config, log } = services;
  const path = `${config.basePath}/graphql`;
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: GRAPHQL_LIMIT,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_BUFFERED_CHUNKS,
    handleProtocols,
  });
  const options: Options = {
    connectionInitWaitTimeout: INIT_MS,
    onConnect(ctx) {
      const { extra, connectionParams = {} } = ctx;
      // They would be kept until the end.
      Reflect.deleteProperty(ctx, 'connectionParams');
      return extra.identify(connectionParams);
    },
    onSubscribe: ({ extra }, key) =>
      extra.begin(key, (ctx, listening, payload) => {
        const { query, ...named } = payload as typeof payload & { documentId?: unknown };
        // The protocol asks for a query; who names a document has none.
        const sent = query === '' ? named : { query, ...named };
        const body = (trusted ? trusted.readBody(ctx, sent) : sent) as typeof payload;
        return subscriptions.prepare(ctx, { ...body, query: body.query ?? '' }, listening);
      }),
    // Its answers are handed on to `onNext`, whatever they are.
    subscribe: (args) => begin(args as Prepared) as Promise<ExecutionResult>,
    onNext: ({ extra }, key, _payload, _args, result) => extra.deliver(key, result),
    onError: ({ extra }, key, _payload, errors) => refusalsOf(services, errors, extra.seenOf(key)),
  };
  const protocol = makeServer<Record<string, unknown>, SocketListener>(options);
  return {
    // Answers go out in the order of their requests, and this is none that could wait for others.
    takes: ({ method, url = '', headers, socket }) =>
      method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && isAt(path, url) && !responseOn(socket),
    upgrade(req, socket, head) {
      socket.on('error', () => socket.destroy());
      const ctx = contextOf(services, new Listening(req));
      try {
        refuseHeaders(req);
        if (inFlight.isFull()) throw unavailable();
        listeners.refuseMore(ctx.network ?? '');
      } catch (error) {
        return refuse(req, socket, error);
      }
      sockets.handleUpgrade(req, socket, head, (opened) => {
        const listener = new SocketListener(opened, req, services, ctx.network ?? '');
        listener.open(protocol, listeners);
      });
    },
  };

  function refuse(req: IncomingMessage, socket: Socket, error: unknown): void {
    const res = new ServerResponse(req);
    res.assignSocket(socket);
    const exchange = exchangeOf(req, res);
    exchange.set({ Connection: 'close' });
    // The client's side is not waited for.
    res.once('finish', () => socket.destroySoon());
    socket.setTimeout(GRACE_MS, () => socket.destroy());
    answerError(exchange, error, log, WORDING);
  }
}

function isAt(path: string, url: string): boolean {
  const [asked] = url.split('?', 1);
  return asked === path || asked === `${path}/`;
}
