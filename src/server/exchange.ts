import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setAside } from './in-flight.ts';
import { hasBody } from './request.ts';

/** A reader who has stopped reading for so long, in ms, is let go: later than the server's own time-outs (http-server.ts), which say why. */
const STALLED_MS = 35_000;
/** What fits into the buffers of the network does not wait for its reader. */
const MAX_AT_ONCE = 64 * 1024;

/** One request and its answer, whoever routed it. */
export class Exchange {
  /** Names the request in its answer and in the log. */
  readonly requestId = randomUUID();
  /** The headers of the answer, by name. */
  private readonly headers: Record<string, string>;
  private givenUp = false;
  private ends: Set<() => void> | undefined;
  private controller: AbortController | undefined;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** The parameters in its path, decoded. */
    readonly params: Readonly<Record<string, string>>,
    /** Headers that every answer has. */
    common: Readonly<Record<string, string>>,
    /** Whether the connection is to be closed after the answer. Asked when that is sent, for much may come between. */
    private readonly isLast: () => boolean,
  ) {
    this.headers = { ...common, 'X-Request-Id': this.requestId };
  }

  /** Aborted when nobody waits any longer for what is being done. Made when it is asked for: few requests take long enough. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.givenUp) this.controller.abort();
    return this.controller.signal;
  }

  /** Whether the request was answered before what it asked for was done. */
  get isGivenUp(): boolean {
    return this.givenUp;
  }

  /** Stops what is being done for the request. What comes of it is not sent any more, once something else has been. */
  giveUp(): void {
    if (this.givenUp) return;
    this.givenUp = true;
    this.controller?.abort();
    for (const end of this.ends ?? []) end();
  }

  /** The request is no load on this process from here on, for what it waits for is done elsewhere, and takes long. */
  setAside(): void {
    setAside(this.res);
  }

  /** Has this called when the request is given up. */
  onGiveUp(end: () => void): void {
    (this.ends ??= new Set()).add(end);
  }

  /** Has it called no more. */
  offGiveUp(end: () => void): void {
    this.ends?.delete(end);
  }

  /** Sets headers of the answer; links are added to those that it has (RFC 8288, 3). */
  set(headers: Readonly<Record<string, string>>): void {
    const { Link } = this.headers;
    Object.assign(this.headers, headers);
    if (Link !== undefined && headers['Link'] !== undefined) this.headers['Link'] = `${Link}, ${headers['Link']}`;
  }

  /** Sends the head of the answer; the body is up to who calls. */
  start(status: number): void {
    this.closeAfter();
    this.watchReader();
    this.res.writeHead(status, this.headers);
  }

  /** Gives the answer, with the headers that it has so far, to somebody who sends it. */
  handOver(): ServerResponse {
    this.closeAfter();
    this.watchReader();
    for (const [name, value] of Object.entries(this.headers)) this.res.setHeader(name, value);
    return this.res;
  }

  /** Sends the whole answer, unless the request was given up and is answered already. */
  send(status: number, body: string, type: string): void {
    if (this.givenUp && this.res.headersSent) return;
    this.headers['Content-Type'] = type;
    const length = Buffer.byteLength(body);
    this.headers['Content-Length'] = String(length);
    if (length > MAX_AT_ONCE) this.watchReader();
    this.closeAfter();
    this.res.writeHead(status, this.headers);
    this.res.end(body);
  }

  private watchReader(): void {
    this.res.setTimeout(STALLED_MS, () => this.res.destroy());
  }

  // What is left of a body that nobody has read would be taken for the next request, and may have no end.
  private closeAfter(): void {
    if (this.isLast() || (!this.req.readableEnded && hasBody(this.req))) this.headers['Connection'] = 'close';
  }
}
