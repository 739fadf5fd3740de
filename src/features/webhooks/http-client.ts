import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { lookup as dnsLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Duplex } from 'node:stream';
import { RequestFilteringHttpAgent, RequestFilteringHttpsAgent } from 'request-filtering-agent';
import type { Message } from './message.ts';
import { isPublic, rejectionReason, type UrlPolicy } from './url-policy.ts';

/** Maximum number of bytes read of a response body. */
const MAX_BODY = 64 * 1024;

/** The parts of a response that matter. */
export interface Reply {
  status: number;
  retryAfter: string | undefined;
}

/**
 * Sends a message to a URL. Rejects without a response, and with UrlRefused if the URL policy
 * rejects the URL.
 */
export type SendRequest = (url: string, message: Message, signal: AbortSignal) => Promise<Reply>;

/** Error for a URL that the URL policy rejects. No connection was opened. */
export class UrlRefused extends Error {
  override readonly name = 'UrlRefused';
}

/**
 * Creates an HTTP client that opens one connection for each message. The client checks every IP
 * address before it connects, whatever name resolved to the address, and follows no redirects.
 */
export function createHttpClient(
  policy: UrlPolicy,
  lookup: LookupFunction = dnsLookup,
): SendRequest {
  const options = {
    allowPrivateIPAddress: policy.webhookAllowPrivateNetworks,
    allowMetaIPAddress: policy.webhookAllowPrivateNetworks,
  };
  const httpAgent = new RequestFilteringHttpAgent(options);
  const httpsAgent = new RequestFilteringHttpsAgent(options);
  return async (url, { headers, body }, signal) => {
    // The policy may have changed since the webhook was added.
    const rejection = rejectionReason(url, policy);
    if (rejection !== undefined) throw new UrlRefused(rejection);
    const agent = url.startsWith('https:') ? httpsAgent : httpAgent;
    const outgoing = request(url, {
      method: 'POST',
      headers,
      agent,
      signal,
      lookup: policy.webhookAllowPrivateNetworks ? lookup : publicOnly(lookup),
    });
    // Errors after the response has started do not matter.
    outgoing.on('error', () => undefined).end(body);
    // For an unrequested 101 response, Node emits neither 'response' nor 'error'.
    const started = Promise.race(
      ['response', 'upgrade'].map((event) => once(outgoing, event, { signal })),
    );
    try {
      const [response, socket] = (await started) as [IncomingMessage, Duplex?];
      if (socket) socket.destroy();
      else await drain(response);
      return { status: response.statusCode ?? 0, retryAfter: response.headers['retry-after'] };
    } catch (error) {
      throw asUrlRefused(error);
    }
  };
}

// Reads the body, because a receiver may treat an aborted response as a failure.
async function drain(response: IncomingMessage): Promise<void> {
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>)
      if ((size += chunk.length) > MAX_BODY) break;
  } catch {
    // The status has been received.
  }
}

// Rejects the addresses that the agent regards as public but `isPublic` does not.
function publicOnly(lookup: LookupFunction): LookupFunction {
  return (name, options, callback) =>
    lookup(name, options, (error, addresses, family) => {
      const rejected = error
        ? undefined
        : [addresses]
            .flat()
            .map((entry) => (typeof entry === 'string' ? entry : entry.address))
            .find((address) => !isPublic(address));
      if (rejected === undefined) callback(error, addresses, family);
      else
        callback(
          new UrlRefused(
            `DNS lookup ${rejected}(host:${name}) is not allowed. It is not a public address.`,
          ),
          '',
        );
    });
}

// The errors of the agent have neither a code nor a class of their own.
function asUrlRefused(error: unknown): unknown {
  return error instanceof Error && /^DNS lookup .* is not allowed\./.test(error.message)
    ? new UrlRefused(error.message)
    : error;
}
