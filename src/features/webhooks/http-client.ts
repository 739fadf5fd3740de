import { lookup as dnsLookup, Resolver, TIMEOUT } from 'node:dns';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import pLimit from 'p-limit';
import type { Config } from '../../core/config.ts';

/** Maximum number of bytes that are read of a response. */
const MAX_BODY_BYTES = 64 * 1024;

/** HTTP headers and body of a message. */
export interface Message {
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Sends a message to a URL. Returns the status of the response. Throws without a response. */
export type SendRequest = (url: string, message: Message, signal: AbortSignal) => Promise<number>;

type Policy = Pick<Config, 'webhookAllowPrivateNetworks'>;

/**
 * Returns why messages may not be sent to this URL, or undefined. Host names are checked for each
 * connection, because their addresses may change.
 */
export function rejectionReason(url: string, policy: Policy): string | undefined {
  const target = URL.parse(url);
  if (policy.webhookAllowPrivateNetworks)
    return /^https?:$/.test(target?.protocol ?? '') ? undefined : 'must be a URL with https://';
  if (target?.protocol !== 'https:')
    return 'must begin with https://, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true';
  // URL parsing normalizes every notation of an IP address.
  const address = target.hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(address) && !isPublic(address)
    ? 'must not be a private address, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true'
    : undefined;
}

/**
 * Creates an HTTP client that opens one connection for each message, checks each address before it
 * connects, and follows no redirects.
 */
export function createHttpClient(
  policy: Policy,
  resolve: LookupFunction = dnsLookup,
  resolver = new Resolver({ timeout: 2_000, tries: 2 }),
): SendRequest {
  const limit = pLimit(1);
  return async (url, { headers, body }, signal) => {
    // The policy may have changed since the webhook was added.
    const rejection = rejectionReason(url, policy);
    if (rejection !== undefined) throw new Error(rejection);
    const inTurn: LookupFunction = (name, options, callback) =>
      void limit(async () => {
        if (signal.aborted) return;
        const { promise, resolve: end } = Promise.withResolvers<void>();
        resolve(name, options, (...found) => {
          end();
          callback(...found);
        });
        await promise;
      });
    // A name server that does not respond occupies one of libuv's two threads for look-ups for up to
    // 20 s. The other one is for the database. So it must respond to c-ares first, which needs no
    // thread, but reads no hosts file.
    const lookup: LookupFunction = (name, options, callback) =>
      resolver.resolve4(name, (error) =>
        error?.code === TIMEOUT ? callback(error, '') : inTurn(name, options, callback),
      );
    const outgoing = (url.startsWith('https:') ? https : http).request(url, {
      method: 'POST',
      headers,
      agent: false,
      signal,
      lookup: policy.webhookAllowPrivateNetworks ? lookup : publicOnly(lookup),
    });
    // Errors after the response has started do not matter.
    outgoing.on('error', () => undefined).end(body);
    const [response] = (await once(outgoing, 'response', { signal })) as [IncomingMessage];
    await drain(response);
    return response.statusCode ?? 0;
  };
}

// Reads the body, because a receiver may treat a response that nobody reads as a failure. The signal
// ends a slow one.
async function drain(response: IncomingMessage): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>)
      if ((bytes += chunk.length) > MAX_BODY_BYTES) break;
  } catch {
    // The status has been received.
  }
}

// Rejects a name if one of its addresses is not public.
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (name, options, callback) =>
    lookup(name, options, (error, found, family) => {
      const addresses = typeof found === 'string' ? [found] : found?.map(({ address }) => address);
      const rejected = error ? undefined : addresses.find((address) => !isPublic(address));
      if (rejected === undefined) callback(error, found, family);
      else callback(new Error(`${name} resolves to the private address ${rejected}`), '');
    });
}

// Of IPv6, only 2000::/3 is public (RFC 4291, 2.4); the rest includes notations of IPv4.
function isPublic(text: string): boolean {
  const address = ipaddr.parse(text);
  return (
    address.range() === 'unicast' &&
    (address.kind() === 'ipv4' || address.match(ipaddr.IPv6.parseCIDR('2000::/3')))
  );
}
