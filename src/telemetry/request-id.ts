import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

// The formats of proxies: a UUID or 32 hexadecimal digits. The id is logged, so that no other text
// is accepted.
const WELL_FORMED = /^(?:[\da-f]{32}|[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})$/i;
// W3C Trace Context, 3.2: version, trace-id, parent-id, flags. All zeros are invalid.
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/;

/**
 * Returns the id of a request for its response and the log: the client's `X-Request-Id` or trace
 * id, if well-formed, else a new id.
 */
export function requestIdOf({ 'x-request-id': id, traceparent }: IncomingHttpHeaders): string {
  if (typeof id === 'string' && WELL_FORMED.test(id)) return id;
  if (typeof traceparent !== 'string') return randomUUID();
  return TRACEPARENT.exec(traceparent)?.[1] ?? randomUUID();
}
