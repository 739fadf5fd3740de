import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach } from './jest.ts';
import { Webhook } from 'standardwebhooks';

/** A message as it came. */
export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  /** The body, read. What a test finds in it is what it asserts, so it is typed by use. */
  event: any;
  id: string;
}

/** A real HTTP server that webhooks are sent to. It answers 204, unless a test says otherwise. */
export class Receiver {
  readonly received: Received[] = [];
  answer: (response: ServerResponse) => void = answerGood;
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
    this.received.push({ headers, body, event: JSON.parse(body), id: String(headers['webhook-id']) });
    this.answer(response);
  }
}

/** Opens a receiver for the tests of a file: each finds it empty, and in good health. */
export function useReceiver(): Receiver {
  const receiver = new Receiver();
  beforeAll(() => receiver.open());
  beforeEach(() => {
    receiver.received.length = 0;
    receiver.answer = answerGood;
  });
  afterAll(() => receiver.close());
  return receiver;
}

/** Answers this status, with these headers. */
export function answering(status: number, headers: Record<string, string> = {}): (response: ServerResponse) => void {
  return (response) => void response.writeHead(status, headers).end();
}

/** What a message says, as the library has it that receivers use. Throws where the signature is not good. */
export function verified({ headers, body }: Received, secret: string): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

function answerGood(response: ServerResponse): void {
  response.writeHead(204).end();
}
