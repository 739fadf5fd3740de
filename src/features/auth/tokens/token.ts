import { randomUUID } from 'node:crypto';
import type { Context } from '../../../request/context.ts';
import { isScope, type Scope } from '../../../core/scopes.ts';
import { isStorable } from '../../../core/text.ts';
import { readSigned, sign, TokenError, type Signed } from './signing.ts';

/** Lifetime of the token endpoints' access tokens, in seconds (interface, 5.1.5). */
export const TOKEN_ENDPOINT_LIFETIME = 30 * 60;
/** Lifetime where the issuer names none, in seconds (interface, 5.1.5). */
const DEFAULT_LIFETIME = 15 * 60;

/** The last second that a Date can hold (ECMAScript, 21.4.1.1). */
const MAX_SECONDS = 8.64e12;

const ACCESS_TYPE = 'JWT';
const REFRESH_TYPE = 'refresh+jwt';
const MAX_TOKEN_LENGTH = 8_192;
/** How far ahead, in seconds, the clock of another issuer may run before its `iat` counts as made up. */
const CLOCK_SKEW = 60;

/** What an access token says of its bearer. */
export interface AccessClaims {
  username: string;
  /** Absent in a token of another issuer that shares the secret. */
  sid?: string;
  /** Absent where the token does not narrow what the user holds. */
  scopes?: Scope[];
}

/** What an access token says, and when it expires. */
export interface ReadClaims extends AccessClaims {
  until: Date;
}

/** What a refresh token says: the session and how often it had been refreshed. */
export interface RefreshClaims {
  sid: string;
  generation: number;
}

/** A signed access token (RFC 7519) that lives `lifetime` seconds. */
export function createAccessToken(ctx: Context, claims: AccessClaims, lifetime: number = DEFAULT_LIFETIME): string {
  const { username, sid, scopes } = claims;
  const iat = seconds(ctx.now());
  const times = { iat, exp: iat + lifetime, jti: randomUUID() };
  return issue(ctx, ACCESS_TYPE, { sub: username, ...(sid && { sid }), ...(scopes && { scopes }), ...times });
}

/** A signed refresh token: for the same claims and times, the same text. */
export function createRefreshToken(ctx: Context, { sid, generation }: RefreshClaims, expiresAt: Date, issuedAt: Date): string {
  return issue(ctx, REFRESH_TYPE, { sid, generation, iat: seconds(issuedAt), exp: seconds(expiresAt) });
}

/** Reads an access token, or throws TokenError. */
export function readAccessToken(ctx: Context, token: string): ReadClaims {
  const { header, payload, until } = verify(ctx, token);
  if (header.typ === REFRESH_TYPE) throw new TokenError('a refresh token is no access token');
  const { sub, sid } = payload;
  if (typeof sub !== 'string' || sub === '' || !isStorable(sub)) throw new TokenError('sub is missing or no username');
  if (sid !== undefined && typeof sid !== 'string') throw new TokenError('sid is no text');
  const scopes = readScopes(payload);
  return { username: sub, until, ...(sid !== undefined && { sid }), ...(scopes && { scopes }) };
}

/** Reads a refresh token, or throws TokenError. */
export function readRefreshToken(ctx: Context, token: string): RefreshClaims {
  const { header, payload } = verify(ctx, token);
  if (header.typ !== REFRESH_TYPE) throw new TokenError('no refresh token');
  const { sid, generation } = payload;
  if (typeof sid !== 'string' || typeof generation !== 'number') throw new TokenError('sid or generation is missing');
  return { sid, generation };
}

function issue(ctx: Context, typ: string, claims: Record<string, unknown>): string {
  const { jwtIssuer: iss, jwtAudience: aud } = ctx.config;
  return sign(ctx, typ, { ...claims, ...(iss && { iss }), ...(aud && { aud }) });
}

// The library checks the signature and its form; every claim is checked here, for it lets through tokens without `exp`,
// a foreign `aud` where none is configured, and `crit`, and it reads the clock by itself.
function verify(ctx: Context, token: string): { header: Signed['header']; payload: Readonly<Record<string, unknown>>; until: Date } {
  if (token.length > MAX_TOKEN_LENGTH) throw new TokenError('too long');
  const { header, payload } = readSigned(ctx, token);
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) throw new TokenError('the payload is no object');
  for (const name of ['crit', 'b64', 'zip']) {
    if (name in header) throw new TokenError(`the header ${name} is not understood`);
  }
  const claims = payload as Record<string, unknown>;
  const until = checkTimes(ctx, claims);
  checkParties(ctx, claims);
  return { header, payload: claims, until };
}

// Returns when it expires.
function checkTimes(ctx: Context, { exp, nbf, iat, sid }: Record<string, unknown>): Date {
  const now = ctx.now().getTime() / 1000;
  const leeway = ctx.config.jwtLeewaySeconds;
  for (const time of [exp, nbf, iat]) {
    if (time === undefined) continue;
    if (typeof time !== 'number' || !Number.isFinite(time)) throw new TokenError('a time is no number');
    if (Math.abs(time + leeway) > MAX_SECONDS) throw new TokenError('a time is no date');
  }
  if (typeof iat === 'number' && iat > now + Math.max(leeway, CLOCK_SKEW)) throw new TokenError('issued in the future');
  if (typeof nbf === 'number' && nbf > now + leeway) throw new TokenError('not valid yet');
  const end = endOf({ exp, iat, sid });
  if (now >= end + leeway) throw new TokenError('expired');
  return new Date((end + leeway) * 1000);
}

// A token of another issuer belongs to no session that could end it: it lives no longer than one of ours.
function endOf({ exp, iat, sid }: Record<'exp' | 'iat' | 'sid', unknown>): number {
  if (typeof iat !== 'number') {
    if (typeof exp === 'number') return exp;
    throw new TokenError('neither exp nor iat');
  }
  if (typeof exp !== 'number') return iat + DEFAULT_LIFETIME;
  return sid === undefined ? Math.min(exp, iat + TOKEN_ENDPOINT_LIFETIME) : exp;
}

function checkParties(ctx: Context, { iss, aud }: Record<string, unknown>): void {
  const { jwtIssuer, jwtAudience } = ctx.config;
  if (jwtIssuer !== undefined && iss !== jwtIssuer) throw new TokenError('of another issuer');
  if (aud === undefined) return;
  const audience = Array.isArray(aud) ? aud : [aud];
  if (jwtAudience === undefined || !audience.includes(jwtAudience)) throw new TokenError('for another audience');
}

// Our tokens have a list in `scopes`, those of other issuers may have one text in `scope` (RFC 8693, 4.2; RFC 9068, 2.2.3). Each narrows.
function readScopes({ scopes, scope }: Readonly<Record<string, unknown>>): Scope[] | undefined {
  if (scopes !== undefined && !isListOfText(scopes)) throw new TokenError('scopes is no list of text');
  if (scope !== undefined && typeof scope !== 'string') throw new TokenError('scope is no text');
  const words = scope?.split(' ');
  return (scopes ?? words)?.filter(isScope).filter((name) => words?.includes(name) ?? true);
}

function isListOfText(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((part) => typeof part === 'string');
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
