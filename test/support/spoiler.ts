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

/** An answer on its way, with what was asked; who spoils it changes it in place. */
export interface Passing {
  method: string;
  path: string;
  asked: IncomingHttpHeaders;
  sent: string;
  /** 0 for none: the connection is cut. */
  status: number;
  headers: OutgoingHttpHeaders;
  body: string;
}

/** A server in front of another one that spoils what it answers, and how to stop it. */
export async function spoiled(target: string, spoil: (passing: Passing) => unknown): Promise<{ url: string; stop: () => Promise<void> }> {
  const server = createServer((req, res) => void serve(target, req, res, spoil));
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

async function serve(target: string, req: IncomingMessage, res: ServerResponse, spoil: (passing: Passing) => unknown): Promise<void> {
  const { status, headers, body } = await pass(target, req, spoil);
  if (status === 0) {
    req.socket.destroy();
    return;
  }
  res.writeHead(status, { ...headers, ...(req.method !== 'HEAD' && { 'content-length': Buffer.byteLength(body) }) });
  res.end(body);
}

async function pass(target: string, req: IncomingMessage, spoil: (passing: Passing) => unknown): Promise<Passing> {
  const { method = '', url: path = '' } = req;
  const sent = await buffer(req);
  const headers = { ...req.headers, connection: 'close', 'accept-encoding': 'identity' };
  const request = forward(target + path, { method, headers, agent: false });
  request.end(sent);
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const { 'transfer-encoding': _, 'content-length': length, connection: __, ...answered } = answer.headers;
  const passing: Passing = {
    method,
    path,
    asked: req.headers,
    sent: sent.toString(),
    status: answer.statusCode ?? 0,
    headers: { ...answered, ...(method === 'HEAD' && length !== undefined && { 'content-length': length }) },
    body: await text(answer),
  };
  spoil(passing);
  return passing;
}
