import { createSecretKey } from 'node:crypto';
import { expect, test } from '../support/jest.ts';
import { readSignedBy, TokenError } from '../../src/features/auth/tokens/signing.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { useShop } from '../support/shop.ts';
import { ANONYMOUS, ask, REFUSED, useControl } from '../support/forge.ts';
import { wycheproof } from './vectors/wycheproof.ts';

const shop = useShop();
useControl(shop);

// 367 and 370 are, byte for byte, the token of 357, which is valid.
const SAME_AS_VALID = new Set(['signature 367', 'signature 370']);
// A question mark that is no base64url stands in the header or in the payload; RFC 7515, 2 leaves no room for one.
const NOT_BASE64URL = new Set(['signature 372', 'signature 373']);
const MIN_KEY_BYTES = 32;

const vectors = wycheproof.flatMap(({ alg, key, vectors: ofKey }) =>
  ofKey.map(([id, verdict, about, token]) => ({ alg, key, id, verdict, about, token })),
);
/** Whether a key of this length is taken at all is a matter of the configuration. */
const isLongEnough = ({ key }: { key: string }): boolean => Buffer.from(key, 'base64url').length >= MIN_KEY_BYTES;

test.each(vectors.filter((vector) => isLongEnough(vector)))('J9 Wycheproof, $id ($alg): $about', ({ alg, key, id, verdict, token }) => {
  // HS256 alone is taken, so that a valid HS384 is refused, too.
  const isGood = alg === 'HS256' && (SAME_AS_VALID.has(id) || (verdict === 'valid' && !NOT_BASE64URL.has(id)));
  expect(isTaken(key, token)).toBe(isGood);
});

test.each(vectors.filter((vector) => !isLongEnough(vector)))(
  'J9 Wycheproof, $id ($alg): $about: a key of that length is not taken',
  ({ key, verdict }) => {
    // The bytes of these keys stand for themselves in UTF-8, so that they could be set.
    const secret = Buffer.from(key, 'base64url').toString();
    expect(Buffer.from(secret).toString('base64url')).toBe(key);
    expect(verdict).toBe('invalid');
    expect(() => readConfig({ DATABASE_URL: 'postgresql://u@127.0.0.1/x', SIGNING_SECRET: secret }, () => undefined)).toThrow(ConfigError);
  },
);

test.each(vectors)('J9 Wycheproof, $id, sent to the app, which has another key: 401', async ({ token }) => {
  // What holds a space is no bearer token, so it counts as none (docs/decisions.md, which credential).
  expect(await ask(shop, token)).toEqual(token === '' || /\s/.test(token) ? ANONYMOUS : REFUSED);
});

test('J9 all of it is there: 49 vectors, of which 12 are called valid', () => {
  expect(vectors).toHaveLength(49);
  expect(vectors.filter(({ verdict }) => verdict === 'valid')).toHaveLength(12);
});

function isTaken(key: string, token: string): boolean {
  try {
    return readSignedBy(createSecretKey(Buffer.from(key, 'base64url')), token).header.alg === 'HS256';
  } catch (error) {
    if (error instanceof TokenError) return false;
    throw error;
  }
}
