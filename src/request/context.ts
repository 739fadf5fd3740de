import type { EntityManager } from '@mikro-orm/postgresql';
import type DataLoader from 'dataloader';
import type { Logger } from 'pino';
import type { InBulk } from '../database/copy.ts';
import type { Config } from '../core/config.ts';
import type { DomainError } from '../core/errors.ts';
import type { Scope } from '../core/scopes.ts';
import { retried } from '../database/retry.ts';
import type { Abortable, Statements } from '../database/sql.ts';
import { asking } from '../core/tracing-channels.ts';

/** Who makes a request: facts read from its credentials, once. */
export interface Caller {
  pk: number;
  username: string;
  /** The session that the credentials belong to; a token of another issuer has none. */
  sessionId?: string;
  /** The API key that a machine came with, if it did. */
  apiKeyId?: string;
  /** What the caller may do: what the user holds, narrowed by the session and the token, or by the API key. */
  scopes: ReadonlySet<Scope>;
  /** The credentials were narrowed to scopes that allow no change: not of what is the user's own either. */
  isReadOnly?: true;
  /** When the credentials end by themselves: a token's expiry. That of a session is moved as it is used. */
  until?: Date;
}

/** The request, as those see it who work for it. */
interface Waiting extends Abortable {
  /** Says that what it waits for from here on is no work of this process's event loop, and takes long. */
  setAside(): void;
  /** Gives up what has no end of its own, such as a subscription, and has the client told why. */
  end?(refusal: DomainError): void;
  /** The connection that it came on. */
  readonly connection?: object;
  /** What the client is told then. */
  readonly refusal?: DomainError | undefined;
}

/** What every service knows of the request it works for: facts, and nothing of HTTP or GraphQL. */
export interface Context {
  /** The unit of work, for writes. */
  em: EntityManager;
  /** For single statements; absent inside a transaction, which reads its own writes. */
  statements?: Statements;
  /** A replica of the database, where this request has one; what may be read from it goes by request/on-replica.ts. */
  replica?: Statements;
  /** Transactions for many rows at a time. Only the operator's commands have them: a request brings few. */
  inBulk?: InBulk;
  config: Config;
  caller?: Caller;
  /** Who runs the operator's command that this is for, by the name at the operating system. */
  operator?: string;
  /** The time, which tests may move. */
  now(): Date;
  requestId: string;
  /** Given up when nobody waits for the request any longer: what the database does for it is then cancelled. */
  request?: Waiting;
  log: Logger;
  userAgent?: string;
  /** Where a subscription goes on that was interrupted: the cursor of the last event that the client has had. */
  resumeAfter?: string;
  /** The caller's network: an IPv4 address, or the /64 of an IPv6 address. */
  network?: string;
  /** The batching loaders of this request, by name (loaders.ts). Never shared between requests. */
  loaders: Map<string, DataLoader<unknown, unknown>>;
}

/**
 * Runs the work in one transaction: all of it is stored, or none. What the request reads after it, it reads anew. The work is done again where
 * PostgreSQL has undone it because of others (retry.ts), so it makes its entities itself, and changes nothing but the database.
 */
export async function inTransaction<T>(ctx: Context, work: (ctx: Context) => Promise<T>): Promise<T> {
  const { statements } = ctx;
  const attempt = (unit: EntityManager) =>
    unit.transactional((em) => work(changed(ctx, { em, statements: undefined, loaders: new Map() })));
  // Inside another transaction, it is that one that is undone.
  const result = await (ctx.em.isInTransaction()
    ? attempt(ctx.em)
    : asking.tracePromise(() => retried(() => attempt(ctx.em.fork())), { kind: 'transaction' }));
  if (statements) statements.commits++;
  ctx.loaders.clear();
  return result;
}

/** The context with these facts in place of its own, and all others as they are. */
export function changed(ctx: Context, facts: { [Fact in keyof Context]?: Context[Fact] | undefined }): Context {
  const properties = Object.entries(facts).map(([name, value]) => [name, { value, writable: true, enumerable: true, configurable: true }]);
  return Object.create(ctx, Object.fromEntries(properties) as PropertyDescriptorMap) as Context;
}
