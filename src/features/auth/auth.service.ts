import { z } from 'zod';
import { accountOf, record } from '../audit/audit.log.ts';
import { requireCaller, requirePerson, requireWriter } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { fingerprint } from '../../core/secret-key.ts';
import { isScope } from '../../core/scopes.ts';
import { check } from '../../core/validation.ts';
import type { User } from '../users/user.entity.ts';
import { newPassword } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import * as accounts from './user-administration.service.ts';
import { credentials, type Credentials } from './auth.rules.ts';
import { authenticate, invalidCredentials, replaceHash, verify } from './login/authenticate.ts';
import { rejectDisabled, scopesIn, signIn, signOut } from './caller.service.ts';
import { withHashSlot } from './passwords/hashing.ts';
import { hashPassword } from './passwords/password.ts';
import { Session } from './sessions/session.entity.ts';
import * as sessions from './sessions/session.service.ts';
import { TokenError } from './tokens/signing.ts';
import * as throttle from './login/throttle.ts';
import {
  createAccessToken,
  createRefreshToken,
  readRefreshToken,
  TOKEN_ENDPOINT_LIFETIME,
} from './tokens/token.ts';

const passwordChange = z.object({ new: newPassword });

/** A session with its user and its key, which is returned only once. */
export interface Login {
  user: User;
  session: Session;
  sessionKey: string;
}

/** The tokens of a session. */
export interface Tokens {
  accessToken: string;
  /** Lifetime of the access token, in seconds. */
  expiresIn: number;
  refreshToken: string;
  scopes: string[];
}

/**
 * Signs a user in and opens a session, limited to `scopes` if given. Unknown scopes are ignored.
 * Throws BAD_USER_INPUT, INVALID_CREDENTIALS, RATE_LIMITED, UNAVAILABLE and, only after a correct
 * password, INACTIVE_LOGIN.
 */
export async function login(
  ctx: Context,
  input: Credentials,
  scopes?: readonly string[],
): Promise<Login> {
  const given = check(credentials, input);
  throttle.rejectIfBlocked(ctx, given.username);
  const user = await withHashSlot(ctx, () => authenticate(ctx, given));
  const { session, key } = await sessions.open(ctx, user, scopes ? scopes.filter(isScope) : null);
  signIn(ctx, user, session);
  ctx.log.info(
    { event: 'auth.login', outcome: 'success', user: user.username, session: fingerprint(key) },
    'Signed in',
  );
  return { user, session, sessionKey: key };
}

/** Returns new tokens for a session, with the scopes that the user has in it at this moment. */
export function issueTokens(ctx: Context, user: User, session: Session): Tokens {
  const scopes = scopesIn(user, session);
  const { sid, refreshGeneration: generation, createdAt, refreshedAt } = session;
  const issuedAt = refreshedAt ?? createdAt;
  return {
    accessToken: createAccessToken(
      ctx,
      { username: user.username, sid, scopes },
      TOKEN_ENDPOINT_LIFETIME,
    ),
    expiresIn: TOKEN_ENDPOINT_LIFETIME,
    refreshToken: createRefreshToken(
      ctx,
      { sid, generation },
      sessions.expiry(ctx, createdAt, issuedAt),
      issuedAt,
    ),
    scopes,
  };
}

/**
 * Exchanges a refresh token for the session and its next generation of tokens. The last exchanged
 * token can be repeated for REFRESH_REUSE_SECONDS and gets the same generation. A token that was
 * exchanged earlier ends its session. Throws INVALID_TOKEN and INACTIVE_USER.
 */
export async function refresh(
  ctx: Context,
  refreshToken: string,
): Promise<{ user: User; session: Session }> {
  const { sid, generation } = readRefreshClaims(ctx, refreshToken);
  const current = await sessions.bySid(ctx, sid);
  if (!current) throw refreshRejected(ctx, 'the session has ended');
  const user = await users.byPk(ctx, current.userPk);
  rejectDisabled(ctx, user);
  const session = await sessions.rotate(ctx, sid, generation);
  if (!session) throw refreshRejected(ctx, 'the token was used before, or the session has ended');
  await sessions.touch(ctx, session);
  signIn(ctx, user, session);
  ctx.log.info(
    { event: 'auth.refresh', outcome: 'success', user: user.username },
    'Session refreshed',
  );
  return { user, session };
}

/** As `refresh`, and replaces the session key. The new key is valid until the next refresh. */
export async function refreshAll(ctx: Context, refreshToken: string): Promise<Login> {
  const { user, session } = await refresh(ctx, refreshToken);
  return { user, session, sessionKey: await sessions.renewKey(ctx, session, refreshToken) };
}

