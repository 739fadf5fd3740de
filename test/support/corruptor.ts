import { once } from 'node:events';
import {
  createServer,
  request as forward,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer, text } from 'node:stream/consumers';

/** A response with its request; the corruptor changes it in place. */
export interface Exchange {
  method: string;
  path: string;
  requestHeaders: IncomingHttpHeaders;
  requestBody: string;
  /** 0 closes the connection without a response. */
  status: number;
  headers: OutgoingHttpHeaders;
  body: string;
}

/** Starts a proxy that corrupts the responses of the target. */
export async function startCorruptor(
  target: string,
  corrupt: (exchange: Exchange) => unknown,
): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = createServer((req, res) => void serve(target, req, res, corrupt));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(
  target: string,
  req: IncomingMessage,
  res: ServerResponse,
  corrupt: (exchange: Exchange) => unknown,
): Promise<void> {
  const { status, headers, body } = await pass(target, req, corrupt);
  if (status === 0) {
    req.socket.destroy();
    return;
  }
  res.writeHead(status, {
    ...headers,
    ...(req.method !== 'HEAD' && { 'content-length': Buffer.byteLength(body) }),
  });
  res.end(body);
}

async function pass(
  target: string,
  req: IncomingMessage,
  corrupt: (exchange: Exchange) => unknown,
): Promise<Exchange> {
  const { method = '', url: path = '' } = req;
  const sent = await buffer(req);
  const headers = { ...req.headers, connection: 'close', 'accept-encoding': 'identity' };
  const request = forward(target + path, { method, headers, agent: false });
  request.end(sent);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const {
    'transfer-encoding': _,
    'content-length': length,
    connection: __,
    ...responseHeaders
  } = answer.headers;
  const exchange: Exchange = {
    method,
    path,
    requestHeaders: req.headers,
    requestBody: sent.toString(),
    status: answer.statusCode ?? 0,
    headers: {
      ...responseHeaders,
      ...(method === 'HEAD' && length !== undefined && { 'content-length': length }),
    },
    body: await text(answer),
  };
  corrupt(exchange);
  return exchange;
}
