import type { EntityManager } from '@mikro-orm/postgresql';
import type { Request } from 'express';
import type { Logger } from 'pino';
import type { Config } from '../kit/config.ts';
import type { Context } from '../kit/context.ts';
import ipaddr from 'ipaddr.js';
import { unavailable } from './http-error.ts';

/** What the doors are given by whoever starts them. */
export interface Services {
  config: Config;
  log: Logger;
  now: () => Date;
  /** A new unit of work; undefined while there is no database to work with. */
  fork: () => EntityManager | undefined;
  /** Resolves when the database answers. */
  ping: () => Promise<void>;
  /** True once the process is on its way out: it answers what has come in, and asks for no more. */
  isDraining: () => boolean;
}

/** The context of a request, before anyone has looked at its credentials. Throws UNAVAILABLE without a database. */
export function contextOf({ config, log, now, fork }: Services, req: Request, requestId: string): Context {
  const em = fork();
  if (!em) throw unavailable();
  const userAgent = req.headers['user-agent'];
  const network = req.ip === undefined ? undefined : networkOf(req.ip);
  return {
    em,
    config,
    now,
    requestId,
    log: log.child({ requestId }),
    loaders: new Map(),
    ...(userAgent !== undefined && { userAgent }),
    ...(network !== undefined && { network }),
  };
}

// Whoever has one IPv6 address has 2^64 of them, so it is the network that counts. A proxy may forward what is no address.
function networkOf(address: string): string | undefined {
  if (!ipaddr.isValid(address)) return undefined;
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${parsed
    .toByteArray()
    .slice(0, 8)
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')}::/64`;
}
