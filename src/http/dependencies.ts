import type { IncomingMessage } from 'node:http';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { callerByApiKey, isApiKey } from '../features/api-keys/api-key.service.ts';
import { callerBySessionKey, callerByToken } from '../features/auth/callers.ts';
import type { Caller, Context, RequestHandle } from '../request/context.ts';
import type { Database } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';
import type { CallCounter } from '../features/rest-usage/call-counter.ts';
import type { Observer, RequestRecord } from '../telemetry/request-record.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { clientAddress, networkOfClient } from './headers.ts';
import { unavailableError } from './http-error.ts';

/** Maximum length of a stored user agent, in characters. */
const MAX_USER_AGENT = 255;

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
  database: () => Database | undefined;
  /** Returns true until the database was available once. */
  isStarting: () => boolean;
  /** Returns true during shutdown: received requests are completed, and connections are closed. */
  isDraining: () => boolean;
}

/** The state of a request (`res.locals`), or of another origin of a context. */
type ContextSource = RequestHandle & {
  readonly requestId: string;
  readonly record?: RequestRecord;
};

/** Returns the record of the request with this context, or undefined without a request. */
export function recordOf(ctx: Context): RequestRecord | undefined {
  return ctx instanceof RequestContext ? ctx.request.record : undefined;
}

/**
 * The context of a request, before authentication. Creates rarely used members on first access, which
 * throws UNAVAILABLE without a database.
 */
export class RequestContext implements Context {
  readonly config: Config;
  readonly now: () => Date;
  readonly requestId: string;
  readonly loaders: Context['loaders'] = new Map();
  declare replica?: Statements;
  declare caller?: Caller;
  declare userAgent?: string;
  declare resumeAfter?: string;
  declare cacheKey?: string;
  private connected: Database | undefined;
  private entityManager: EntityManager | undefined;

  constructor(
    private readonly dependencies: Dependencies,
    private readonly req: IncomingMessage,
    readonly request: ContextSource,
  ) {
    this.connected = dependencies.database();
    if (this.connected?.replica) this.replica = this.connected.replica;
    this.config = dependencies.config;
    this.now = dependencies.now;
    this.requestId = request.requestId;
    const userAgent = req.headers['user-agent'];
    if (userAgent !== undefined) this.userAgent = userAgent.slice(0, MAX_USER_AGENT);
  }

  get statements(): Statements {
    return this.database.statements;
  }

  get em(): EntityManager {
    return (this.entityManager ??= this.database.fork(this.request.signal));
  }

  get log(): Logger {
    const { requestId, config, req } = this;
    return this.dependencies.log.child({ requestId, ip: clientAddress(config, req) });
  }

  get network(): string {
    return networkOfClient(this.config, this.req);
  }

  private get database(): Database {
    if (!this.connected) throw unavailableError(this.dependencies.isStarting());
    return this.connected;
  }
}

/**
 * Sets the caller that the credentials identify. Sets none without credentials. `Authorization`, if
 * present, decides alone: it holds an API key or an access token, and anything but a bearer token
 * counts as no credentials. Throws for invalid credentials.
 */
export async function findCaller(
  ctx: Context,
  req: Pick<IncomingMessage, 'headers'>,
): Promise<void> {
  const { authorization } = req.headers;
  if (authorization !== undefined) {
    const [, token] = /^bearer +([^\s]+)$/i.exec(authorization) ?? [];
    if (token !== undefined)
      ctx.caller = await (isApiKey(token) ? callerByApiKey : callerByToken)(ctx, token);
    return;
  }
  const keys = [req.headers['x-session-id'], req.headers['x-sessionid']].filter(
    (key) => typeof key === 'string',
  );
  const [key, other = key] = keys;
  if (key === undefined) return;
  if (key !== other) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  ctx.caller = await callerBySessionKey(ctx, key);
}
