import { createServer, IncomingMessage, ServerResponse, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Express } from 'express';
import type { Config } from '../core/config.ts';
import { responsesOf } from './request-state.ts';

// Limits on connections, beside Node's defaults. A proxy in front has stricter ones (deploy/nginx).
const HEADERS_TIMEOUT_MS = 10_000;
const RECEIVE_TIMEOUT_MS = 30_000;
/** Interval between checks of the two timeouts above, in ms. */
const CHECK_INTERVAL_MS = 1_000;
/** Time without traffic after REQUEST_TIMEOUT_MS that destroys a connection, in ms. */
const STALLED_MS = 25_000;
const MAX_HEADERS = 100;

/** Handles connections that upgrade from HTTP to another protocol. */
export interface Upgrades {
  /** Returns whether to upgrade this request. Others get a normal response. */
  accepts(req: IncomingMessage): boolean;
  upgrade(req: IncomingMessage, socket: Socket, head: Buffer): void;
}

/** Creates a server that does not listen yet, with Node's limits on slow clients. */
export function createHttpServer(
  config: Pick<Config, 'maxConnections' | 'requestTimeoutMs'>,
  app: Express,
  upgrades?: Upgrades,
): Server {
  // Express would set the prototypes of each request: a seventh of a cached page (performance.md).
  const Request = class extends IncomingMessage {};
  const Response = class extends ServerResponse {};
  app.request = Object.setPrototypeOf(Request.prototype, app.request) as typeof app.request;
  app.response = Object.setPrototypeOf(Response.prototype, app.response) as typeof app.response;
  const server = createServer(
    {
      IncomingMessage: Request,
      ServerResponse: Response,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: RECEIVE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      shouldUpgradeCallback: (req) =>
        responsesOf(req.socket).length === 0 && upgrades?.accepts(req) === true,
    },
    app,
  );
  server.maxHeadersCount = MAX_HEADERS;
  server.maxConnections = config.maxConnections;
  server.timeout = config.requestTimeoutMs + STALLED_MS;
  // The stream of an HTTP server is a socket.
  server.on('upgrade', (req, socket, head) => upgrades?.upgrade(req, socket as Socket, head));
  server.on('connect', (_req, socket) => {
    for (const res of responsesOf(socket as Socket)) res.destroy();
    socket.destroy();
  });
  return server;
}
