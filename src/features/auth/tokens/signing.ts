import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { LRUCache } from 'lru-cache';
import type { Context } from '../../../request/context.ts';

/** Why a token was refused. For the log: the caller is never told. */
export class TokenError extends Error {
  override readonly name = 'TokenError';
}

/** A token whose signature is right, and nothing else of it looked at. */
export type Signed = Readonly<Pick<jwt.Jwt, 'header' | 'payload'>>;

interface Key {
  key: KeyObject;
  /** Its name in the header of what it signs (RFC 7515, 4.1.4): tells which of ours it is, and nothing of the secret. */
  kid: string;
}

const ALGORITHM = 'HS256';
/** How many tokens are known to be rightly signed. */
const MAX_VERIFIED = 10_000;

const verified = new LRUCache<string, Signed & { by: Key }>({ max: MAX_VERIFIED });
const known = new WeakMap<readonly string[], readonly Key[]>();

/** A token of this type, signed with the newest secret. */
export function sign({ config }: Context, typ: string, payload: object): string {
  const [newest] = keysOf(config.signingSecrets);
  if (!newest) throw new Error('there is no secret to sign with');
  return jwt.sign(payload, newest.key, { algorithm: ALGORITHM, header: { alg: ALGORITHM, typ, kid: newest.kid } });
}

/**
 * What a token says, if one of our secrets signed it; or throws TokenError. Whether a signature is right does not change, so that
 * a token which comes again is not computed again.
 */
export function readSigned({ config: { signingSecrets, shortcuts } }: Context, token: string): Signed {
  const keys = keysOf(signingSecrets);
  if (!shortcuts.includes('tokens')) return readSignedByAny(keys, token);
  const before = verified.get(token);
  if (before && keys.includes(before.by)) return before;
  const found = readSignedByAny(keys, token);
  verified.set(token, found);
  return found;
}

/** What a token says, if this key signed it: HS256 in compact form (RFC 7515, 7.1), each part as base64url has it. Throws TokenError. */
export function readSignedBy(key: KeyObject, token: string): Signed {
  try {
    const { header, payload } = jwt.verify(token, key, {
      algorithms: [ALGORITHM],
      complete: true,
      ignoreExpiration: true,
      ignoreNotBefore: true,
    });
    // Base64url has one right way to write a text; decoders take others, too.
    const parts = token.split('.');
    if (parts.some((part) => Buffer.from(part, 'base64url').toString('base64url') !== part))
      throw new TokenError('not canonical base64url');
    const names = memberNames(Buffer.from(parts[0] ?? '', 'base64url').toString());
    if (new Set(names).size < names.length) throw new TokenError('a header parameter is named twice');
    return { header, payload };
  } catch (error) {
    if (error instanceof TokenError) throw error;
    // The library's own refusals have fixed texts; what JSON.parse says repeats a piece of the token, which anyone may have written.
    throw new TokenError(error instanceof jwt.JsonWebTokenError ? error.message : 'the payload cannot be read');
  }
}

// The key that the token names comes first. What it names is no more than a hint: another issuer may name its keys otherwise.
function readSignedByAny(keys: readonly Key[], token: string): Signed & { by: Key } {
  const named = keys.length > 1 ? kidOf(token) : undefined;
  let refusal = new TokenError('there is no secret to verify with');
  for (const by of keys.toSorted((a, b) => Number(b.kid === named) - Number(a.kid === named))) {
    try {
      return { ...readSignedBy(by.key, token), by };
    } catch (error) {
      if (!(error instanceof TokenError)) throw error;
      refusal = error;
    }
  }
  throw refusal;
}

// The names of the members of a JSON object, as often as they occur (RFC 7515, 4): JSON.parse keeps the last of each.
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

// Made once: with the secret as text the library makes it anew at every call, which costs four fifths of the time.
function keysOf(secrets: readonly string[]): readonly Key[] {
  const before = known.get(secrets);
  if (before) return before;
  const made = secrets.map((secret) => ({
    key: createSecretKey(Buffer.from(secret)),
    kid: createHmac('sha256', secret).update('kid').digest('base64url').slice(0, 8),
  }));
  known.set(secrets, made);
  return made;
}
