import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import pino, { type DestinationStream, type Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { requestMetrics } from './request-metrics.ts';
import type { Observer, RequestRecord } from './request-record.ts';

/** Maximum time for which a line is buffered, in ms. */
const MAX_DELAY_MS = 100;
/** Length of the buffer at which it is written, in characters. */
const BUFFER_LENGTH = 32 * 1024;
/** Maximum size of unwritten lines if their reader is slow, in bytes. Later lines are dropped. */
const MAX_UNREAD = 16 * 1024 * 1024;

// The formats of proxies: a UUID or 32 hexadecimal digits. The id is logged, so that no other text
// is accepted.
const WELL_FORMED = /^(?:[\da-f]{32}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i;
// W3C Trace Context, 3.2: version, trace-id, parent-id, flags. All zeros are invalid.
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/;

const INFO = 30;
const MESSAGES: Record<RequestRecord['end'], string> = {
  answered: 'Request completed',
  aborted: 'Connection closed before the response was complete',
  broken: 'Response interrupted',
};

/**
 * Writes log lines to a file descriptor, in batches and off the event loop, because single writes
 * would cost a tenth of a request. Buffered lines are written when the process ends.
 */
export class LogDestination implements DestinationStream {
  private text = '';
  private timer: NodeJS.Timeout | undefined;
  private destination;

  constructor(private readonly fd: number) {
    this.destination = this.open();
    // Runs before pino's own listener, which then writes these lines.
    process.prependListener('exit', () => this.send());
  }

  write(line: string): void {
    this.text += line;
    if (this.text.length >= BUFFER_LENGTH) this.send();
    else this.timer ??= setTimeout(() => this.send(), MAX_DELAY_MS).unref();
  }

  /** Writes all buffered lines synchronously. Pino calls it after a fatal error. */
  flushSync(): void {
    this.send();
    this.destination.flushSync();
  }

  private open() {
    const options = { fd: this.fd, sync: false, minLength: 1, maxLength: MAX_UNREAD };
    const destination = pino.destination(options);
    // A full disk must not end the process, and failed lines are not retried forever.
    destination.on('error', () => {
      destination.destroy();
      this.destination = this.open();
    });
    return destination;
  }

  private send(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.text !== '') this.destination.write(this.text);
    this.text = '';
  }
}

/**
 * Returns the observer of completed requests: writes the request log to `destination` if the level
 * `info` is logged, and updates the metrics if they are enabled.
 */
export function openObserver(
  { metricsPort }: Config,
  log: Logger,
  destination: DestinationStream,
): Observer {
  const logRequest = log.isLevelEnabled('info') ? requestLog(destination) : undefined;
  const measureRequest = metricsPort === undefined ? undefined : requestMetrics();
  return (record, ms) => {
    logRequest?.(record, ms);
    measureRequest?.(record, ms);
  };
}

// Returns an observer that writes a log line for each completed request. Builds the line without
// pino and the redaction of secrets, which take ten times as long. The line must therefore contain
// only members of `RequestRecord`, which are never secret.
function requestLog(destination: DestinationStream): Observer {
  const timeOf = clock();
  return (
    { requestId, traceId, method, api, endpoint, operation, user, status, errors, bytes, end },
    ms,
  ) => {
    destination.write(
      `{"level":${INFO},"time":"${timeOf()}","event":"request","requestId":"${requestId}",` +
        `${traceId === undefined ? '' : `"traceId":"${traceId}",`}"method":"${method}","api":"${api}",` +
        `${endpoint === undefined ? '' : `"endpoint":"${endpoint}",`}${operation ? operationText(operation) : ''}` +
        `${status === undefined ? '' : `"status":${status},`}${errors ? `"errors":${JSON.stringify(errors)},` : ''}` +
        `${end === 'answered' ? '' : `"end":"${end}",`}"user":${user === undefined ? 'null' : JSON.stringify(user)},` +
        `"ms":${ms.toFixed(3)},"bytes":${bytes},"msg":"${MESSAGES[end]}"}\n`,
    );
  };
}

function operationText({ name, type }: NonNullable<RequestRecord['operation']>): string {
  return `${name === undefined ? '' : `"operation":"${name}",`}"type":"${type}",`;
}

// Caches the text, because many requests complete in the same millisecond.
function clock(): () => string {
  let [at, text] = [0, ''];
  return () => {
    const now = Date.now();
    if (now !== at) [at, text] = [now, new Date(now).toISOString()];
    return text;
  };
}

/** Returns the client's `X-Request-Id` or trace id, if well-formed, else a new id. */
export function requestIdOf({ 'x-request-id': id, traceparent }: IncomingHttpHeaders): string {
  if (typeof id === 'string' && WELL_FORMED.test(id)) return id;
  if (typeof traceparent !== 'string') return randomUUID();
  return TRACEPARENT.exec(traceparent)?.[1] ?? randomUUID();
}
