import { createSecretKey, randomUUID, type KeyObject } from 'node:crypto';
import jwt, { type JwtPayload } from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Context } from '../../../request/context.ts';
import { isScope, type Scope } from '../../../core/scopes.ts';
import { isStorable } from '../../../core/text.ts';

/** Lifetime of the token endpoints' access tokens, in seconds (interface, 5.1.5). */
export const TOKEN_ENDPOINT_LIFETIME = 30 * 60;
/** Lifetime of tokens whose issuer specifies none, in seconds (interface, 5.1.5). */
const DEFAULT_LIFETIME = 15 * 60;
const ALGORITHM = 'HS256';
const ACCESS_TYPE = 'JWT';
const REFRESH_TYPE = 'refresh+jwt';
/** Maximum length of a token, in characters. */
const MAX_TOKEN_LENGTH = 8_192;
/** Maximum number of cached tokens with a verified signature. */
const MAX_VERIFIED = 10_000;
/** Maximum time by which `iat` may be in the future, in seconds: other issuers' clocks differ. */
const CLOCK_SKEW = 60;

/** Why a token was rejected. For the log only: responses do not contain it. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** Claims of an access token about its bearer. */
interface AccessClaims {
  username: string;
  /** Absent in tokens of another issuer that shares the secret. */
  sid?: string;
  /** Absent if the token does not limit the user's scopes. */
  scopes?: Scope[];
}

// Our tokens have a list `scopes`; tokens of other issuers may have a string `scope` (RFC 8693,
// 4.2; RFC 9068, 2.2.3). Each of them limits the scopes.
const accessClaims = z.object({
  sub: z.string().min(1).refine(isStorable),
  sid: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  scope: z.string().optional(),
});

/** The session, and the number of its refreshes so far. */
const refreshClaims = z.object({ sid: z.string(), generation: z.number() });

type RefreshClaims = z.output<typeof refreshClaims>;

/** Returns a signed access token (RFC 7519) that expires after `lifetime` seconds. */
export function createAccessToken(
  ctx: Context,
  { username, sid, scopes }: AccessClaims,
  lifetime: number = DEFAULT_LIFETIME,
): string {
  const iat = seconds(ctx.now());
  return sign(ctx, ACCESS_TYPE, {
    sub: username,
    ...(sid && { sid }),
    ...(scopes && { scopes }),
    iat,
    exp: iat + lifetime,
    jti: randomUUID(),
  });
}

/** Returns a signed refresh token: the same one for the same claims and times. */
export function createRefreshToken(
  ctx: Context,
  { sid, generation }: RefreshClaims,
  expiresAt: Date,
  issuedAt: Date,
): string {
  const times = { iat: seconds(issuedAt), exp: seconds(expiresAt) };
  return sign(ctx, REFRESH_TYPE, { sid, generation, ...times });
}

/** Verifies an access token. Returns its claims, and when it expires. Throws TokenError. */
export function readAccessToken(ctx: Context, token: string): AccessClaims & { until: Date } {
  const { typ, payload, until } = verify(ctx, token);
  if (typ === REFRESH_TYPE) throw new TokenError('a refresh token is not an access token');
  const { sub: username, sid, scopes, scope } = readClaims(accessClaims, payload);
  const names = scope?.split(' ');
  const narrowed = (scopes ?? names)?.filter(isScope);
  return {
    username,
    until,
    ...(sid !== undefined && { sid }),
    ...(narrowed && { scopes: narrowed.filter((name) => names?.includes(name) ?? true) }),
  };
}

/** Verifies a refresh token and returns its claims. Throws TokenError. */
export function readRefreshToken(ctx: Context, token: string): RefreshClaims {
  const { typ, payload } = verify(ctx, token);
  if (typ !== REFRESH_TYPE) throw new TokenError('not a refresh token');
  return readClaims(refreshClaims, payload);
}

function sign(ctx: Context, typ: string, claims: Record<string, unknown>): string {
  const { signingSecrets, jwtIssuer: iss, jwtAudience: aud } = ctx.config;
  const [newest = ''] = signingSecrets;
  return jwt.sign({ ...claims, ...(iss && { iss }), ...(aud && { aud }) }, keyOf(newest), {
    algorithm: ALGORITHM,
    header: { alg: ALGORITHM, typ },
  });
}

