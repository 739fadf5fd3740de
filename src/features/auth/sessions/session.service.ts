import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { Context } from '../../../request/context.ts';
import { loader } from '../../../request/loaders.ts';
import {
  readPagesOf,
  type ListDefinition,
  type Page,
  type PageArgs,
} from '../../../pagination/keyset.ts';
import { hashKey, newSecretKey } from '../../../core/secret-key.ts';
import { inOrder, readRows, selectEntities, shapeOf } from '../../../database/row-mapper.ts';
import type { Scope } from '../../../core/scopes.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import { isUuid } from '../../../core/uuid.ts';
import { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import { rejectIfChanged } from '../login/authenticate.ts';
import { Session } from './session.entity.ts';

/** Minimum time between two updates of the last use of a session, in ms. */
const TOUCH_INTERVAL_MS = 60_000;
/**
 * Time for which the row of an expired session is retained, in ms. Subscriptions read from it that
 * the session expired and was not ended.
 */
const RETENTION_MS = 60_000;
/** Maximum number of sessions per user. Opening one more deletes the oldest. */
const MAX_SESSIONS = 50;

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
  const now = ctx.now();
  const session = Object.assign(new Session(), {
    sid: randomUUID(),
    userPk: user.pk,
    scopes,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: expiry(ctx, now, now),
    endedAt: null,
    userAgent: ctx.userAgent ?? null,
  });
  // The lock waits for concurrent changes of the user, and then reads the changed row.
  const { rows } = await execute(
    ctx.em,
    sql`
    with current as (
      select pk, disabled, hashed_password as hash from "user" where pk = ${user.pk} for no key update
    ), opened as (
      insert into session (sid, user_pk, key_hash, scopes, created_at, last_seen_at, expires_at, user_agent)
      select ${session.sid}::uuid, pk, ${hashKey(key)}::bytea, ${scopes}::text[], ${now}::timestamptz,
        ${now}::timestamptz, ${session.expiresAt}::timestamptz, ${session.userAgent}::text
      from current where hash = ${user.hashedPassword} and not disabled
    )
    select disabled, hash, (select count(*) from session where user_pk = ${user.pk}) as sessions from current`,
  );
  rejectIfChanged(ctx, user, rows[0]);
  // The count lacks the sessions of concurrent logins. More than 25 at the same moment could exceed
  // the maximum until the next login.
  if (Number(rows[0]?.['sessions']) < MAX_SESSIONS / 2) return { session, key };
  // A statement of its own, so that it sees the sessions of concurrent logins.
  await execute(
    ctx.em,
    sql`
    delete from session where sid in (
      select sid from session where user_pk = ${user.pk} order by created_at desc, sid desc offset ${MAX_SESSIONS})`,
  );
  return { session, key };
}

/**
 * Returns a user and one of the user's sessions, in one statement: by the session's key, or by the
 * username and an optional `sid`. The session may have ended or expired. Caches the user for this
 * request.
 */
export async function withUser(
  ctx: Context,
  by: { key: string } | { username: string; sid?: string },
): Promise<{ user?: User; session?: Session }> {
  const user = shapeOf(ctx, User);
  const session = shapeOf(ctx, Session);
  const select = sql`select ${user.columns}, ${session.columns}`;
  const [row] = await readRows(
    ctx,
    'key' in by
      ? sql`${select} from session join "user" on "user".pk = session.user_pk where session.key_hash = ${hashKey(by.key)}`
      : sql`${select} from "user" left join session on session.user_pk = "user".pk and session.sid = ${uuidOf(by.sid)}::uuid
          where "user".username = ${by.username}`,
    true,
  );
  if (!row) return {};
  const owner = user.entity(row);
  users.remember(ctx, owner);
  const sidAt = user.properties.length + session.properties.indexOf('sid');
  return {
    user: owner,
    ...(row[sidAt] !== null && { session: session.entity(row, user.properties.length) }),
  };
}

