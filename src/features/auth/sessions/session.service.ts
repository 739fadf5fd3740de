import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { Context } from '../../../request/context.ts';
import { loader } from '../../../request/loaders.ts';
import { readPagesOf, type Listing, type Page, type PageArgs } from '../../../pagination/keyset.ts';
import { hashKey, newKey } from '../../../core/secret-key.ts';
import { inOrder, readRows, selectEntities, shapeOf } from '../../../database/row-mapper.ts';
import type { Scope } from '../../../core/scopes.ts';
import { execute, sql, type Sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import { isUuid } from '../../../core/uuid.ts';
import { User } from '../../users/user.entity.ts';
import * as users from '../../users/user.service.ts';
import { invalidCredentials } from '../login/authenticate.ts';
import { Session } from './session.entity.ts';

/** A session in use is written down this often, in ms, not at each request. */
const TOUCH_EVERY_MS = 60_000;
/** How long an expired session stays, in ms: whoever listens is told by its row that it has expired, and was not ended. */
const KEPT_MS = 60_000;
/** How many live sessions a user may have; opening one more drops the oldest. */
const MAX_SESSIONS = 50;

/**
 * Opens a session for the user, narrowed to the scopes where some are named, in the transaction of the caller. The key is
 * shown once: only its hash is stored. Beyond 50, the user's oldest sessions are dropped. Throws INVALID_CREDENTIALS for a user who
 * has been deleted meanwhile.
 */
export async function open(ctx: Context, user: User, scopes: Scope[] | null): Promise<{ session: Session; key: string }> {
  // One login of a user at a time: each counts the sessions that there are.
  const { rows } = await execute(ctx.em, sql`select pk from "user" where pk = ${user.pk} for no key update`);
  if (rows.length === 0) throw invalidCredentials(ctx, user);
  const key = newKey();
  const now = ctx.now();
  const session = Object.assign(new Session(), {
    sid: randomUUID(),
    userPk: user.pk,
    keyHash: hashKey(key),
    scopes,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: expiry(ctx, now, now),
    endedAt: null,
    userAgent: ctx.userAgent ?? null,
  });
  await ctx.em.persist(session).flush();
  await execute(
    ctx.em,
    sql`
    delete from session where sid in (
      select sid from session where user_pk = ${user.pk} order by created_at desc, sid desc offset ${MAX_SESSIONS})`,
  );
  return { session, key };
}

/**
 * A user and one of the user's sessions, in one statement: by the session's key, or by the username and, where there is one, the
 * `sid`. The session may have ended or expired. What is found of the user counts as read for this request.
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
  const found = user.entity(row);
  users.remember(ctx, found);
  const sidAt = user.properties.length + session.properties.indexOf('sid');
  return { user: found, ...(row[sidAt] !== null && { session: session.entity(row, user.properties.length) }) };
}

/** The session of this `sid`, ended or expired or not, or undefined. */
export async function bySid(ctx: Context, sid: string): Promise<Session | undefined> {
  return isUuid(sid) ? one(ctx, sql`sid = ${sid}::uuid`) : undefined;
}

/** Whether the session is neither ended nor expired. */
export function isLive(ctx: Context, session: Session): boolean {
  return session.endedAt === null && ctx.now() < session.expiresAt;
}

/** Notes that the session is in use and moves its idle end, there and in the database, at most once a minute. */
export async function touch(ctx: Context, session: Session): Promise<void> {
  const now = ctx.now();
  const before = new Date(now.getTime() - TOUCH_EVERY_MS);
  if (session.lastSeenAt > before) return;
  Object.assign(session, { lastSeenAt: now, expiresAt: expiry(ctx, session.createdAt, now) });
  await execute(
    ctx.em,
    sql`
    update session set last_seen_at = ${session.lastSeenAt}, expires_at = ${session.expiresAt}
    where sid = ${session.sid}::uuid and last_seen_at <= ${before}`,
  );
}

/** Ends the session of this key. Returns the `sid` of what ended. */
export function endByKey(ctx: Context, key: string): Promise<string[]> {
  return end(ctx, sql`key_hash = ${hashKey(key)}`);
}

/** Ends this session. Returns the `sid` of what ended. */
export function endBySid(ctx: Context, sid: string): Promise<string[]> {
  return end(ctx, sql`sid = ${sid}::uuid`);
}

/** Ends this session of this user. Returns the `sid` of what ended. */
export async function endOf(ctx: Context, userPk: number, sid: string): Promise<string[]> {
  return isUuid(sid) ? end(ctx, sql`sid = ${sid}::uuid and user_pk = ${userPk}`) : [];
}

/** Ends all sessions of the user but the one to keep. Returns the `sid` of each that ended. */
export function endAll(ctx: Context, userPk: number, keep?: string): Promise<string[]> {
  return end(ctx, keep === undefined ? sql`user_pk = ${userPk}` : sql`user_pk = ${userPk} and sid <> ${keep}::uuid`);
}

/** Ends all sessions of a user who is being disabled; their rows stay until they expire, and say why their keys are refused. */
export async function endForDisabled(ctx: Context, userPk: number): Promise<void> {
  await execute(ctx.em, sql`update session set ended_at = ${ctx.now()} where user_pk = ${userPk} and ended_at is null`);
}

/** Returns when a session of this age ends if it is not used after `seenAt`: at the end of its idle or of its absolute lifetime. */
export function expiry(ctx: Context, createdAt: Date, seenAt: Date): Date {
  const { sessionIdleDays, sessionLifetimeDays } = ctx.config;
  return new Date(Math.min(seenAt.getTime() + sessionIdleDays * DAY_MS, createdAt.getTime() + sessionLifetimeDays * DAY_MS));
}

/**
 * Rotates the refresh token if its generation is the current one. Within REFRESH_REUSE_SECONDS, the generation before gets the
 * current one once more: its client may not have received the response. Returns the session. Returns undefined where the token
 * was used before, and ends the session, because one of its two users has stolen it (RFC 9700, 4.14.2).
 *
 * The session key of the login stays valid. A key from `renewKey` ends, because whoever stole a refresh token may have it. Such
 * a key has a salt, unless the row has been refreshed but has no time of that: then it is older than these columns.
 */
export async function rotate(ctx: Context, sid: string, generation: number): Promise<Session | undefined> {
  if (!isUuid(sid)) return undefined;
  const { rows } = await execute(
    ctx.em,
    sql`
    update session set refresh_generation = refresh_generation + 1, refreshed_at = ${ctx.now()}, refresh_salt = null,
      key_hash = case when refresh_salt is null and (refresh_generation = 0 or refreshed_at is not null) then key_hash
        else ${hashKey(newKey())}::bytea end
    where sid = ${sid}::uuid and refresh_generation = ${generation} and ended_at is null and expires_at > ${ctx.now()}
    returning sid`,
  );
  const session = await bySid(ctx, sid);
  if (rows.length > 0 || (session && mayRepeat(ctx, session, generation))) return session;
  await end(ctx, sql`sid = ${sid}::uuid and refresh_generation > ${generation}`);
  return undefined;
}

/**
 * Replaces the session's key and returns the new one. It is made of the refresh token, which is not stored, and of random bits
 * that are the same until the next rotation, so that a repeated refresh gives the same key.
 */
export async function renewKey(ctx: Context, { sid, refreshGeneration }: Session, refreshToken: string): Promise<string> {
  const where = sql`sid = ${sid}::uuid and refresh_generation = ${refreshGeneration}`;
  const { rows } = await execute(
    ctx.em,
    sql`update session set refresh_salt = coalesce(refresh_salt, ${randomBytes(32)}::bytea) where ${where} returning refresh_salt`,
  );
  const salt = rows[0]?.['refresh_salt'];
  // The session has ended, or was refreshed once more: then the key of that is not replaced.
  if (!(salt instanceof Uint8Array)) return newKey();
  const key = createHmac('sha256', salt).update(refreshToken).digest('base64url');
  await execute(ctx.em, sql`update session set key_hash = ${hashKey(key)} where ${where}`);
  return key;
}

/** Deletes what has been expired for a minute. Returns how many. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from session where expires_at <= ${new Date(ctx.now().getTime() - KEPT_MS)}`);
  return affected;
}

/** The live sessions of users as the caller may see them, latest first, in pages: the caller's own, none of others. */
export function pageOf(ctx: Context, userPk: number, args: PageArgs): Promise<Page<Session>> {
  return loader(ctx, `sessions.pageOf ${JSON.stringify(args)}`, (pks: readonly number[]) =>
    readPagesOf(ctx, visible(ctx), args, { property: 'userPk', pks }),
  ).load(userPk);
}

/** Finds sessions for `node(id:)`: the caller's own. */
export async function findNodes(ctx: Context, keys: readonly string[]): Promise<(Session | null)[]> {
  const sids = keys.filter((key) => isUuid(key));
  return inOrder(await selectEntities(ctx, Session, sql`sid = any(${sids}::uuid[]) and ${mine(ctx)}`), 'sid', keys);
}

/** All live sessions of a user, latest first: for the operator. */
export function listOf(ctx: Context, userPk: number): Promise<Session[]> {
  return selectEntities(ctx, Session, sql`user_pk = ${userPk} and ${live(ctx)} order by created_at desc`);
}

function visible(ctx: Context): Listing<Session> {
  return {
    name: 'sessions',
    entity: Session,
    order: [
      { property: 'createdAt', kind: 'time' },
      { property: 'sid', kind: 'uuid' },
    ],
    descending: true,
    where: mine(ctx),
  };
}

function mine(ctx: Context): Sql {
  // A machine is told nothing of where its owner is signed in.
  const owner = ctx.caller?.apiKeyId === undefined ? ctx.caller?.pk : undefined;
  return sql`session.user_pk = ${owner ?? null}::integer and ${live(ctx)}`;
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