// The library checks the signature, the algorithm, `exp`, `nbf` and `iss`. It would accept unknown
// critical headers, tokens without `exp`, and any `aud` if none is configured.
function verify(
  ctx: Context,
  token: string,
): { typ: string | undefined; payload: JwtPayload; until: Date } {
  if (token.length > MAX_TOKEN_LENGTH) throw new TokenError('too long');
  const { header, payload } = readSigned(ctx, token);
  if (typeof payload === 'string') throw new TokenError('the payload is not an object');
  for (const name of ['crit', 'b64', 'zip'])
    if (name in header) throw new TokenError(`the header parameter ${name} is not supported`);
  const { jwtAudience, jwtLeewaySeconds: leeway } = ctx.config;
  const { aud, iat, exp } = payload as Record<string, unknown>;
  const audience: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (aud !== undefined && !(jwtAudience !== undefined && audience.includes(jwtAudience)))
    throw new TokenError('wrong audience');
  const latest = seconds(ctx.now()) + Math.max(leeway, CLOCK_SKEW);
  if (iat !== undefined && !(typeof iat === 'number' && iat <= latest))
    throw new TokenError('issued in the future');
  const end = typeof exp === 'number' ? exp : Number(iat) + DEFAULT_LIFETIME;
  const until = new Date((end + leeway) * 1000);
  // Also if there is neither `exp` nor `iat`, or a time that no Date can hold.
  if (!(until > ctx.now())) throw new TokenError('expired');
  return { typ: header.typ, payload, until };
}

/** Verified tokens by the configuration: the check of a signature takes half as long as all else of `/users/me/`. */
const verified = new WeakMap<Context['config'], LRUCache<string, jwt.Jwt>>();

// Returns the content of a token that one of our secrets signed. The caller checks its end again.
function readSigned(ctx: Context, token: string): jwt.Jwt {
  const known = verified.get(ctx.config) ?? new LRUCache<string, jwt.Jwt>({ max: MAX_VERIFIED });
  verified.set(ctx.config, known);
  let signed = known.get(token);
  if (!signed) known.set(token, (signed = readSignedByAny(ctx, token)));
  return signed;
}

function readSignedByAny(ctx: Context, token: string): jwt.Jwt {
  const { signingSecrets, jwtLeewaySeconds, jwtIssuer } = ctx.config;
  let lastError = new TokenError('no signing secret is configured');
  for (const secret of signingSecrets) {
    try {
      return readSignedBy(keyOf(secret), token, {
        clockTimestamp: ctx.now().getTime() / 1000,
        clockTolerance: jwtLeewaySeconds,
        ...(jwtIssuer !== undefined && { issuer: jwtIssuer }),
      });
    } catch (error) {
      if (!(error instanceof TokenError)) throw error;
      lastError = error;
    }
  }
  throw lastError;
}

/** Returns the content of a token that this key signed. Throws TokenError. */
export function readSignedBy(
  key: KeyObject,
  token: string,
  options: jwt.VerifyOptions = {},
): jwt.Jwt {
  // Decoders also accept non-canonical base64url.
  if (
    token.split('.').some((part) => Buffer.from(part, 'base64url').toString('base64url') !== part)
  )
    throw new TokenError('not canonical base64url');
  try {
    return jwt.verify(token, key, { ...options, algorithms: [ALGORITHM], complete: true });
  } catch (error) {
    // Messages of other errors, such as those of JSON.parse, quote the token.
    const isKnown = error instanceof jwt.JsonWebTokenError;
    throw new TokenError(isKnown ? error.message : 'the payload cannot be read');
  }
}

function readClaims<T>(schema: z.ZodType<T>, payload: object): T {
  const { data, error } = schema.safeParse(payload);
  if (error) throw new TokenError(`invalid claim ${error.issues[0]?.path.join('.')}`);
  return data;
}

// Caches the keys: from a secret as text, the library would create the key at every call, which
// takes four fifths of the time.
const keys = new Map<string, KeyObject>();

function keyOf(secret: string): KeyObject {
  const cached = keys.get(secret);
  if (cached) return cached;
  const key = createSecretKey(Buffer.from(secret));
  keys.set(secret, key);
  return key;
}

function seconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
