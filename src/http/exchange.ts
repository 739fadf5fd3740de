import type { IncomingMessage, ServerResponse } from 'node:http';
import { GivingUp } from '../core/cancellation.ts';
import { endAfterBody } from './body.ts';
import { arrivalOf, breakOff, closeAfterLast, holdsTooMuch, setAside } from './in-flight.ts';
import { hasBody } from './request-headers.ts';
import { requestIdOf } from '../telemetry/request-id.ts';
import type { Observer, Seen } from '../telemetry/request-record.ts';

/** One request and its answer, whoever routed it. Where it is given up, what comes of it is not sent any more, once something else has been. */
export class Exchange extends GivingUp {
  /** Names the request in its answer and in the log. */
  readonly requestId: string;
  /** What the observer is told of it. */
  readonly seen: Seen;
  /** The headers of the answer, by name. */
  private readonly headers: Record<string, string>;
  /** When the network has taken a response whose request is still being received. */
  private sentAt: number | undefined;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** The parameters in its path, decoded. */
    readonly params: Readonly<Record<string, string>>,
    /** Headers that every answer has. */
    common: Readonly<Record<string, string>>,
    /** Whether the connection is to be closed after the answer. Asked when that is sent, for much may come between. */
    private readonly isLast: () => boolean,
    observe: Observer,
  ) {
    super();
    const begun = arrivalOf(res);
    this.requestId = requestIdOf(req.headers);
    this.seen = { requestId: this.requestId, method: req.method ?? '', door: 'other', bytes: 0, end: 'answered' };
    this.headers = { ...common, 'X-Request-Id': this.requestId };
    // It closes once: `once` would only cost.
    res.on('close', () => {
      this.conclude();
      observe(this.seen, (this.sentAt ?? performance.now()) - begun);
    });
  }

  /** The request is no load on this process from here on, for what it waits for is done elsewhere, and takes long. */
  setAside(): void {
    setAside(this.res);
  }

  /** Sets headers of the answer; what is a list is added to (`Link`, RFC 8288, 3; `Vary`, RFC 9110, 12.5.5). */
  set(headers: Readonly<Record<string, string>>): void {
    const { Link, Vary } = this.headers;
    Object.assign(this.headers, headers);
    if (Link !== undefined && headers['Link'] !== undefined) this.headers['Link'] = `${Link}, ${headers['Link']}`;
    if (Vary !== undefined && headers['Vary'] !== undefined) this.headers['Vary'] = `${Vary}, ${headers['Vary']}`;
  }

  /** Sends the head of the answer; the body is up to who calls. */
  start(status: number): void {
    this.closeAfter(status);
    this.res.writeHead(status, this.headers);
  }

  /** Gives the answer, with the headers that it has so far, to somebody who sends it, and sets the request aside: its reader may be slow. */
  handOver(): ServerResponse {
    this.closeAfter();
    for (const [name, value] of Object.entries(this.headers)) this.res.setHeader(name, value);
    this.setAside();
    return this.res;
  }

  /** Sends the whole answer, in the coding that the body has if any, unless the request was given up and is answered already. */
  send(status: number, body: string | Buffer, type: string, coding?: string): void {
    if (this.isGivenUp && this.res.headersSent) return;
    this.headers['Content-Type'] = type;
    if (coding !== undefined) this.headers['Content-Encoding'] = coding;
    const length = Buffer.byteLength(body);
    this.headers['Content-Length'] = String(length);
    this.closeAfter(status);
    this.res.writeHead(status, this.headers);
    if (this.req.method !== 'HEAD') this.seen.bytes = length;
    // The client has the whole answer at once. Node closes the connection when the answer has ended.
    if (this.isUnread()) endAfterBody(this.req, this.res, body, () => (this.sentAt = performance.now()));
    else this.res.end(body);
    if (holdsTooMuch(this.res)) this.req.socket.destroy();
    // What is left to do is its reader's.
    this.setAside();
  }

  /** Sends a piece of a body whose head is out. Returns false where the reader has to be waited for; calls `taken` when the network has it. */
  write(piece: string | Buffer, taken?: () => void): boolean {
    this.seen.bytes += Buffer.byteLength(piece);
    return this.res.write(piece, taken);
  }

  /** Breaks the connection off: what was sent is no whole answer. */
  breakOff(): void {
    this.seen.end = 'broken';
    breakOff(this.res);
  }

  private conclude(): void {
    const { res, seen } = this;
    if (res.headersSent) seen.status = res.statusCode;
    // Who listens is never at the end, and leaves when it likes.
    const isDone = res.writableFinished || this.sentAt !== undefined || (res.headersSent && seen.operation?.type === 'subscription');
    if (!isDone && seen.end === 'answered') seen.end = 'aborted';
  }

  // What is left of a body would be taken for the next request, and may have no end. A body that is too large closes the connection
  // (413) whether or not its end has been received, which is a matter of time.
  private closeAfter(status?: number): void {
    if (status === 413 || this.isLast() || this.isUnread()) this.headers['Connection'] = 'close';
    if (this.headers['Connection'] === 'close' && !closeAfterLast(this.res)) delete this.headers['Connection'];
  }

  // Node discards a body that has been received and not been read.
  private isUnread(): boolean {
    return !this.req.complete && hasBody(this.req);
  }
}
