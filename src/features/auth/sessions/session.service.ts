import { randomUUID } from 'node:crypto';
import { LockMode, type EntityClass } from '@mikro-orm/postgresql';
import { expressionBuilder, sql } from 'kysely';
import { jsonBuildObject } from 'kysely/helpers/postgres';
import { inTransaction, type Context } from '../../../request/context.ts';
import { loader } from '../../../request/loaders.ts';
import {
  findInList,
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../../pagination/keyset.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import {
  deleteUntil,
  cachedStatement,
  columnOf,
  readRows,
  builder,
  run,
  type Columns,
} from '../../../database/kysely.ts';
import type { Scope } from '../../../core/scopes.ts';
import { DAY_MS } from '../../../core/time.ts';
import { isUuid } from '../../../core/validation.ts';
import { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import { rejectIfChanged } from '../login.ts';
import { Session } from './session.entity.ts';

/** Minimum time between two updates of the last use of a session, in ms. */
const TOUCH_INTERVAL_MS = 60_000;
/** Maximum number of sessions per user. Opening one more deletes the oldest. */
const MAX_SESSIONS = 50;

/** The properties that decide what the caller of a session may do. */
const LIVE = ['sid', 'scopes', 'createdAt', 'lastSeenAt', 'expiresAt', 'endedAt'] as const;
/** A session, as far as it decides what its caller may do. */
export type LiveSession = Pick<Session, (typeof LIVE)[number]>;
type TextOfTime<T> = T extends Date ? string : T;
type Json<T> = { [Name in keyof T]: TextOfTime<T[Name]> };

/** A user and one of the user's sessions, if there is one. */
interface Found {
  user: Json<User>;
  session: Json<LiveSession> | { sid: null };
}

interface Tables {
  session: Columns<Session>;
}

/**
 * Opens a session for the user, limited to the scopes if there are any, and deletes the user's
 * oldest sessions beyond 50. Returns the session and its key, of which only the hash is stored.
 * Throws INVALID_CREDENTIALS and INACTIVE_LOGIN if the user was deleted, got another password or
 * was disabled since `authenticate`, so that no session outlives a change that ends all sessions.
 */
export async function open(
  ctx: Context,
  user: User,
  scopes: Scope[] | null,
): Promise<{ session: Session; key: string }> {
  const key = newSecretKey();
  const session = await inTransaction(ctx, async (tx) => {
    rejectIfChanged(tx, user, await users.lock(tx, user.pk));
    const now = tx.now();
    const opened = tx.em.create(Session, {
      sid: randomUUID(),
      userPk: user.pk,
      keyHash: hashKey(key),
      scopes,
      refreshGeneration: 0,
      createdAt: now,
      lastSeenAt: now,
      expiresAt: expiry(tx, now, now),
      endedAt: null,
      userAgent: tx.userAgent ?? null,
    });
    await tx.em.flush();
    const oldest = tx.em
      .getKysely<Tables>()
      .selectFrom('session')
      .select('sid')
      .where('user_pk', '=', user.pk)
      .orderBy('created_at', 'desc')
      .orderBy('sid', 'desc')
      .offset(MAX_SESSIONS);
    await run(tx, tx.em.getKysely<Tables>().deleteFrom('session').where('sid', 'in', oldest));
    return opened;
  });
  return { session, key };
}

/**
 * Returns a user and one of the user's sessions, in one statement: by the session's key, or by the
 * username and an optional `sid`. The session may have ended or expired.
 */
export async function withUser(
  ctx: Context,
  by: { key: string } | { username: string; sid?: string },
): Promise<{ user?: User; session?: LiveSession }> {
  // Two columns instead of 13, because the driver reads the names of all columns each time.
  const select = () =>
    builder
      .selectFrom('user')
      .select(jsonOf(ctx, User).as('user'))
      .select(jsonOf(ctx, Session, LIVE).as('session'));
  const statement =
    'key' in by
      ? cachedStatement('user by session key', [hashKey(by.key)], () =>
          select()
            .innerJoin('session', 'session.user_pk', 'user.pk')
            .where('session.key_hash', '=', hashKey(by.key)),
        )
      : cachedStatement('user by name and sid', [uuidOf(by.sid), by.username], () =>
          select()
            .leftJoin('session', (join) =>
              join.onRef('session.user_pk', '=', 'user.pk').on('sid', '=', uuidOf(by.sid)),
            )
            .where('username', '=', by.username),
        );
  const [row] = await readRows<Found>(ctx, statement, true);
  if (!row) return {};
  const user = users.userIn(ctx, row.user);
  const { session } = row;
  return { user, ...(session.sid !== null && { session: readSession(session) }) };
}

// Returns a column with these properties, by default all that are not lazy.
function jsonOf(ctx: Context, entity: EntityClass<object>, names?: readonly string[]) {
  const { props } = ctx.em.getMetadata(entity);
  const chosen = names ?? props.filter(({ lazy }) => !lazy).map(({ name }) => String(name));
  return jsonBuildObject(
    Object.fromEntries(chosen.map((name) => [name, sql.ref(columnOf(ctx, entity, name))])),
  );
}

// The driver parses the times of columns, but not those in JSON.
function readSession({ createdAt, lastSeenAt, expiresAt, endedAt, ...session }: Json<LiveSession>) {
  return {
    ...session,
    createdAt: new Date(createdAt),
    lastSeenAt: new Date(lastSeenAt),
    expiresAt: new Date(expiresAt),
    endedAt: endedAt === null ? null : new Date(endedAt),
  };
}

/** Returns the session of this `sid`, also if it has ended or expired, or null. */
export async function bySid({ em }: Context, sid: string): Promise<Session | null> {
  return isUuid(sid) ? em.findOne(Session, { sid }, { disableIdentityMap: true }) : null;
}

/** Returns whether the session has neither ended nor expired. */
export function isLive(ctx: Context, session: LiveSession): boolean {
  return session.endedAt === null && ctx.now() < session.expiresAt;
}

/** Updates the last use and the idle expiry of the session and its row, at most once a minute. */
export async function touch(ctx: Context, session: LiveSession): Promise<void> {
  const now = ctx.now();
  const threshold = new Date(now.getTime() - TOUCH_INTERVAL_MS);
  if (session.lastSeenAt > threshold) return;
  const use = { lastSeenAt: now, expiresAt: expiry(ctx, session.createdAt, now) };
  Object.assign(session, use);
  await ctx.em.nativeUpdate(Session, { sid: session.sid, lastSeenAt: { $lte: threshold } }, use);
}

/** Ends the live sessions with these values, except `keep`. Returns the `sid` of each. */
export async function end(
  ctx: Context,
  where: { key_hash: Buffer } | { sid: string } | { user_pk: number; sid?: string },
  keep?: string,
): Promise<string[]> {
  const statement = ctx.em
    .getKysely<Tables>()
    .deleteFrom('session')
    .where((eb) => eb.and(where))
    .where('ended_at', 'is', null)
    .where('expires_at', '>', ctx.now())
    .$if(keep !== undefined, (others) => others.where('sid', '<>', keep ?? ''))
    .returning('sid');
  return (await run(ctx, statement)).map(({ sid }) => sid);
}

/** Returns the earlier end of the idle lifetime after `seenAt` and the absolute lifetime. */
export function expiry(ctx: Context, createdAt: Date, seenAt: Date): Date {
  const idleEnd = seenAt.getTime() + ctx.config.sessionIdleDays * DAY_MS;
  const lifetimeEnd = createdAt.getTime() + ctx.config.sessionLifetimeDays * DAY_MS;
  return new Date(Math.min(idleEnd, lifetimeEnd));
}

/**
 * Rotates the refresh token if its generation is the current one, and returns the session. Within
 * REFRESH_REUSE_SECONDS, the previous generation also gets the session, because its client may not
 * have received the response. Otherwise the token was used before: ends the session, because one of
 * the token's two users has stolen it (RFC 9700, 4.14.2), and returns null. With `sessionKey`,
 * replaces the session's key.
 */
export function rotate(
  ctx: Context,
  sid: string,
  generation: number,
  sessionKey?: string,
): Promise<Session | null> {
  return inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const session = await tx.em.findOne(
      Session,
      { sid, endedAt: null, expiresAt: { $gt: now } },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    if (!session) return null;
    const { refreshGeneration, refreshedAt } = session;
    const reuseEnd = Number(refreshedAt) + tx.config.refreshReuseSeconds * 1000;
    const isRepeated = refreshGeneration === generation + 1 && now.getTime() < reuseEnd;
    if (!isRepeated && refreshGeneration !== generation) {
      tx.em.remove(session);
      return null;
    }
    if (!isRepeated)
      Object.assign(session, { refreshGeneration: generation + 1, refreshedAt: now });
    if (sessionKey !== undefined) session.keyHash = hashKey(sessionKey);
    return session;
  });
}

/** Deletes expired sessions. Returns their number. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'session', 'expires_at', ctx.now());
}

/** Returns a page of the caller's live sessions, latest first; empty for other users. */
export function pageOf(ctx: Context, userPk: number, args: PageArgs): Promise<Page<Session>> {
  return loader(ctx, `sessions.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, listDefinition(ctx), args, { property: 'userPk', pks }),
  ).load(userPk);
}

/** Finds the caller's sessions for `node(id:)`. */
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(Session | null)[]> {
  return findInList(ctx, listDefinition(ctx), keys);
}

/** Returns all live sessions of a user, latest first, for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<Session[]> {
  return ctx.em.find(
    Session,
    { userPk, endedAt: null, expiresAt: { $gt: ctx.now() } },
    { orderBy: { createdAt: 'desc' }, disableIdentityMap: true },
  );
}

function listDefinition(ctx: Context): ListDefinition<Session> {
  const eb = expressionBuilder<{ session: Columns<Session> }, 'session'>();
  // An API key may not read the sessions of its user.
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return {
    name: 'sessions',
    entity: Session,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'sid', kind: 'uuid' },
    ],
    descending: true,
    where: eb('user_pk', '=', owner ?? null)
      .and('ended_at', 'is', null)
      .and('expires_at', '>', ctx.now()),
  };
}

function uuidOf(sid: string | undefined): string | null {
  return sid !== undefined && isUuid(sid) ? sid : null;
}
