import { z } from 'zod';
import { accountOf, note } from '../audit/audit.log.ts';
import { requireCaller, requirePerson, requireWriter } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { nodeKeyOf } from '../../api/node.ts';
import { printOf } from '../../core/secret-key.ts';
import { isScope } from '../../core/scopes.ts';
import { check } from '../../core/validation.ts';
import type { User } from '../users/user.entity.ts';
import { newPassword } from '../users/user.rules.ts';
import * as users from '../users/user.service.ts';
import * as accounts from './user-administration.service.ts';
import { credentials, type Credentials } from './auth.rules.ts';
import { authenticate, invalidCredentials, refuseChanged, replaceHash, verify } from './login/authenticate.ts';
import { refuseDisabled, scopesIn, signIn, signOut } from './caller.service.ts';
import { inTurn } from './passwords/hashing.ts';
import { hashPassword } from './passwords/password.ts';
import { Session } from './sessions/session.entity.ts';
import * as sessions from './sessions/session.service.ts';
import { TokenError } from './tokens/signing.ts';
import * as throttle from './login/throttle.ts';
import { createAccessToken, createRefreshToken, readRefreshToken, TOKEN_ENDPOINT_LIFETIME } from './tokens/token.ts';

const passwordChange = z.object({ new: newPassword });

/** An open session with the user and the key, which is shown once. */
export interface Login {
  user: User;
  session: Session;
  sessionKey: string;
}

/** The tokens of a session. */
export interface Tokens {
  accessToken: string;
  /** Seconds. */
  expiresIn: number;
  refreshToken: string;
  scopes: string[];
}

/**
 * Signs a user in and opens a session. With `scopes`, the session may do no more than those; names that are no scope of
 * ours add nothing. Throws BAD_USER_INPUT, INVALID_CREDENTIALS, RATE_LIMITED, UNAVAILABLE and, after a right password only, INACTIVE_LOGIN.
 */
export async function login(ctx: Context, input: Credentials, scopes?: readonly string[]): Promise<Login> {
  const given = check(credentials, input);
  throttle.refuseRefused(ctx, given.username);
  const user = await inTurn(ctx, () => authenticate(ctx, given));
  const { session, key } = await inTransaction(ctx, async (tx) => {
    const opened = await sessions.open(tx, user, scopes ? scopes.filter(isScope) : null);
    await refuseChanged(tx, user);
    return opened;
  });
  signIn(ctx, user, session);
  ctx.log.info({ event: 'auth.login', outcome: 'success', user: user.username, session: printOf(key) }, 'signed in');
  return { user, session, sessionKey: key };
}

/** New tokens for a session, good for what the user may do in it at this moment. */
export function issueTokens(ctx: Context, user: User, session: Session): Tokens {
  const scopes = scopesIn(user, session);
  const { sid, refreshGeneration: generation, createdAt, refreshedAt } = session;
  const issuedAt = refreshedAt ?? createdAt;
  return {
    accessToken: createAccessToken(ctx, { username: user.username, sid, scopes }, TOKEN_ENDPOINT_LIFETIME),
    expiresIn: TOKEN_ENDPOINT_LIFETIME,
    refreshToken: createRefreshToken(ctx, { sid, generation }, sessions.expiry(ctx, createdAt, issuedAt), issuedAt),
    scopes,
  };
}

/**
 * Exchanges a refresh token for new tokens of the same session. The last one that was exchanged may be sent again for
 * REFRESH_REUSE_SECONDS and gets the same generation; every other that was exchanged before ends its session. Throws
 * INVALID_TOKEN and INACTIVE_USER.
 */
export async function refresh(ctx: Context, refreshToken: string): Promise<{ user: User; session: Session }> {
  const { sid, generation } = readRefreshClaims(ctx, refreshToken);
  const current = await sessions.bySid(ctx, sid);
  if (!current) throw refreshRefused(ctx, 'the session has ended');
  const user = await users.byPk(ctx, current.userPk);
  refuseDisabled(ctx, user);
  const session = await sessions.rotate(ctx, sid, generation);
  if (!session) throw refreshRefused(ctx, 'used before, or the session has ended');
  await sessions.touch(ctx, session);
  signIn(ctx, user, session);
  ctx.log.info({ event: 'auth.refresh', outcome: 'success', user: user.username }, 'a session was refreshed');
  return { user, session };
}

/** As `refresh`, and with a new session key in place of the old one. It is valid until the next refresh. */
export async function refreshAll(ctx: Context, refreshToken: string): Promise<Login> {
  const { user, session } = await refresh(ctx, refreshToken);
  return { user, session, sessionKey: await sessions.renewKey(ctx, session, refreshToken) };
}

