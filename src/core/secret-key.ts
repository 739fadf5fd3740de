import { createHash, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;

/** Returns a new key: 256 random bits, base64url. */
export function newSecretKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** Returns the part of a key's hash that may be logged: its first 8 hexadecimal digits. */
export function fingerprint(key: string): string {
  return hashKey(key).toString('hex').slice(0, 8);
}

/** Returns the hash that is stored: SHA-256. A slower hash is unnecessary for 256 random bits. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
