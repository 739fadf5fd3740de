import type { IncomingMessage } from 'node:http';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../kit/config.ts';
import type { Context } from '../kit/context.ts';
import ipaddr from 'ipaddr.js';
import proxyaddr from 'proxy-addr';
import type { Statements } from '../kit/sql.ts';
import type { Exchange } from './exchange.ts';
import { unavailable } from './http-error.ts';

/** A database as the doors use it. */
interface ReachedDatabase {
  /** A new unit of work. */
  fork(): EntityManager;
  statements: Statements;
  /** Resolves when it answers. */
  ping(): Promise<void>;
}

/** What the doors are given by whoever starts them. */
export interface Services {
  config: Config;
  log: Logger;
  now: () => Date;
  /** Undefined while there is none to work with. */
  database: () => ReachedDatabase | undefined;
  /** True once the process is on its way out: it answers what has come in, and asks for no more. */
  isDraining: () => boolean;
}

/**
 * The context of a request, before anyone has looked at its credentials. What few requests need is made when it is asked for.
 * Throws UNAVAILABLE without a database.
 */
export function contextOf(services: Services, { req, requestId }: Exchange): Context {
  const database = services.database();
  if (!database) throw unavailable();
  const { config, log, now } = services;
  const userAgent = req.headers['user-agent'];
  let em: EntityManager | undefined;
  let own: Logger | undefined;
  return {
    get em() {
      return (em ??= database.fork());
    },
    statements: database.statements,
    config,
    now,
    requestId,
    get log() {
      return (own ??= log.child({ requestId }));
    },
    loaders: new Map(),
    ...(userAgent !== undefined && { userAgent }),
    get network() {
      return networkOf(addressOf(config, req));
    },
  };
}

const trusts = new WeakMap<Config, (address: string, distance: number) => boolean>();

// What a proxy forwards counts only where the proxy is one of ours.
function addressOf(config: Config, req: IncomingMessage): string {
  let trust = trusts.get(config);
  if (!trust) trusts.set(config, (trust = proxyaddr.compile([...config.trustProxy])));
  return proxyaddr(req, trust);
}

// Whoever has one IPv6 address has 2^64 of them, so it is the network that counts. A proxy may forward what is no address.
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return 'unknown';
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed.toString();
  return `${parsed
    .toByteArray()
    .slice(0, 8)
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')}::/64`;
}
