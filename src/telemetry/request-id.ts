import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

// As proxies make them, by whatever name: a UUID, or 32 hexadecimal digits. Anything else could be any text, and this goes into the log.
const WELL_FORMED = /^(?:[\da-f]{32}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i;
// W3C Trace Context, 3.2: version, trace-id, parent-id, flags. Zeros alone are no trace-id.
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/;

/** What names a request in its answer and in the log: the client's `X-Request-Id`, else the id of its trace, where well-formed; else a new one. */
export function requestIdOf({ 'x-request-id': id, traceparent }: IncomingHttpHeaders): string {
  if (typeof id === 'string' && WELL_FORMED.test(id)) return id;
  if (typeof traceparent !== 'string') return randomUUID();
  return TRACEPARENT.exec(traceparent)?.[1] ?? randomUUID();
}
