import type { Upgrades } from '../../http/http-server.ts';
import type { ExecutionResult } from 'graphql';
import { handleProtocols, makeServer, type ServerOptions } from 'graphql-ws';
import { WebSocketServer } from 'ws';
import { DomainError } from '../../core/errors.ts';
import { GRAPHQL_LIMIT } from '../../http/body.ts';
import { HttpError, unavailableError } from '../../http/http-error.ts';
import { checkHeaders } from '../../http/headers.ts';
import { networkOfClient } from '../../http/dependencies.ts';
import { formatAndRecordErrors } from '../errors.ts';
import { withoutEmptyMembers } from '../request-parameters.ts';
import type { SubscriptionConnections } from './connections.ts';
import { WebSocketConnection } from './websocket-connection.ts';
import { start, type Prepared } from './subscription.ts';

/** Maximum time until `connection_init`, in milliseconds. */
const INIT_TIMEOUT_MS = 5_000;

/** Maximum number of fragments of a message, and of buffered network chunks of a fragment. */
const MAX_FRAGMENTS = 100;
const MAX_BUFFERED_CHUNKS = 1_000;

type Options = ServerOptions<Record<string, unknown>, WebSocketConnection>;

/**
 * Serves subscriptions over WebSocket at the GraphQL path, by the protocol `graphql-transport-ws`.
 * Credentials come with `connection_init`, because a browser cannot set headers here. Credentials
 * are never ambient, so the origin of the page does not matter.
 */
export function openWebSockets(connections: SubscriptionConnections): Upgrades {
  const { dependencies, registry, subscriptions, trusted, upgradeErrors, isOverloaded } =
    connections;
  const { config } = dependencies;
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
    connectionInitWaitTimeout: INIT_TIMEOUT_MS,
    onConnect(ctx) {
      const { extra, connectionParams = {} } = ctx;
      // graphql-ws would retain them until the end.
      Reflect.deleteProperty(ctx, 'connectionParams');
      return extra.identify(connectionParams);
    },
    onSubscribe: ({ extra }, key) =>
      extra.prepare(key, (ctx, subscription, payload) => {
        const { query, ...rest } = payload as typeof payload & { documentId?: unknown };
        // The protocol requires a query. It is empty if the client sends a document id.
        const request = withoutEmptyMembers(query === '' ? rest : { query, ...rest });
        const body = (trusted ? trusted.readBody(request) : request) as typeof payload;
        return subscriptions.prepare(ctx, { ...body, query: body.query ?? '' }, subscription);
      }),
    // graphql-ws passes the results to `onNext` without reading them.
    subscribe: (args) => start(args as Prepared) as Promise<ExecutionResult>,
    onNext: ({ extra }, key, _payload, _args, result) => extra.deliver(key, result),
    onError: ({ extra }, key, _payload, errors) =>
      formatAndRecordErrors(dependencies, errors, extra.recordOf(key)),
  };
  const protocol = makeServer<Record<string, unknown>, WebSocketConnection>(options);
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
      const network = networkOfClient(config, req);
      sockets.handleUpgrade(req, socket, head, (opened) =>
        new WebSocketConnection(opened, req, dependencies, network, isOverloaded).open(
          protocol,
          registry,
        ),
      );
    },
  };
}

function isAt(path: string, url: string): boolean {
  const [pathname] = url.split('?', 1);
  return pathname === path || pathname === `${path}/`;
}
