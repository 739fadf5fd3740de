import ipaddr from 'ipaddr.js';
import type { Config } from '../../core/config.ts';

const MAX_LENGTH = 2_000;

/** What of the configuration says where messages may go. */
export type TargetRules = Pick<Config, 'webhookPrivateTargets'>;

/**
 * Why nothing may be sent to this address; undefined where it may. A name is not resolved for it: the addresses that it stands for are looked at
 * when a connection is opened (sender.ts), for they may change in between.
 */
export function refusalOf(url: string, { webhookPrivateTargets }: TargetRules): string | undefined {
  const target = URL.parse(url);
  if (!target || url.length > MAX_LENGTH) return `must be a URL of at most ${MAX_LENGTH} characters`;
  if (!/^https?:$/.test(target.protocol)) return 'must begin with https://';
  if (target.username !== '' || target.password !== '') return 'must have no credentials in it: messages are signed';
  if (url.includes('#')) return 'must have no fragment, which is never sent';
  if (webhookPrivateTargets) return undefined;
  if (target.protocol === 'http:') return 'must begin with https://, unless WEBHOOK_PRIVATE_TARGETS=true';
  if (isPrivate(target.hostname)) return 'must not be a private address, unless WEBHOOK_PRIVATE_TARGETS=true';
  return undefined;
}

// Whatever way it was written, a URL has an address in the usual one.
function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(address) && !isPublic(address);
}

/** Whether an address is one of the internet's (RFC 4291, 2.4: of IPv6, that is 2000::/3 so far; the rest includes IPv4 written otherwise). */
export function isPublic(text: string): boolean {
  const address = ipaddr.parse(text);
  return address.range() === 'unicast' && (address.kind() === 'ipv4' || address.match(ipaddr.IPv6.parseCIDR('2000::/3')));
}
