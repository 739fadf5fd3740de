import type { IncomingMessage, ServerResponse } from 'node:http';
import { Cancellation } from '../core/cancellation.ts';
import { endAfterBody } from './body.ts';
import { markClosing } from './closing-connection.ts';
import { arrivalOf, abortResponse, exclude, onceClosed } from './in-flight.ts';
import { hasBody } from './request-headers.ts';
import { requestIdOf } from '../telemetry/request-id.ts';
import type { Observer, RequestRecord } from '../telemetry/request-record.ts';

/** A request and its response. After cancellation, only the first response is sent. */
export class Exchange extends Cancellation {
  /** Identifies the request in its response and in the log. */
  readonly requestId: string;
  /** Passed to the observer when the request is over. */
  readonly record: RequestRecord;
  /** Headers of the response, by name. */
  private readonly headers: Record<string, string>;
  /** When a response was sent whose request is still being received. */
  private sentAt: number | undefined;

  constructor(
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    /** Decoded path parameters. */
    readonly params: Readonly<Record<string, string>>,
    /** Headers of every response. */
    common: Readonly<Record<string, string>>,
    /** Returns whether to close the connection after the response. Called when that is sent. */
    private readonly isLast: () => boolean,
    observe: Observer,
  ) {
    super();
    const startedAt = arrivalOf(res);
    this.requestId = requestIdOf(req.headers);
    this.record = {
      requestId: this.requestId,
      method: req.method ?? '',
      api: 'other',
      bytes: 0,
      end: 'answered',
    };
    this.headers = { ...common, 'X-Request-Id': this.requestId };
    onceClosed(res, () => {
      this.completeRecord();
      observe(this.record, (this.sentAt ?? performance.now()) - startedAt);
    });
  }

  /** Excludes the request from admission, because it now waits for long work done elsewhere. */
  exclude(): void {
    exclude(this.res);
  }

  /**
   * Sets response headers. Appends to the lists `Link` (RFC 8288, 3) and `Vary` (RFC 9110, 12.5.5).
   */
  set(headers: Readonly<Record<string, string>>): void {
    const { Link, Vary } = this.headers;
    Object.assign(this.headers, headers);
    if (Link !== undefined && headers['Link'] !== undefined)
      this.headers['Link'] = `${Link}, ${headers['Link']}`;
    if (Vary !== undefined && headers['Vary'] !== undefined)
      this.headers['Vary'] = `${Vary}, ${headers['Vary']}`;
  }

  /**
   * Sends the head of the response. The caller sends the body, if any. Excludes the request from
   * admission, because its reader may be slow.
   */
  start(status: number): void {
    this.closeAfter(status);
    this.res.writeHead(status, this.headers);
    this.exclude();
  }

  /**
   * Returns the response, with the headers set so far, for the caller to send. Excludes the request
   * from admission, because its reader may be slow.
   */
  release(): ServerResponse {
    this.closeAfter();
    for (const [name, value] of Object.entries(this.headers)) this.res.setHeader(name, value);
    this.exclude();
    return this.res;
  }

  /**
   * Sends the whole response; `coding` is the content coding of the body. Does nothing after
   * cancellation if a response has been sent.
   */
  send(status: number, body: string | Buffer, type: string, coding?: string): void {
    if (this.isCancelled && this.res.headersSent) return;
    this.headers['Content-Type'] = type;
    if (coding !== undefined) this.headers['Content-Encoding'] = coding;
    const length = Buffer.byteLength(body);
    this.headers['Content-Length'] = String(length);
    this.closeAfter(status);
    this.res.writeHead(status, this.headers);
    if (this.req.method !== 'HEAD') this.record.bytes = length;
    // The client gets the whole response at once. Node closes the connection when the response
    // ends.
    if (this.isUnread())
      endAfterBody(this.req, this.res, body, () => (this.sentAt = performance.now()));
    else this.res.end(body);
    // The rest depends on the reader.
    this.exclude();
  }

  /**
   * Sends a chunk of the body after the head. Returns false if the caller must wait for `drain`.
   * Calls `onSent` when the chunk has been sent.
   */
  write(chunk: string | Buffer, onSent?: () => void): boolean {
    this.record.bytes += Buffer.byteLength(chunk);
    return this.res.write(chunk, onSent);
  }

  /** Destroys the connection, because the response cannot be completed. */
  abort(): void {
    this.record.end = 'broken';
    abortResponse(this.res);
  }

  private completeRecord(): void {
    const { res, record } = this;
    if (res.headersSent) record.status = res.statusCode;
    // A subscription ends whenever its client disconnects.
    const isDone =
      res.writableFinished ||
      this.sentAt !== undefined ||
      (res.headersSent && record.operation?.type === 'subscription');
    if (!isDone && record.end === 'answered') record.end = 'aborted';
  }

  // The rest of an unread body would be parsed as the next request and may never end. A body that
  // is too large (413) always closes the connection, so that timing makes no difference.
  private closeAfter(status?: number): void {
    if (this.res.headersSent) return;
    if (status === 413 || this.isLast() || this.isUnread()) this.headers['Connection'] = 'close';
    if (this.headers['Connection'] === 'close') markClosing(this.req.socket);
  }

  // Node discards a body that was received completely and not read.
  private isUnread(): boolean {
    return !this.req.complete && hasBody(this.req);
  }
}
