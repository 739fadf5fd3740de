import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * An address with or without a port, which may be obfuscated (RFC 7239, 6), a zone, and quotes.
 * IPv6 with a port is in brackets.
 */
const NODE =
  /^"?(?:\[([\da-f:.]+)(?:%[^\]]*)?\](?::\d{1,5}|:_[\w.-]+)?|([\d.]+)(?::\d{1,5}|:_[\w.-]+)?|([\da-f:.]+)(?:%[^"]*)?)"?$/i;
/** Parameters of one element of `Forwarded`, each a token or a quoted string (RFC 7239, 4). */
const PAIR = /([\w!#$%&'*+.^`|~-]+)=([\w!#$%&'*+.^`|~-]+|"(?:[^"\\]|\\.)*")/;
const ELEMENT = new RegExp(`^${PAIR.source}(?:\\s*;\\s*${PAIR.source})*;?$`);

/**
 * Returns the network of a canonical address: the address itself, or its /64 for IPv6, because a
 * client with one IPv6 address has 2^64 of them.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString()}/64`;
}

/**
 * Returns the canonical address of the client: the last hop that is not a trusted proxy. A hop
 * without an address counts as the proxy that named it. Undefined if the client has disconnected.
 */
export function clientAddress(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  isTrusted: (address: string) => boolean,
): string | undefined {
  let client = addressIn(socket.remoteAddress ?? '');
  for (const hop of hopsIn(headers)) {
    if (client === undefined || !isTrusted(client)) break;
    const next = addressIn(hop);
    if (next === undefined) break;
    client = next;
  }
  return client;
}

// Returns the address in a text, without its port and zone, in its canonical form: IPv4 if it maps an
// IPv4 address (RFC 4291, 2.5.5.2; RFC 6052). Undefined if there is none.
function addressIn(text: string): string | undefined {
  const [, ...addresses] = NODE.exec(text) ?? [];
  const address = addresses.find((found) => found !== undefined) ?? '';
  if (isIP(address) === 0) return undefined;
  const parsed = ipaddr.process(address);
  return parsed.range() === 'rfc6052'
    ? parsed.toByteArray().slice(-4).join('.')
    : parsed.toString();
}

// Returns the hops before the peer, nearest first. `X-Forwarded-For` alone decides if it is present:
// proxies that set it pass on a `Forwarded` of the client. An address contains no comma, so the
// client cannot change how the elements that proxies have added behind its own are split.
function hopsIn(headers: IncomingMessage['headers']): string[] {
  const { 'x-forwarded-for': forwardedFor, forwarded = '' } = headers;
  const elements = String(forwardedFor ?? forwarded)
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '')
    .toReversed();
  return forwardedFor === undefined ? elements.map(forValue) : elements;
}

// Returns the value of the only `for` of an element, or an empty string.
function forValue(element: string): string {
  if (!ELEMENT.test(element)) return '';
  const values = [...element.matchAll(new RegExp(PAIR, 'g'))]
    .filter(([, name]) => name?.toLowerCase() === 'for')
    .map(([, , value = '']) => value.replaceAll(/\\(.)/g, '$1'));
  return values.length === 1 ? (values[0] ?? '') : '';
}
