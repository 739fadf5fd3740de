import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import proxyaddr from 'proxy-addr';
import type { Config } from '../core/config.ts';

/** The members of a request that show the address of its client. */
type Addressed = Pick<IncomingMessage, 'headers' | 'socket'>;

/**
 * Returns the canonical address of the client: the last hop of `X-Forwarded-For` that is not a
 * trusted proxy. If that is not an address, returns the peer's. Undefined if the client has
 * disconnected.
 */
export function clientAddress({ trustProxy }: Config, req: Addressed): string | undefined {
  const { remoteAddress = '' } = req.socket;
  const client = proxyaddr(req as IncomingMessage, [...trustProxy]);
  const address = [client, remoteAddress].find((text) => isIP(text) !== 0);
  // Without a zone. IPv4 that is mapped to IPv6 becomes IPv4.
  return address && ipaddr.process(address.replace(/%.*/, '')).toString();
}

/**
 * Returns the address of the client, or its /64 network for IPv6, because a client with one IPv6
 * address has 2^64 of them.
 */
export function networkOfClient(config: Config, req: Addressed): string {
  const address = clientAddress(config, req) ?? 'unknown';
  if (!address.includes(':')) return address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString()}/64`;
}
