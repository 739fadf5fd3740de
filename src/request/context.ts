import type { EntityManager } from '@mikro-orm/postgresql';
import type DataLoader from 'dataloader';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import type { DomainError } from '../core/errors.ts';
import type { Scope } from '../core/scopes.ts';
import { withRetries } from '../database/kysely.ts';
import type { Statements } from '../database/sql.ts';
import type { Abortable } from '../core/abort.ts';
import { databaseChannel } from '../core/tracing-channels.ts';

/** The authenticated user or API key of a request, read from its credentials once. */
export interface Caller {
  pk: number;
  username: string;
  /** Session of the credentials. Tokens of another issuer have none. */
  sessionId?: string;
  /** API key that authenticated the request, if any. */
  apiKeyId?: string;
  /** Scopes of the user, narrowed by the session and the token, or by the API key. */
  scopes: ReadonlySet<Scope>;
  /** Narrowed to read scopes: the credentials cannot change the user's own data either. */
  isReadOnly?: true;
  /** Expiry of the token, if any. A session has none here, because its expiry moves with use. */
  expiresAt?: Date;
}

/** The request, as services see it. */
export interface RequestHandle extends Abortable {
  /** Excludes the request from admission control: it now waits for long work off the event loop. */
  exclude(): void;
  /** Ends a request without its own end, such as a subscription; the client gets the error. */
  end?(error: DomainError): void;
  /** Connection of the request. */
  readonly connection?: object;
}

/** Context of a request for services, independent of HTTP and GraphQL. */
export interface Context {
  /** Unit of work, for writes. */
  em: EntityManager;
  /** Runs single statements. Undefined inside a transaction, which reads its own writes. */
  statements?: Statements;
  /** Reads of the replica, if there is one. Use it through request/on-replica.ts. */
  replica?: Statements;
  config: Config;
  caller?: Caller;
  /** OS user that runs the operator's command. */
  operator?: string;
  /** Current time; tests can replace it. */
  now(): Date;
  requestId: string;
  /** Its signal is aborted when the client is gone or the time is up; this cancels statements. */
  request?: RequestHandle;
  log: Logger;
  userAgent?: string;
  /** Cursor of the last event that the client received, to resume an interrupted subscription. */
  resumeAfter?: string;
  /** Key of a GraphQL request in the response cache, if its response may be cached. */
  cacheKey?: string;
  /** Network of the client: an IPv4 address, or the /64 of an IPv6 address. */
  network?: string;
  /** Loaders of this request, by name (loaders.ts). Never shared between requests. */
  loaders: Map<string, DataLoader<unknown, unknown>>;
}

/**
 * Runs the work in one transaction, then clears the request's loaders and unit of work, which may
 * hold rows of before. Retries on a serialization failure or deadlock (`withRetries`), so the work must
 * create its own entities and must have no side effects outside the database.
 */
export async function inTransaction<T>(
  ctx: Context,
  work: (ctx: Context) => Promise<T>,
): Promise<T> {
  const { statements } = ctx;
  const attempt = (unit: EntityManager) =>
    unit.transactional((em) =>
      work(withContext(ctx, { em, statements: undefined, loaders: new Map() })),
    );
  // Inside another transaction, only the outer one can be retried.
  const result = await (ctx.em.isInTransaction()
    ? attempt(ctx.em)
    : databaseChannel.tracePromise(() => withRetries(() => attempt(ctx.em.fork())), {
        kind: 'transaction',
      }));
  if (statements) statements.commits++;
  if (!ctx.em.isInTransaction()) ctx.em.clear();
  ctx.loaders.clear();
  return result;
}

/** Returns a context that inherits from `ctx` and overrides these properties. */
export function withContext(
  ctx: Context,
  overrides: { [Name in keyof Context]?: Context[Name] | undefined },
): Context {
  return Object.create(ctx, Object.getOwnPropertyDescriptors(overrides)) as Context;
}

/** Facts of a log line. Without `user`, the user is unknown. */
interface Facts extends Record<string, unknown> {
  event: string;
  user?: string | null;
}

/** Logs that an action on an account succeeded. */
export function logSuccess({ log }: Context, facts: Facts): void {
  log.info({ outcome: 'success', user: null, ...facts }, facts.event);
}

/** Logs that an action on an account was rejected. */
export function logFailure({ log }: Context, facts: Facts, message = facts.event): void {
  log.info({ outcome: 'failure', user: null, ...facts }, message);
}
