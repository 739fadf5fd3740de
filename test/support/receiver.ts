import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach } from './jest.ts';
import { Webhook } from 'standardwebhooks';

/** A received message. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  /** The parsed body; untyped, because tests assert its shape. */
  event: any;
  id: string;
}

/** A real HTTP server that receives webhooks. By default it returns 204. */
export class Receiver {
  readonly received: Received[] = [];
  answer: (response: ServerResponse) => void = accept;
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => void this.take(request, response));
  }

  async open(port = 0): Promise<this> {
    this.server.listen(port, '127.0.0.1');
    await once(this.server, 'listening');
    return this;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hooks`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { headers } = request;
    const body = await text(request);
    this.received.push({
      headers,
      body,
      event: JSON.parse(body),
      id: String(headers['webhook-id']),
    });
    this.answer(response);
  }
}

/** Opens a receiver for the tests of a file, reset before each test. */
export function useReceiver(): Receiver {
  const receiver = new Receiver();
  beforeAll(() => receiver.open());
  beforeEach(() => {
    receiver.received.length = 0;
    receiver.answer = accept;
  });
  afterAll(() => receiver.close());
  return receiver;
}

/** Responds with this status and these headers. */
export function respondWith(
  status: number,
  headers: Record<string, string> = {},
): (response: ServerResponse) => void {
  return (response) => void response.writeHead(status, headers).end();
}

/**
 * Returns the payload, verified by the library that receivers use. Throws if the signature is
 * invalid.
 */
export function verifySignature({ headers, body }: Received, secret: string): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

function accept(response: ServerResponse): void {
  response.writeHead(204).end();
}
