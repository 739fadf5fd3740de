import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

/** One request and its answer, whoever routed it. */
export class Exchange {
  /** Names the request in its answer and in the log. */
  readonly requestId = randomUUID();
  /** The headers of the answer, by name. */
  private readonly headers: Record<string, string>;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** The parameters in its path, decoded. */
    readonly params: Readonly<Record<string, string>>,
    /** Headers that every answer has. */
    common: Readonly<Record<string, string>>,
  ) {
    this.headers = { ...common, 'X-Request-Id': this.requestId };
  }

  /** Sets headers of the answer. */
  set(headers: Readonly<Record<string, string>>): void {
    Object.assign(this.headers, headers);
  }

  /** Takes a header out of the answer. */
  unset(name: string): void {
    delete this.headers[name];
  }

  /** Sends the head of the answer; the body is up to who calls. */
  start(status: number): void {
    this.res.writeHead(status, this.headers);
  }

  /** Sends the whole answer. */
  send(status: number, body: string, type: string): void {
    this.headers['Content-Type'] = type;
    this.headers['Content-Length'] = String(Buffer.byteLength(body));
    this.res.writeHead(status, this.headers);
    this.res.end(body);
  }
}
