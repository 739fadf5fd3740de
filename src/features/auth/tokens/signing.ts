import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import type { Context } from '../../../request/context.ts';

/** Why a token was rejected. For the log only: responses do not contain it. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** A token with a valid signature; its claims are not checked. */
export type Signed = Readonly<Pick<jwt.Jwt, 'header' | 'payload'>>;

interface Key {
  key: KeyObject;
  /** Id in the header of signed tokens (RFC 7515, 4.1.4). Reveals nothing of the secret. */
  kid: string;
}

const ALGORITHM = 'HS256';
/** Maximum number of cached tokens with a verified signature. */
const MAX_VERIFIED = 10_000;

const verified = new LRUCache<string, Signed & { by: Key }>({ max: MAX_VERIFIED });
const keysBySecrets = new WeakMap<readonly string[], readonly Key[]>();

/** Returns a token of this type, signed with the newest secret. */
export function sign({ config }: Context, typ: string, payload: object): string {
  const [newest] = keysOf(config.signingSecrets);
  if (!newest) throw new Error('No signing secret is configured');
  return jwt.sign(payload, newest.key, {
    algorithm: ALGORITHM,
    header: { alg: ALGORITHM, typ, kid: newest.kid },
  });
}

/**
 * Returns the content of a token that one of our secrets signed. Caches verified tokens. Throws
 * TokenError.
 */
export function readSigned({ config: { signingSecrets } }: Context, token: string): Signed {
  const keys = keysOf(signingSecrets);
  const cached = verified.get(token);
  if (cached && keys.includes(cached.by)) return cached;
  const signed = readSignedByAny(keys, token);
  verified.set(token, signed);
  return signed;
}

/**
 * Returns the content of a token that this key signed: HS256 in compact form (RFC 7515, 7.1), each
 * part in canonical base64url. Throws TokenError.
 */
export function readSignedBy(key: KeyObject, token: string): Signed {
  try {
    const { header, payload } = jwt.verify(token, key, {
      algorithms: [ALGORITHM],
      complete: true,
      ignoreExpiration: true,
      ignoreNotBefore: true,
    });
    // Decoders also accept non-canonical base64url.
    const parts = token.split('.');
    if (parts.some((part) => Buffer.from(part, 'base64url').toString('base64url') !== part))
      throw new TokenError('not canonical base64url');
    const names = memberNames(Buffer.from(parts[0] ?? '', 'base64url').toString());
    if (new Set(names).size < names.length) throw new TokenError('duplicate header parameter');
    return { header, payload };
  } catch (error) {
    if (error instanceof TokenError) throw error;
    // The library's own errors have fixed messages. Messages of JSON.parse quote the token, which
    // is untrusted input.
    throw new TokenError(
      error instanceof jwt.JsonWebTokenError ? error.message : 'the payload cannot be read',
    );
  }
}

// Tries the key that the token names first. The name is only a hint: another issuer may use other
// names.
function readSignedByAny(keys: readonly Key[], token: string): Signed & { by: Key } {
  const keyId = keys.length > 1 ? kidOf(token) : undefined;
  let lastError = new TokenError('no signing secret is configured');
  for (const by of keys.toSorted((a, b) => Number(b.kid === keyId) - Number(a.kid === keyId))) {
    try {
      return { ...readSignedBy(by.key, token), by };
    } catch (error) {
      if (!(error instanceof TokenError)) throw error;
      lastError = error;
    }
  }
  throw lastError;
}

// Returns the member names of a JSON object with duplicates (RFC 7515, 4), which JSON.parse drops.
function memberNames(json: string): string[] {
  const names: string[] = [];
  let depth = 0;
  for (const [token, text, colon] of json.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth === 1 && text && colon) names.push(JSON.parse(text) as string);
  }
  return names;
}

function kidOf(token: string): unknown {
  try {
    return jwt.decode(token, { complete: true })?.header.kid;
  } catch {
    return undefined;
  }
}

// Caches the keys: from a secret as text, the library would create the key at every call, which
// takes four fifths of the time.
function keysOf(secrets: readonly string[]): readonly Key[] {
  const cached = keysBySecrets.get(secrets);
  if (cached) return cached;
  const keys = secrets.map((secret) => ({
    key: createSecretKey(Buffer.from(secret)),
    kid: createHmac('sha256', secret).update('kid').digest('base64url').slice(0, 8),
  }));
  keysBySecrets.set(secrets, keys);
  return keys;
}