/** Returns the session of this `sid`, also if it has ended or expired, or undefined. */
export async function bySid(ctx: Context, sid: string): Promise<Session | undefined> {
  return isUuid(sid) ? one(ctx, sql`sid = ${sid}::uuid`) : undefined;
}

/** Returns whether the session has neither ended nor expired. */
export function isLive(ctx: Context, session: Session): boolean {
  return session.endedAt === null && ctx.now() < session.expiresAt;
}

/** Updates the last use and the idle expiry of the session and its row, at most once a minute. */
export async function touch(ctx: Context, session: Session): Promise<void> {
  const now = ctx.now();
  const threshold = new Date(now.getTime() - TOUCH_INTERVAL_MS);
  if (session.lastSeenAt > threshold) return;
  Object.assign(session, { lastSeenAt: now, expiresAt: expiry(ctx, session.createdAt, now) });
  await execute(
    ctx.em,
    sql`
    update session set last_seen_at = ${session.lastSeenAt}, expires_at = ${session.expiresAt}
    where sid = ${session.sid}::uuid and last_seen_at <= ${threshold}`,
  );
}

/** Ends the session of this key. Returns a list of its `sid`. */
export function endByKey(ctx: Context, key: string): Promise<string[]> {
  return end(ctx, sql`key_hash = ${hashKey(key)}`);
}

/** Ends the session of this `sid`. Returns a list of its `sid`. */
export function endBySid(ctx: Context, sid: string): Promise<string[]> {
  return end(ctx, sql`sid = ${sid}::uuid`);
}

/** Ends the session of this `sid` and user. Returns a list of its `sid`. */
export async function endOf(ctx: Context, userPk: number, sid: string): Promise<string[]> {
  return isUuid(sid) ? end(ctx, sql`sid = ${sid}::uuid and user_pk = ${userPk}`) : [];
}

/** Ends all sessions of the user except `keep`. Returns the `sid` of each. */
export function endAll(ctx: Context, userPk: number, keep?: string): Promise<string[]> {
  return end(
    ctx,
    keep === undefined
      ? sql`user_pk = ${userPk}`
      : sql`user_pk = ${userPk} and sid <> ${keep}::uuid`,
  );
}

/**
 * Ends all sessions of a user who is being disabled. Their rows stay until they expire, so that
 * their keys get INACTIVE_USER.
 */
export async function endForDisabled(ctx: Context, userPk: number): Promise<void> {
  await execute(
    ctx.em,
    sql`update session set ended_at = ${ctx.now()} where user_pk = ${userPk} and ended_at is null`,
  );
}

/** Returns the earlier end of the idle lifetime after `seenAt` and the absolute lifetime. */
export function expiry(ctx: Context, createdAt: Date, seenAt: Date): Date {
  const { sessionIdleDays, sessionLifetimeDays } = ctx.config;
  return new Date(
    Math.min(
      seenAt.getTime() + sessionIdleDays * DAY_MS,
      createdAt.getTime() + sessionLifetimeDays * DAY_MS,
    ),
  );
}

/**
 * Rotates the refresh token if its generation is the current one, and returns the session. Within
 * REFRESH_REUSE_SECONDS, the previous generation also gets the session, because its client may not
 * have received the response. Otherwise the token was used before: ends the session, because one of
 * the token's two users has stolen it (RFC 9700, 4.14.2), and returns undefined.
 *
 * The session key of the login stays valid. A key from `renewKey` becomes invalid, because the
 * thief of a refresh token may have it. Such a key has a salt, except in rows that were refreshed
 * before the column `refreshed_at` existed.
 */
export async function rotate(
  ctx: Context,
  sid: string,
  generation: number,
): Promise<Session | undefined> {
  if (!isUuid(sid)) return undefined;
  const { rows } = await execute(
    ctx.em,
    sql`
    update session set refresh_generation = refresh_generation + 1, refreshed_at = ${ctx.now()}, refresh_salt = null,
      key_hash = case when refresh_salt is null and (refresh_generation = 0 or refreshed_at is not null) then key_hash
        else ${hashKey(newSecretKey())}::bytea end
    where sid = ${sid}::uuid and refresh_generation = ${generation} and ended_at is null and expires_at > ${ctx.now()}
    returning sid`,
  );
  const session = await bySid(ctx, sid);
  if (rows.length > 0 || (session && mayRepeat(ctx, session, generation))) return session;
  await end(ctx, sql`sid = ${sid}::uuid and refresh_generation > ${generation}`);
  return undefined;
}

