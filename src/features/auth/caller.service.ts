import type { Caller, Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { includesWriting, type Scope } from '../../core/scopes.ts';
import type { User } from '../users/user.entity.ts';
import * as sessions from './sessions/session.service.ts';
import type { Session } from './sessions/session.entity.ts';
import { TokenError } from './tokens/signing.ts';
import { readAccessToken, type ReadClaims } from './tokens/token.ts';

/** Who bears this access token. Throws INVALID_TOKEN, whatever is wrong with it, and INACTIVE_USER. */
export async function callerByToken(ctx: Context, token: string): Promise<Caller> {
  const claims = readClaims(ctx, token);
  const { user, session } = await sessions.withUser(ctx, claims);
  if (!user) throw invalidToken(ctx, 'no such user');
  // Before the session: disabling ends the sessions, too, and must not turn this answer into another.
  refuseDisabled(ctx, user);
  const { until } = claims;
  if (claims.sid === undefined) return { ...callerOf(user, undefined, claims.scopes), until };
  if (!session || !sessions.isLive(ctx, session)) throw invalidToken(ctx, 'the session has ended');
  await sessions.touch(ctx, session);
  return { ...callerOf(user, session, claims.scopes), until };
}

/** Whose session this key opens. Throws NOT_AUTHENTICATED and INACTIVE_USER. */
export async function callerBySessionKey(ctx: Context, key: string): Promise<Caller> {
  const { user, session } = await sessions.withUser(ctx, { key });
  if (!user || !session) throw notAuthenticated(ctx, 'no such session');
  refuseDisabled(ctx, user);
  if (!sessions.isLive(ctx, session)) throw notAuthenticated(ctx, 'the session has ended');
  await sessions.touch(ctx, session);
  return callerOf(user, session);
}

/** Makes the user the caller for what is left of this request, such as the fields below a login. */
export function signIn(ctx: Context, user: User, session: Session): void {
  ctx.caller = callerOf(user, session);
  // What loaders hold was read with other eyes.
  ctx.loaders.clear();
}

/** Takes the caller out of what is left of this request, if this is the session that has ended. */
export function signOut(ctx: Context, ended: readonly string[]): void {
  if (ctx.caller?.sessionId === undefined || !ended.includes(ctx.caller.sessionId)) return;
  delete ctx.caller;
  ctx.loaders.clear();
}

/** Throws INACTIVE_USER for a user who is disabled. */
export function refuseDisabled(ctx: Context, user: User): void {
  if (!user.disabled) return;
  ctx.log.info({ event: 'auth.inactive', outcome: 'failure', user: user.username }, 'a disabled user was refused');
  throw new DomainError('INACTIVE_USER', 'Inactive user');
}

/** What the user may do in this session: what the user holds and the session does not leave out. */
export function scopesIn(user: User, session: Session): Scope[] {
  const { scopes } = session;
  return scopes ? user.scopes.filter((scope) => scopes.includes(scope)) : user.scopes;
}

function callerOf(user: User, session?: Session, narrowed?: Scope[]): Caller {
  const held = session ? scopesIn(user, session) : user.scopes;
  const scopes = new Set(narrowed ? held.filter((scope) => narrowed.includes(scope)) : held);
  // Our own tokens, and no others, are of a session: they name what it left when they were issued, which may have been all.
  const isNarrowed = session ? session.scopes !== null : narrowed !== undefined;
  return {
    pk: user.pk,
    username: user.username,
    scopes,
    ...(session && { sessionId: session.sid }),
    ...(isNarrowed && !includesWriting(scopes) && { isReadOnly: true }),
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
  ctx.log.info({ event: 'auth.token', outcome: 'failure', user: null, reason }, 'an access token was refused');
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}

function notAuthenticated(ctx: Context, reason: string): DomainError {
  ctx.log.info({ event: 'auth.session', outcome: 'failure', user: null, reason }, 'a session key was refused');
  return new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
}
