import type { IncomingMessage } from 'node:http';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import type { Caller, Context } from '../request/context.ts';
import ipaddr from 'ipaddr.js';
import proxyaddr from 'proxy-addr';
import type { Statements } from '../database/sql.ts';
import type { CallCounter } from '../features/rest-usage/call-counter.ts';
import type { Exchange } from './exchange.ts';
import { unavailable } from './http-error.ts';
import type { Observer, Seen } from '../telemetry/request-record.ts';
import type { Tracing } from './tracing.ts';

/** What is kept of how a client names itself. */
const MAX_USER_AGENT = 255;

/** A database as the doors use it. */
interface ReachedDatabase {
  /** A new unit of work, whose statements are cancelled when the signal is aborted. */
  fork(signal?: AbortSignal): EntityManager;
  statements: Statements;
  /** How many statements wait for a connection. */
  waiting(): number;
  /** How many connections of the pool there are, and how many of them nobody uses. */
  connections(): { open: number; idle: number };
  /** Resolves when it answers, and rejects as soon as it is known that it does not. */
  ping(): Promise<void>;
}

/** What the doors are given by whoever starts them. */
export interface Services {
  config: Config;
  log: Logger;
  /** Counts the calls of REST rows. */
  calls: CallCounter;
  now: () => Date;
  /** Is told of each request when it is over. */
  observe: Observer;
  /** Where traces are sent. */
  tracing?: Tracing;
  /** Undefined while there is none to work with, or it does not answer. */
  database: () => ReachedDatabase | undefined;
  /** A replica to read from, where there is one that is good enough just now. */
  replica?: () => Statements | undefined;
  /** True once the process is on its way out: it answers what has come in, and asks for no more. */
  isDraining: () => boolean;
}

/** An exchange, or what else a context is made for. */
type Asking = NonNullable<Context['request']> & Pick<Exchange, 'req' | 'requestId' | 'signal'> & { readonly seen?: Seen | undefined };

/** The context of a request, before anyone has looked at its credentials. */
export function contextOf(services: Services, exchange: Asking): Context {
  return new RequestContext(services, exchange);
}

/** What the observer will be told of the request with this context; undefined where it is of none. */
export function seenOf(ctx: Context): Seen | undefined {
  return ctx instanceof RequestContext ? ctx.request.seen : undefined;
}

/** What the client calls itself, as far as it is kept. */
function userAgentOf({ headers }: IncomingMessage): string | undefined {
  return headers['user-agent']?.slice(0, MAX_USER_AGENT);
}

/**
 * The name of the client, as far as it is kept: `apollographql-client-name`, which pages in a browser can set, else `User-Agent`.
 * Undefined where it sends neither.
 */
export function clientNameOf({ headers }: IncomingMessage): string | undefined {
  const name = headers['apollographql-client-name'] || headers['user-agent'];
  return typeof name === 'string' ? name.slice(0, MAX_USER_AGENT) : undefined;
}

/** What few requests need is made when it is asked for. Asking for the database throws UNAVAILABLE where there is none. */
class RequestContext implements Context {
  readonly config: Config;
  readonly now: () => Date;
  readonly requestId: string;
  readonly loaders: Context['loaders'] = new Map();
  declare replica?: Statements;
  declare caller?: Caller;
  declare userAgent?: string;
  declare resumeAfter?: string;
  private reached: ReachedDatabase | undefined;
  private unit: EntityManager | undefined;
  private own: Logger | undefined;

  constructor(
    private readonly services: Services,
    readonly request: Asking,
  ) {
    const replica = services.replica?.();
    if (replica) this.replica = replica;
    this.config = services.config;
    this.now = services.now;
    this.requestId = request.requestId;
    const userAgent = userAgentOf(request.req);
    if (userAgent !== undefined) this.userAgent = userAgent;
  }

  get statements(): Statements {
    return this.database.statements;
  }

  get em(): EntityManager {
    return (this.unit ??= this.database.fork(this.request.signal));
  }

  private get database(): ReachedDatabase {
    return (this.reached ??= this.services.database() ?? refuse());
  }

  get log(): Logger {
    return (this.own ??= this.services.log.child({ requestId: this.requestId, ip: addressOf(this.config, this.request.req) }));
  }

  get network(): string {
    return networkOf(addressOf(this.config, this.request.req));
  }
}

function refuse(): never {
  throw unavailable();
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
