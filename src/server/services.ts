import type { IncomingMessage } from 'node:http';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../kit/config.ts';
import type { Caller, Context } from '../kit/context.ts';
import ipaddr from 'ipaddr.js';
import proxyaddr from 'proxy-addr';
import type { Statements } from '../kit/sql.ts';
import type { CallCounter } from '../legacy/call-counter.ts';
import type { Exchange } from './exchange.ts';
import { unavailable } from './http-error.ts';

/** What is kept of how a client names itself. */
const MAX_USER_AGENT = 255;

/** A database as the doors use it. */
interface ReachedDatabase {
  /** A new unit of work, whose statements are cancelled when the signal is aborted. */
  fork(signal?: AbortSignal): EntityManager;
  statements: Statements;
  /** Resolves when it answers. */
  ping(): Promise<void>;
}

/** What the doors are given by whoever starts them. */
export interface Services {
  config: Config;
  log: Logger;
  /** Counts the calls of REST rows. */
  calls: CallCounter;
  now: () => Date;
  /** Undefined while there is none to work with. */
  database: () => ReachedDatabase | undefined;
  /** True once the process is on its way out: it answers what has come in, and asks for no more. */
  isDraining: () => boolean;
}

/**
 * The context of a request, before anyone has looked at its credentials. Throws UNAVAILABLE without a database.
 */
export function contextOf(services: Services, exchange: Exchange): Context {
  const database = services.database();
  if (!database) throw unavailable();
  return new RequestContext(services, database, exchange);
}

/** What the client calls itself, as far as it is kept. */
export function userAgentOf({ headers }: IncomingMessage): string | undefined {
  return headers['user-agent']?.slice(0, MAX_USER_AGENT);
}

/** What few requests need is made when it is asked for. */
class RequestContext implements Context {
  readonly statements: Statements;
  readonly config: Config;
  readonly now: () => Date;
  readonly requestId: string;
  readonly loaders: Context['loaders'] = new Map();
  declare caller?: Caller;
  declare userAgent?: string;
  private unit: EntityManager | undefined;
  private own: Logger | undefined;

  constructor(
    private readonly services: Services,
    private readonly database: ReachedDatabase,
    readonly request: Exchange,
  ) {
    this.statements = database.statements;
    this.config = services.config;
    this.now = services.now;
    this.requestId = request.requestId;
    const userAgent = userAgentOf(request.req);
    if (userAgent !== undefined) this.userAgent = userAgent;
  }

  get em(): EntityManager {
    return (this.unit ??= this.database.fork(this.request.signal));
  }

  get log(): Logger {
    return (this.own ??= this.services.log.child({ requestId: this.requestId, ip: addressOf(this.config, this.request.req) }));
  }

  get network(): string {
    return networkOf(addressOf(this.config, this.request.req));
  }
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
