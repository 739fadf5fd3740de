import ipaddr from 'ipaddr.js';
import type { Config } from '../../core/config.ts';

/** Maximum length of a URL, in characters. */
const MAX_LENGTH = 2_000;

/** The setting that decides which URLs messages may be sent to. */
export type UrlPolicy = Pick<Config, 'webhookAllowPrivateNetworks'>;

/**
 * Returns why the policy rejects this URL, or undefined. Host names are not resolved here: their
 * addresses may change, so they are checked for each connection (http-client.ts).
 */
export function rejectionReason(
  url: string,
  { webhookAllowPrivateNetworks }: UrlPolicy,
): string | undefined {
  const target = URL.parse(url);
  if (!target || url.length > MAX_LENGTH)
    return `must be a URL of at most ${MAX_LENGTH} characters`;
  if (!/^https?:$/.test(target.protocol)) return 'must begin with https://';
  if (target.username !== '' || target.password !== '')
    return 'must not contain credentials: messages are signed';
  if (url.includes('#')) return 'must not contain a fragment: fragments are never sent';
  if (webhookAllowPrivateNetworks) return undefined;
  if (target.protocol === 'http:')
    return 'must begin with https://, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true';
  if (isPrivate(target.hostname))
    return 'must not be a private address, unless WEBHOOK_ALLOW_PRIVATE_NETWORKS=true';
  return undefined;
}

// URL parsing normalizes every notation of an IP address.
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(address) && !isPublic(address);
}

/**
 * Whether an IP address is public. Of IPv6, only 2000::/3 is public so far (RFC 4291, 2.4); the
 * rest includes notations of IPv4.
 */
export function isPublic(text: string): boolean {
  const address = ipaddr.parse(text);
  return (
    address.range() === 'unicast' &&
    (address.kind() === 'ipv4' || address.match(ipaddr.IPv6.parseCIDR('2000::/3')))
  );
}
