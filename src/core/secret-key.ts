import { createHash, randomBytes } from 'node:crypto';

const KEY_BYTES = 32;

/** A new key that nobody can guess: 256 random bits, base64url. */
export function newKey(): string {
  return randomBytes(KEY_BYTES).toString('base64url');
}

/** What a log may say of a key: the first 8 hexadecimal digits of its hash. */
export function printOf(key: string): string {
  return hashKey(key).toString('hex').slice(0, 8);
}

/** What is stored of a key: its SHA-256. The key has so many bits that no slower hash is needed. */
export function hashKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
