import { createHash, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;

/** A new session key: 256 random bits, base64url. */
export function newSessionKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** What a log may say of a session key: the first 8 hexadecimal digits of its hash. */
export function printOf(key: string): string {
  return hashSessionKey(key).toString('hex').slice(0, 8);
}

/** What is stored of a session key: its SHA-256. The key has so many bits that no slower hash is needed. */
export function hashSessionKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
