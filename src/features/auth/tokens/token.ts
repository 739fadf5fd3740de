import { randomUUID } from 'node:crypto';
import type { Context } from '../../../request/context.ts';
import { isScope, type Scope } from '../../../core/scopes.ts';
import { isStorable } from '../../../core/text.ts';
import { readSigned, sign, TokenError, type Signed } from './signing.ts';

/** Lifetime of the token endpoints' access tokens, in seconds (interface, 5.1.5). */
export const TOKEN_ENDPOINT_LIFETIME = 30 * 60;
/** Lifetime of tokens whose issuer specifies none, in seconds (interface, 5.1.5). */
const DEFAULT_LIFETIME = 15 * 60;

/** Maximum time of a Date, in seconds since 1970 (ECMAScript, 21.4.1.1). */
const MAX_SECONDS = 8.64e12;

const ACCESS_TYPE = 'JWT';
const REFRESH_TYPE = 'refresh+jwt';
/** Maximum length of a token, in characters. */
const MAX_TOKEN_LENGTH = 8_192;
/** Maximum time by which `iat` may be in the future, in seconds: other issuers' clocks differ. */
const CLOCK_SKEW = 60;

/** Claims of an access token about its bearer. */
export interface AccessClaims {
  username: string;
  /** Absent in tokens of another issuer that shares the secret. */
  sid?: string;
  /** Absent if the token does not limit the user's scopes. */
  scopes?: Scope[];
}

/** Claims of an access token, and when it expires. */
export interface ReadClaims extends AccessClaims {
  until: Date;
}

/** Claims of a refresh token: the session, and the number of its refreshes so far. */
export interface RefreshClaims {
  sid: string;
  generation: number;
}

/** Returns a signed access token (RFC 7519) that expires after `lifetime` seconds. */
export function createAccessToken(
  ctx: Context,
  claims: AccessClaims,
  lifetime: number = DEFAULT_LIFETIME,
): string {
  const { username, sid, scopes } = claims;
  const iat = seconds(ctx.now());
  const times = { iat, exp: iat + lifetime, jti: randomUUID() };
  return issue(ctx, ACCESS_TYPE, {
    sub: username,
    ...(sid && { sid }),
    ...(scopes && { scopes }),
    ...times,
  });
}

/** Returns a signed refresh token: the same one for the same claims and times. */
export function createRefreshToken(
  ctx: Context,
  { sid, generation }: RefreshClaims,
  expiresAt: Date,
  issuedAt: Date,
): string {
  return issue(ctx, REFRESH_TYPE, {
    sid,
    generation,
    iat: seconds(issuedAt),
    exp: seconds(expiresAt),
  });
}

/** Verifies an access token and returns its claims. Throws TokenError. */
export function readAccessToken(ctx: Context, token: string): ReadClaims {
  const { header, payload, until } = verify(ctx, token);
  if (header.typ === REFRESH_TYPE) throw new TokenError('a refresh token is not an access token');
  const { sub, sid } = payload;
  if (typeof sub !== 'string' || sub === '' || !isStorable(sub))
    throw new TokenError('sub is missing or not a username');
  if (sid !== undefined && typeof sid !== 'string') throw new TokenError('sid is not a string');
  const scopes = readScopes(payload);
  return { username: sub, until, ...(sid !== undefined && { sid }), ...(scopes && { scopes }) };
}

/** Verifies a refresh token and returns its claims. Throws TokenError. */
export function readRefreshToken(ctx: Context, token: string): RefreshClaims {
  const { header, payload } = verify(ctx, token);
  if (header.typ !== REFRESH_TYPE) throw new TokenError('not a refresh token');
  const { sid, generation } = payload;
  if (typeof sid !== 'string' || typeof generation !== 'number')
    throw new TokenError('sid or generation is missing');
  return { sid, generation };
}

function issue(ctx: Context, typ: string, claims: Record<string, unknown>): string {
  const { jwtIssuer: iss, jwtAudience: aud } = ctx.config;
  return sign(ctx, typ, { ...claims, ...(iss && { iss }), ...(aud && { aud }) });
}

// The library checks only the signature and the format. Claims are checked here, because the
// library accepts tokens without `exp`, any `aud` if none is configured, and `crit`, and does not
// use `ctx.now()`.
function verify(
  ctx: Context,
  token: string,
): { header: Signed['header']; payload: Readonly<Record<string, unknown>>; until: Date } {
  if (token.length > MAX_TOKEN_LENGTH) throw new TokenError('too long');
  const { header, payload } = readSigned(ctx, token);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw new TokenError('the payload is not an object');
  for (const name of ['crit', 'b64', 'zip']) {
    if (name in header) throw new TokenError(`the header parameter ${name} is not supported`);
  }
  const claims = payload as Record<string, unknown>;
  const until = checkTimes(ctx, claims);
  checkParties(ctx, claims);
  return { header, payload: claims, until };
}

// Returns when the token expires.
function checkTimes(ctx: Context, { exp, nbf, iat, sid }: Record<string, unknown>): Date {
  const now = ctx.now().getTime() / 1000;
  const leeway = ctx.config.jwtLeewaySeconds;
  for (const time of [exp, nbf, iat]) {
    if (time === undefined) continue;
    if (typeof time !== 'number' || !Number.isFinite(time))
      throw new TokenError('a time is not a number');
    if (Math.abs(time + leeway) > MAX_SECONDS) throw new TokenError('a time is out of range');
  }
  if (typeof iat === 'number' && iat > now + Math.max(leeway, CLOCK_SKEW))
    throw new TokenError('issued in the future');
  if (typeof nbf === 'number' && nbf > now + leeway) throw new TokenError('not valid yet');
  const end = expiryOf({ exp, iat, sid });
  if (now >= end + leeway) throw new TokenError('expired');
  return new Date((end + leeway) * 1000);
}

// Tokens of other issuers have no session that could end them: their lifetime is at most that of
// ours.
function expiryOf({ exp, iat, sid }: Record<'exp' | 'iat' | 'sid', unknown>): number {
  if (typeof iat !== 'number') {
    if (typeof exp === 'number') return exp;
    throw new TokenError('neither exp nor iat');
  }
  if (typeof exp !== 'number') return iat + DEFAULT_LIFETIME;
  return sid === undefined ? Math.min(exp, iat + TOKEN_ENDPOINT_LIFETIME) : exp;
}

function checkParties(ctx: Context, { iss, aud }: Record<string, unknown>): void {
  const { jwtIssuer, jwtAudience } = ctx.config;
  if (jwtIssuer !== undefined && iss !== jwtIssuer) throw new TokenError('wrong issuer');
  if (aud === undefined) return;
  const audience = Array.isArray(aud) ? aud : [aud];
  if (jwtAudience === undefined || !audience.includes(jwtAudience))
    throw new TokenError('wrong audience');
}

// Our tokens have a list `scopes`; tokens of other issuers may have a string `scope` (RFC 8693,
// 4.2; RFC 9068, 2.2.3). Each of them limits the scopes.
function readScopes({ scopes, scope }: Readonly<Record<string, unknown>>): Scope[] | undefined {
  if (scopes !== undefined && !isStringList(scopes))
    throw new TokenError('scopes is not a list of strings');
  if (scope !== undefined && typeof scope !== 'string')
    throw new TokenError('scope is not a string');
  const names = scope?.split(' ');
  return (scopes ?? names)?.filter(isScope).filter((name) => names?.includes(name) ?? true);
}

function isStringList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((part) => typeof part === 'string');
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
