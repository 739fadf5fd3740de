import type { Caller, Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { includesWriteScope, type Scope } from '../../core/scopes.ts';
import type { User } from '../users/user.entity.ts';
import * as sessions from './sessions/session.service.ts';
import type { Session } from './sessions/session.entity.ts';
import { TokenError } from './tokens/signing.ts';
import { readAccessToken, type ReadClaims } from './tokens/token.ts';

/** Returns the caller with this access token. Throws INVALID_TOKEN and INACTIVE_USER. */
export async function callerByToken(ctx: Context, token: string): Promise<Caller> {
  const claims = readClaims(ctx, token);
  const { user, session } = await sessions.withUser(ctx, claims);
  if (!user) throw invalidToken(ctx, 'no such user');
  // Checked before the session: disabling also ends sessions, and the error must be INACTIVE_USER.
  rejectDisabled(ctx, user);
  const { until } = claims;
  if (claims.sid === undefined)
    return { ...callerOf(user, undefined, claims.scopes), expiresAt: until };
  if (!session || !sessions.isLive(ctx, session)) throw invalidToken(ctx, 'the session has ended');
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
export function signIn(ctx: Context, user: User, session: Session): void {
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
  ctx.log.info(
    { event: 'auth.inactive', outcome: 'failure', user: user.username },
    'Request of a disabled user rejected',
  );
  throw new DomainError('INACTIVE_USER', 'Inactive user');
}

/** Returns the user's scopes, limited to those of the session if the session has any. */
export function scopesIn(user: User, session: Session): Scope[] {
  const { scopes } = session;
  return scopes ? user.scopes.filter((scope) => scopes.includes(scope)) : user.scopes;
}

function callerOf(user: User, session?: Session, narrowed?: Scope[]): Caller {
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

function readClaims(ctx: Context, token: string): ReadClaims {
  try {
    return readAccessToken(ctx, token);
  } catch (error) {
    if (error instanceof TokenError) throw invalidToken(ctx, error.message);
    throw error;
  }
}

function invalidToken(ctx: Context, reason: string): DomainError {
  ctx.log.info(
    { event: 'auth.token', outcome: 'failure', user: null, reason },
    'Access token rejected',
  );
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}

function notAuthenticated(ctx: Context, reason: string): DomainError {
  ctx.log.info(
    { event: 'auth.session', outcome: 'failure', user: null, reason },
    'Session key rejected',
  );
  return new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
}
