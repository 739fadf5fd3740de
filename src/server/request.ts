import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

/** Whether the request carries a body, which may yet turn out to be empty (RFC 9112, 6). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The query of the request's target with its question mark, or empty text. */
export function searchOf({ url = '' }: IncomingMessage): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}

/**
 * Throws 400 for a second `Host` or `Authorization` (RFC 9112, 3.2; RFC 6750, 3.1): Node keeps one of the two, and a proxy in
 * front may have looked at the other.
 */
export function refuseTwice({ headersDistinct }: IncomingMessage): void {
  for (const name of ['Host', 'Authorization']) {
    if ((headersDistinct[name.toLowerCase()]?.length ?? 0) > 1) throw new HttpError(400, `There is more than one ${name} header`);
  }
}
