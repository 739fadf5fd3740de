import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

const ONCE = ['Host', 'Authorization'];
/** To compare lengths first is quicker. */
const LENGTHS = new Set(ONCE.map(({ length }) => length));
/** More lines than any client sends. Node would leave out what is past two thousand, without a word. */
const MAX_HEADERS = 100;

/** Maximum lengths in characters of the headers by which a response is negotiated. To read a list of 16 KB takes milliseconds. */
const MAX_ACCEPT = 500;
const MAX_ACCEPT_ENCODING = 200;

/** Removes `Accept` and `Accept-Encoding` where they are longer than any client sends: they count as absent. */
export function ignoreLongHeaders({ headers }: IncomingMessage): void {
  const { accept, 'accept-encoding': encodings } = headers;
  if (accept !== undefined && accept.length > MAX_ACCEPT) delete headers.accept;
  if (encodings !== undefined && encodings.length > MAX_ACCEPT_ENCODING) delete headers['accept-encoding'];
}

/** The name of a header as it is usually written, from one in lower case. */
export function titled(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}

/** Whether the request carries a body, which may yet turn out to be empty (RFC 9112, 6). */
export function hasBody(req: IncomingMessage): boolean {
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = req.headers;
  return length !== '0' || coding !== undefined;
}

/** Returns the length in bytes that the request declares for its body; 0 where it declares none. */
export function declaredLength({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0);
}

/** The query of the request's target with its question mark, or empty text. */
export function searchOf({ url = '' }: IncomingMessage): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}

/** The only expectation that there is. Node answers it. */
const CONTINUE = /\b100-continue\b/i;
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/**
 * Throws 400 for another protocol, 431 for too many headers (RFC 6585, 5), 417 for an unknown expectation (RFC 9110, 10.1.1), and 400 for
 * no `Host` in HTTP/1.1, an invalid one, and a second `Host` or `Authorization` (RFC 9112, 3.2; RFC 6750, 3.1): Node keeps one of the two,
 * and a proxy in front may have looked at the other.
 */
export function refuseHeaders({ headers, rawHeaders, httpVersionMajor, httpVersionMinor }: IncomingMessage): void {
  // Node also reads HTTP/0.9, which has no headers, and lines that name HTTP/2.
  if (httpVersionMajor !== 1) throw new HttpError(400, 'The protocol has to be HTTP/1.0 or HTTP/1.1', { Connection: 'close' });
  if (rawHeaders.length > MAX_HEADERS * 2) throw new HttpError(431, 'There are too many headers', { Connection: 'close' });
  const found = new Set<string>();
  // Names and values in turn. What Node makes of them is put together for all names, whichever are asked for.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!LENGTHS.has(name.length)) continue;
    const known = ONCE.find((once) => once.toLowerCase() === name.toLowerCase());
    if (known === undefined) continue;
    if (found.has(known)) throw new HttpError(400, `There is more than one ${known} header`);
    if (known === 'Host' && !HOST.test(rawHeaders[at + 1] ?? '')) throw new HttpError(400, 'The Host header names no host');
    found.add(known);
  }
  if (httpVersionMinor === 0) return;
  if (!found.has('Host')) throw new HttpError(400, 'There is no Host header', { Connection: 'close' });
  if (headers.expect !== undefined && !CONTINUE.test(headers.expect)) throw new HttpError(417, 'Unknown expectation');
}