/** Ends the session of this key. Throws INVALID_SESSION_KEY where there is none. */
export async function logoutByKey(ctx: Context, sessionKey: string): Promise<number> {
  const ended = await sessions.endByKey(ctx, sessionKey);
  if (ended.length === 0) {
    ctx.log.info({ event: 'auth.logout', outcome: 'failure', user: null, session: printOf(sessionKey) }, 'a session key was refused');
    throw new DomainError('INVALID_SESSION_KEY', 'Invalid session key');
  }
  signOut(ctx, ended);
  ctx.log.info(
    { event: 'auth.logout', outcome: 'success', user: ctx.caller?.username ?? null, session: printOf(sessionKey) },
    'signed out',
  );
  return ended.length;
}

/** Ends the caller's own session. Throws NOT_AUTHENTICATED without one: a token of another issuer has no session here. */
export async function logout(ctx: Context): Promise<number> {
  const { sessionId, username } = requireCaller(ctx);
  const ended = sessionId === undefined ? [] : await sessions.endBySid(ctx, sessionId);
  if (ended.length === 0) throw new DomainError('NOT_AUTHENTICATED', 'Not authenticated');
  signOut(ctx, ended);
  ctx.log.info({ event: 'auth.logout', outcome: 'success', user: username }, 'signed out');
  return ended.length;
}

/** Ends one of the caller's own sessions by its global id. Throws NOT_AUTHENTICATED, FORBIDDEN, and NOT_FOUND for any other id. */
export async function endSession(ctx: Context, id: string): Promise<number> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username }, { only: nodeKeyOf(Session.name, id) ?? '' });
  // Another user's session is not told from one that never was.
  if (ended.length === 0) throw new DomainError('NOT_FOUND', 'No such session');
  signOut(ctx, ended);
  ctx.log.info({ event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length }, 'ended a session');
  return ended.length;
}

/** Ends all sessions of the caller but this one. Returns how many. Throws NOT_AUTHENTICATED and FORBIDDEN. */
export async function endOtherSessions(ctx: Context): Promise<number> {
  const { pk, username, sessionId } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username }, { keep: sessionId });
  ctx.log.info({ event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length }, 'ended all other sessions');
  return ended.length;
}

/** Ends all sessions of the caller, this one too. Returns how many. Throws NOT_AUTHENTICATED and FORBIDDEN. */
export async function logoutEverywhere(ctx: Context): Promise<number> {
  const { pk, username } = requirePerson(ctx);
  requireWriter(ctx);
  const ended = await accounts.endSessions(ctx, { pk, username });
  signOut(ctx, ended);
  ctx.log.info({ event: 'auth.logout', outcome: 'success', user: username, sessions: ended.length }, 'signed out everywhere');
  return ended.length;
}

/**
 * Sets the caller's password and ends the caller's other sessions. Throws BAD_USER_INPUT, FORBIDDEN, INVALID_CREDENTIALS, RATE_LIMITED,
 * UNAVAILABLE.
 */
export async function changePassword(ctx: Context, current: string, next: string): Promise<User> {
  const caller = requirePerson(ctx);
  requireWriter(ctx);
  const { new: password } = check(passwordChange, { new: next });
  const user = await users.byPk(ctx, caller.pk);
  const hash = await inTurn(ctx, async () => {
    await verify(ctx, user.username, current, user);
    return hashPassword(ctx, password);
  });
  await inTransaction(ctx, async (tx) => {
    await accounts.forgetResets(tx, user.pk);
    // Only if nobody else changed it meanwhile: of two changes at once, the second has named a wrong password.
    if (!(await replaceHash(tx, user, hash))) throw invalidCredentials(ctx, user);
    await sessions.endAll(tx, user.pk, caller.sessionId);
    await note(tx, 'account.password_changed', accountOf(user));
  });
  ctx.log.info({ event: 'auth.password', outcome: 'success', user: user.username }, 'password changed');
  return user;
}

/** Deletes what has expired: sessions, and failures of logins. Returns how much. */
export async function sweep(ctx: Context): Promise<number> {
  return (await sessions.sweep(ctx)) + (await throttle.sweep(ctx));
}

function readRefreshClaims(ctx: Context, token: string) {
  try {
    return readRefreshToken(ctx, token);
  } catch (error) {
    if (error instanceof TokenError) throw refreshRefused(ctx, error.message);
    throw error;
  }
}

function refreshRefused(ctx: Context, reason: string): DomainError {
  ctx.log.info({ event: 'auth.refresh', outcome: 'failure', user: null, reason }, 'a refresh token was refused');
  return new DomainError('INVALID_TOKEN', 'Could not validate credentials');
}