/**
 * Replaces the session's key and returns the new one. It is derived from the refresh token, which
 * is not stored, and a random salt that stays the same until the next rotation, so that a repeated
 * refresh returns the same key.
 */
export async function renewKey(
  ctx: Context,
  { sid, refreshGeneration }: Session,
  refreshToken: string,
): Promise<string> {
  const where = sql`sid = ${sid}::uuid and refresh_generation = ${refreshGeneration}`;
  const { rows } = await execute(
    ctx.em,
    sql`update session set refresh_salt = coalesce(refresh_salt, ${randomBytes(32)}::bytea) where ${where} returning refresh_salt`,
  );
  const salt = rows[0]?.['refresh_salt'];
  // The session has ended, or a later refresh has set its key, which stays.
  if (!(salt instanceof Uint8Array)) return newSecretKey();
  const key = createHmac('sha256', salt).update(refreshToken).digest('base64url');
  await execute(ctx.em, sql`update session set key_hash = ${hashKey(key)} where ${where}`);
  return key;
}

/** Deletes sessions that expired at least a minute ago. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from session where expires_at <= ${new Date(ctx.now().getTime() - RETENTION_MS)}`,
  );
  return affected;
}

/** Returns a page of the caller's live sessions, latest first; empty for other users. */
export function pageOf(ctx: Context, userPk: number, args: PageArgs): Promise<Page<Session>> {
  return loader(ctx, `sessions.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, listDefinition(ctx), args, { property: 'userPk', pks }),
  ).load(userPk);
}

/** Finds the caller's sessions for `node(id:)`. */
export async function findNodes(
  ctx: Context,
  keys: readonly string[],
): Promise<(Session | null)[]> {
  const sids = keys.filter((key) => isUuid(key));
  return inOrder(
    await selectEntities(ctx, Session, sql`sid = any(${sids}::uuid[]) and ${ownedByCaller(ctx)}`),
    'sid',
    keys,
  );
}

/** Returns all live sessions of a user, latest first, for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<Session[]> {
  return selectEntities(
    ctx,
    Session,
    sql`user_pk = ${userPk} and ${live(ctx)} order by created_at desc`,
  );
}

function listDefinition(ctx: Context): ListDefinition<Session> {
  return {
    name: 'sessions',
    entity: Session,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'sid', kind: 'uuid' },
    ],
    descending: true,
    where: ownedByCaller(ctx),
  };
}

function ownedByCaller(ctx: Context): Sql {
  // An API key may not read the sessions of its user.
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return sql`session.user_pk = ${owner ?? null}::bigint and ${live(ctx)}`;
}

function live(ctx: Context): Sql {
  return sql`session.ended_at is null and session.expires_at > ${ctx.now()}`;
}

function mayRepeat(ctx: Context, session: Session, generation: number): boolean {
  const { refreshGeneration, refreshedAt } = session;
  const reuseMs = ctx.config.refreshReuseSeconds * 1000;
  if (reuseMs === 0 || refreshedAt === null || refreshGeneration !== generation + 1) return false;
  return isLive(ctx, session) && ctx.now().getTime() < refreshedAt.getTime() + reuseMs;
}

function uuidOf(sid: string | undefined): string | null {
  return sid !== undefined && isUuid(sid) ? sid : null;
}

async function one(ctx: Context, where: Sql): Promise<Session | undefined> {
  const [session] = await selectEntities(ctx, Session, where);
  return session;
}

async function end(ctx: Context, where: Sql): Promise<string[]> {
  const { rows } = await execute(
    ctx.em,
    sql`
    delete from session where ${where} and ended_at is null and expires_at > ${ctx.now()} returning sid`,
  );
  return rows.map(({ sid }) => sid as string);
}
