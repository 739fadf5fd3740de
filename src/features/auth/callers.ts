import { sql } from 'kysely';
import { type Caller, type Context, logFailure } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { includesWriteScope, type Scope } from '../../core/scopes.ts';
import { readRows, type Reader } from '../../database/kysely.ts';
import type { User } from '../users/user.entity.ts';
import * as sessions from './sessions/session.service.ts';
import { readAccessToken, TokenError } from './tokens/token.ts';

/** Returns the caller with this access token. Throws INVALID_TOKEN and INACTIVE_USER. */
export async function callerByToken(ctx: Context, token: string): Promise<Caller> {
  const claims = readClaims(ctx, 'auth.token', () => readAccessToken(ctx, token));
  const { user, session } = await sessions.withUser(ctx, claims);
  if (!user) throw invalidToken(ctx, 'auth.token', 'no such user');
  // Checked before the session: disabling also ends sessions, and the error must be INACTIVE_USER.
  rejectDisabled(ctx, user);
  const { until } = claims;
  if (claims.sid === undefined)
    return { ...callerOf(user, undefined, claims.scopes), expiresAt: until };
  if (!session || !sessions.isLive(ctx, session))
    throw invalidToken(ctx, 'auth.token', 'the session has ended');
  await sessions.touch(ctx, session);
  return { ...callerOf(user, session, claims.scopes), expiresAt: until };
}

/** Returns the caller with this session key. Throws NOT_AUTHENTICATED and INACTIVE_USER. */
export async function callerBySessionKey(ctx: Context, key: string): Promise<Caller> {
  const { user, session } = await sessions.withUser(ctx, { key });
  if (!user || !session) throw notAuthenticated(ctx, 'no such session');
  rejectDisabled(ctx, user);
  if (!sessions.isLive(ctx, session)) throw notAuthenticated(ctx, 'the session has ended');
  await sessions.touch(ctx, session);
  return callerOf(user, session);
}

/** Makes the user the caller for the rest of the request, such as the fields below a login. */
export function signIn(ctx: Context, user: User, session: sessions.LiveSession): void {
  ctx.caller = callerOf(user, session);
  // The loaders cache rows that were read for the previous caller.
  ctx.loaders.clear();
}

/** Removes the caller for the rest of the request if the caller's session is among the ended. */
export function signOut(ctx: Context, ended: readonly string[]): void {
  if (ctx.caller?.sessionId === undefined || !ended.includes(ctx.caller.sessionId)) return;
  delete ctx.caller;
  ctx.loaders.clear();
}

/** Throws INACTIVE_USER if the user is disabled. */
export function rejectDisabled(ctx: Context, user: User): void {
  if (!user.disabled) return;
  logFailure(ctx, { event: 'auth.inactive', user: user.username });
  throw new DomainError('INACTIVE_USER', 'Inactive user');
}

/** Returns the user's scopes, limited to those of the session if the session has any. */
export function scopesIn(user: User, session: sessions.LiveSession): Scope[] {
  const { scopes } = session;
  return scopes ? user.scopes.filter((scope) => scopes.includes(scope)) : user.scopes;
}

function callerOf(user: User, session?: sessions.LiveSession, narrowed?: Scope[]): Caller {
  const available = session ? scopesIn(user, session) : user.scopes;
  const scopes = new Set(
    narrowed ? available.filter((scope) => narrowed.includes(scope)) : available,
  );
  // Only our own tokens have a session. They list the scopes that the session allowed when they
  // were issued, possibly all of the user's, so the session decides whether the caller is narrowed.
  const isNarrowed = session ? session.scopes !== null : narrowed !== undefined;
  return {
    pk: user.pk,
    username: user.username,
    scopes,
    ...(session && { sessionId: session.sid }),
    ...(isNarrowed && !includesWriteScope(scopes) && { isReadOnly: true }),
  };
}

/** Returns the claims that `read` returns. Throws INVALID_TOKEN for a TokenError. */
export function readClaims<T>(ctx: Context, event: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof TokenError ? invalidToken(ctx, event, error.message) : error;
  }
}

/** Logs the reason, and returns the error, which does not contain it. */
export function invalidToken(ctx: Context, event: string, reason: string): DomainError {
  logFailure(ctx, { event, reason });
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}

/**
 * Returns the callers whose credentials are no longer valid, each with the error for a request with
 * them. Checks all in one statement.
 */
export async function findExpired(
  ctx: Reader & Pick<Context, 'now'>,
  callers: readonly Caller[],
): Promise<Map<Caller, DomainError>> {
  const now = ctx.now();
  const ended = new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  const isOver = ({ expiresAt }: Caller) => expiresAt !== undefined && expiresAt <= now;
  const expired = new Map(callers.filter(isOver).map((caller) => [caller, ended]));
  const users = callers.map(({ pk }) => pk);
  const sids = callers.map(({ sessionId = null }) => sessionId);
  const keyIds = callers.map(({ apiKeyId = null }) => apiKeyId);
  const rows = await readRows(
    ctx,
    sql<{ number: number; is_disabled: boolean | null }>`
    select number, "user".disabled as is_disabled
    from unnest(${users}::bigint[], ${sids}::uuid[], ${keyIds}::uuid[]) with ordinality as given (user_pk, sid, key_id, number)
    left join "user" on "user".pk = user_pk
    left join session on session.sid = given.sid and ended_at is null and session.expires_at > ${now}
    left join api_key on api_key.key_id = given.key_id
    where "user".pk is null or "user".disabled
      or given.sid is not null and session.sid is null
      or given.key_id is not null and api_key.key_id is null`,
  );
  for (const { number, is_disabled: isDisabled } of rows) {
    const caller = callers[number - 1];
    const error = isDisabled ? new DomainError('INACTIVE_USER', 'Inactive user') : ended;
    if (caller) expired.set(caller, error);
  }
  return expired;
}

function notAuthenticated(ctx: Context, reason: string): DomainError {
  logFailure(ctx, { event: 'auth.session', reason });
  return new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
}