/** Ends the session of this key. Throws INVALID_SESSION_KEY if there is none. */
export async function logoutByKey(ctx: Context, sessionKey: string): Promise<number> {
  const ended = await sessions.endByKey(ctx, sessionKey);
  if (ended.length === 0) {
    ctx.log.info(
      { event: 'auth.logout', outcome: 'failure', user: null, session: fingerprint(sessionKey) },
      'Session key rejected',
    );
    throw new DomainError('INVALID_SESSION_KEY', 'Invalid session key');
  }
  signOut(ctx, ended);
  ctx.log.info(
    {
      event: 'auth.logout',
      outcome: 'success',
      user: ctx.caller?.username ?? null,
      session: fingerprint(sessionKey),
    },
    'Signed out',
  );
  return ended.length;
}

/** Ends the caller's session. Throws NOT_AUTHENTICATED without one (tokens of other issuers). */
export async function logout(ctx: Context): Promise<number> {
  const { sessionId, username } = requireCaller(ctx);
  const ended = sessionId === undefined ? [] : await sessions.endBySid(ctx, sessionId);
  if (ended.length === 0) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  signOut(ctx, ended);
  ctx.log.info({ event: 'auth.logout', outcome: 'success', user: username }, 'Signed out');
  return ended.length;
}

/**
 * Ends one of the caller's sessions by its global id. Throws NOT_AUTHENTICATED, FORBIDDEN, and
 * NOT_FOUND for any other id.
 */
export async function endSession(ctx: Context, id: string): Promise<number> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(
    ctx,
    { pk, username },
    { only: nodeKeyOf(Session.name, id) ?? '' },
  );
  // The same error for another user's session and for a session that does not exist.
  if (ended.length === 0) throw new DomainError('NOT_FOUND', 'No such session');
  signOut(ctx, ended);
  ctx.log.info(
    { event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length },
    'Session ended',
  );
  return ended.length;
}

/** Ends the caller's other sessions. Returns their number. Throws NOT_AUTHENTICATED, FORBIDDEN. */
export async function endOtherSessions(ctx: Context): Promise<number> {
  const { pk, username, sessionId } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username }, { keep: sessionId });
  ctx.log.info(
    { event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length },
    'All other sessions ended',
  );
  return ended.length;
}

/** Ends all sessions of the caller. Returns their number. Throws NOT_AUTHENTICATED, FORBIDDEN. */
export async function logoutEverywhere(ctx: Context): Promise<number> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username });
  signOut(ctx, ended);
  ctx.log.info(
    { event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length },
    'All sessions ended',
  );
  return ended.length;
}

/**
 * Sets the caller's password and ends the caller's other sessions. Throws NOT_AUTHENTICATED,
 * BAD_USER_INPUT, FORBIDDEN, INVALID_CREDENTIALS, RATE_LIMITED and UNAVAILABLE.
 */
export async function changePassword(ctx: Context, current: string, next: string): Promise<User> {
  const caller = requirePerson(ctx);
  requireWriter(ctx);
  const { new: password } = check(passwordChange, { new: next });
  const user = await users.byPk(ctx, caller.pk);
  const hash = await withHashSlot(ctx, async () => {
    await verify(ctx, user.username, current, user);
    return hashPassword(ctx, password);
  });
  await inTransaction(ctx, async (tx) => {
    // Of two concurrent changes, the second one has a wrong current password.
    if (!(await replaceHash(tx, user, hash))) throw invalidCredentials(ctx, user);
    await accounts.deletePasswordResets(tx, user.pk);
    await sessions.endAll(tx, user.pk, caller.sessionId);
    await record(tx, 'account.password_changed', accountOf(user));
  });
  ctx.log.info(
    { event: 'auth.password', outcome: 'success', user: user.username },
    'Password changed',
  );
  return user;
}

/** Deletes expired sessions and login failures. Returns the number of rows. */
export async function sweep(ctx: Context): Promise<number> {
  return (await sessions.sweep(ctx)) + (await throttle.sweep(ctx));
}

function readRefreshClaims(ctx: Context, token: string) {
  try {
    return readRefreshToken(ctx, token);
  } catch (error) {
    if (error instanceof TokenError) throw refreshRejected(ctx, error.message);
    throw error;
  }
}

function refreshRejected(ctx: Context, reason: string): DomainError {
  ctx.log.info(
    { event: 'auth.refresh', outcome: 'failure', user: null, reason },
    'Refresh token rejected',
  );
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}
