import { createServer, type RequestListener, type Server } from 'node:http';
import type { Config } from '../kit/config.ts';
import { giveUpFor } from './deadline.ts';

const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** How often the two above are looked at: Node's own half a minute would let slow clients sit that much longer. */
const CHECK_EVERY_MS = 1_000;
const KEEP_ALIVE_MS = 5_000;
const MAX_HEADER_BYTES = 16 * 1024;

/** A server that listens nowhere yet, with its limits on slow and on many clients. Bodies and numbers of headers are limited further in. */
export function createHttpServer(config: Config, listener: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    listener,
  );
  server.maxConnections = config.maxConnections;
  server.on('connection', (socket) => socket.once('close', () => giveUpFor(socket)));
  return server;
}
