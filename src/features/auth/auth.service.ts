import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { accountOf, record } from '../audit/audit.log.ts';
import { requireCaller, requirePerson, requireWriter } from '../../request/access.ts';
import { inTransaction, type Context, logFailure, logSuccess } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { fingerprint, hashKey } from '../../core/secret-key.ts';
import { isScope } from '../../core/scopes.ts';
import { check } from '../../core/validation.ts';
import type { User } from '../users/user.entity.ts';
import { newPassword } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import * as accounts from './user-administration.service.ts';
import { credentials, type Credentials } from './auth.rules.ts';
import { authenticate, invalidCredentials, sweepFailures, verify } from './login.ts';
import { invalidToken, readClaims, rejectDisabled, scopesIn, signIn, signOut } from './callers.ts';
import { hashPassword } from './passwords/hashing.ts';
import { Session } from './sessions/session.entity.ts';
import * as sessions from './sessions/session.service.ts';
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
  const user = await authenticate(ctx, given);
  const { session, key } = await sessions.open(ctx, user, scopes ? scopes.filter(isScope) : null);
  signIn(ctx, user, session);
  logSuccess(ctx, { event: 'auth.login', user: user.username, session: fingerprint(key) });
  return { user, session, sessionKey: key };
}

/** Returns new tokens for a session, with the scopes that the user has in it at this moment. */
export function issueTokens(ctx: Context, user: User, session: Session) {
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
 * exchanged earlier ends its session. With `sessionKey`, replaces the key of the session. Throws
 * INVALID_TOKEN and INACTIVE_USER.
 */
export async function refresh(
  ctx: Context,
  refreshToken: string,
  sessionKey?: string,
): Promise<{ user: User; session: Session }> {
  const event = 'auth.refresh';
  const read = () => readRefreshToken(ctx, refreshToken);
  const { sid, generation } = readClaims(ctx, event, read);
  const current = await sessions.bySid(ctx, sid);
  if (!current) throw invalidToken(ctx, event, 'the session has ended');
  const user = await users.byPk(ctx, current.userPk);
  rejectDisabled(ctx, user);
  const session = await sessions.rotate(ctx, sid, generation, sessionKey);
  if (!session) throw invalidToken(ctx, event, 'the token was used before');
  await sessions.touch(ctx, session);
  signIn(ctx, user, session);
  logSuccess(ctx, { event, user: user.username });
  return { user, session };
}

/**
 * As `refresh`, and replaces the session key. The new one is derived from the refresh token, so that
 * a repeated refresh returns the same key.
 */
export async function refreshAll(ctx: Context, refreshToken: string): Promise<Login> {
  const [secret = ''] = ctx.config.signingSecrets;
  const sessionKey = createHmac('sha256', secret)
    .update(`session key of ${refreshToken}`)
    .digest('base64url');
  return { ...(await refresh(ctx, refreshToken, sessionKey)), sessionKey };
}

/** Ends the session of this key. Throws INVALID_SESSION_KEY if there is none. */
export async function logoutByKey(ctx: Context, sessionKey: string): Promise<number> {
  const ended = await sessions.end(ctx, { key_hash: hashKey(sessionKey) });
  const facts = { event: 'auth.logout', session: fingerprint(sessionKey) };
  if (ended.length === 0) {
    logFailure(ctx, facts);
    throw new DomainError('INVALID_SESSION_KEY', 'Invalid session key');
  }
  logSuccess(ctx, { ...facts, user: ctx.caller?.username ?? null });
  signOut(ctx, ended);
  return ended.length;
}

/** Ends the caller's session. Throws NOT_AUTHENTICATED without one (tokens of other issuers). */
export async function logout(ctx: Context): Promise<number> {
  const { sessionId, username } = requireCaller(ctx);
  const ended = sessionId === undefined ? [] : await sessions.end(ctx, { sid: sessionId });
  if (ended.length === 0) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  logSuccess(ctx, { event: 'auth.logout', user: username });
  signOut(ctx, ended);
  return ended.length;
}

/**
 * Ends one of the caller's sessions by its global id. Throws NOT_AUTHENTICATED, FORBIDDEN, and
 * NOT_FOUND for any other id.
 */
export async function endSession(ctx: Context, id: string): Promise<number> {
  const ended = await endSessions(ctx, nodeKeyOf(Session.name, id) ?? '');
  // The same error for another user's session and for a session that does not exist.
  if (ended === 0) throw new DomainError('NOT_FOUND', 'No such session');
  return ended;
}

/**
 * Ends the caller's session `only`, or all sessions of the caller. Returns their number. Throws
 * NOT_AUTHENTICATED and FORBIDDEN.
 */
export async function endSessions(ctx: Context, only?: string): Promise<number> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username }, only);
  signOut(ctx, ended);
  logSuccess(ctx, { event: 'auth.logout', user: username, sessions: ended.length });
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
  await verify(ctx, user.username, current, user);
  const hash = await hashPassword(ctx, password);
  await inTransaction(ctx, async (tx) => {
    // Of two concurrent changes, the second one has a wrong current password.
    if (!(await users.replaceHash(tx, user.pk, hash, user.hashedPassword)))
      throw invalidCredentials(ctx, user);
    await accounts.endAccess(tx, user.pk, caller.sessionId);
    await record(tx, 'account.password_changed', accountOf(user));
  });
  logSuccess(ctx, { event: 'auth.password', user: user.username });
  return user;
}

/** Deletes expired sessions and login failures. Returns the number of rows. */
export async function sweep(ctx: Context): Promise<number> {
  return (await sessions.sweep(ctx)) + (await sweepFailures(ctx));
}
