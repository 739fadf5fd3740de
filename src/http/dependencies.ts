import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import type { Caller, Context } from '../request/context.ts';
import proxyaddr from 'proxy-addr';
import type { Statements } from '../database/sql.ts';
import type { CallCounter } from '../features/rest-usage/call-counter.ts';
import { clientAddress, networkOf } from './client-address.ts';
import { unavailableError } from './http-error.ts';
import type { Observer, RequestRecord } from '../telemetry/request-record.ts';
import type { Tracing } from '../telemetry/tracing.ts';

/** Maximum length of a stored client name, in characters. */
const MAX_CLIENT_NAME = 255;

/** The database, as both APIs use it. */
interface AvailableDatabase {
  /** Returns a new unit of work. Aborting the signal cancels its statements. */
  fork(signal?: AbortSignal): EntityManager;
  statements: Statements;
  /** Reads of the replica, if there is one. */
  replica?: Statements;
  /** Returns the number of statements that wait for a connection. */
  waiting(): number;
  /** Returns the numbers of open and of idle connections of the pool. */
  connections(): { open: number; idle: number };
  /** Resolves when the database responds. Rejects as soon as it is known to be unavailable. */
  ping(): Promise<void>;
}

/** What both APIs need from the process. */
export interface Dependencies {
  config: Config;
  log: Logger;
  /** Counts the calls of REST endpoints. */
  calls: CallCounter;
  now: () => Date;
  /** Called with the record of each completed request. */
  observe: Observer;
  /** Where traces are sent. */
  tracing?: Tracing;
  /** Returns the database, or undefined while it is unavailable. */
  database: () => AvailableDatabase | undefined;
  /** Returns true during shutdown: received requests are completed, and connections are closed. */
  isDraining: () => boolean;
}

/** The state of a request (`res.locals`), or of another origin of a context. */
type ContextSource = NonNullable<Context['request']> & {
  readonly requestId: string;
  readonly record?: RequestRecord | undefined;
};

/** Returns the context of a request before authentication. */
export function contextOf(
  dependencies: Dependencies,
  req: IncomingMessage,
  source: ContextSource,
): Context {
  return new RequestContext(dependencies, req, source);
}

/** Returns the context of an HTTP request. */
export function httpContextOf(dependencies: Dependencies, res: Response): Context {
  return new RequestContext(dependencies, res.req, res.locals);
}

/** Returns the record of the request with this context, or undefined without a request. */
export function recordOf(ctx: Context): RequestRecord | undefined {
  return ctx instanceof RequestContext ? ctx.request.record : undefined;
}

/** Returns the client's `User-Agent`, truncated. */
function userAgentOf({ headers }: IncomingMessage): string | undefined {
  return headers['user-agent']?.slice(0, MAX_CLIENT_NAME);
}

/**
 * Returns the truncated name of the client: `apollographql-client-name`, which browser pages can
 * set, else `User-Agent`. Undefined without either.
 */
export function clientNameOf({ headers }: IncomingMessage): string | undefined {
  const name = headers['apollographql-client-name'] || headers['user-agent'];
  return typeof name === 'string' ? name.slice(0, MAX_CLIENT_NAME) : undefined;
}

/** Creates rarely used members on first access. Throws UNAVAILABLE without a database. */
class RequestContext implements Context {
  readonly config: Config;
  readonly now: () => Date;
  readonly requestId: string;
  readonly loaders: Context['loaders'] = new Map();
  declare replica?: Statements;
  declare caller?: Caller;
  declare userAgent?: string;
  declare resumeAfter?: string;
  declare cacheKey?: string;
  private connected: AvailableDatabase | undefined;
  private entityManager: EntityManager | undefined;
  private requestLog: Logger | undefined;

  constructor(
    private readonly dependencies: Dependencies,
    private readonly req: IncomingMessage,
    readonly request: ContextSource,
  ) {
    const replica = dependencies.database()?.replica;
    if (replica) this.replica = replica;
    this.config = dependencies.config;
    this.now = dependencies.now;
    this.requestId = request.requestId;
    const userAgent = userAgentOf(req);
    if (userAgent !== undefined) this.userAgent = userAgent;
  }

  get statements(): Statements {
    return this.database.statements;
  }

  get em(): EntityManager {
    return (this.entityManager ??= this.database.fork(this.request.signal));
  }

  private get database(): AvailableDatabase {
    return (this.connected ??= this.dependencies.database() ?? throwUnavailable());
  }

  get log(): Logger {
    return (this.requestLog ??= this.dependencies.log.child({
      requestId: this.requestId,
      ip: addressOf(this.config, this.req),
    }));
  }

  get network(): string {
    return networkOfClient(this.config, this.req);
  }
}

function throwUnavailable(): never {
  throw unavailableError();
}

/** The members of a request that show the address of its client. */
type Addressed = Pick<IncomingMessage, 'headers' | 'socket'>;

/** Returns the address of the client, or of its network for IPv6. */
export function networkOfClient(config: Config, req: Addressed): string {
  const address = addressOf(config, req);
  // A client that has disconnected.
  return address === undefined ? 'unknown' : networkOf(address);
}

const trustByConfig = new WeakMap<Config, (address: string, distance: number) => boolean>();

// Only trusted proxies may forward an address.
function addressOf(config: Config, req: Addressed): string | undefined {
  let trust = trustByConfig.get(config);
  if (!trust) trustByConfig.set(config, (trust = proxyaddr.compile([...config.trustProxy])));
  const isProxy = trust;
  return clientAddress(req, (address) => isProxy(address, 0));
}
