import { createSecretKey } from 'node:crypto';
import { expect, test } from '../support/jest.ts';
import { readSignedBy, TokenError } from '../../src/features/auth/tokens/signing.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { useShop } from '../support/shop.ts';
import { ANONYMOUS, tryCredentials, REJECTED, useControl } from '../support/forge.ts';
import { wycheproof } from './vectors/wycheproof.ts';

const shop = useShop();
useControl(shop);

// 367 and 370 are, byte for byte, the token of 357, which is valid.
const SAME_AS_VALID = new Set(['signature 367', 'signature 370']);
// The header or payload contains a question mark, which is not base64url (RFC 7515, 2).
const NOT_BASE64URL = new Set(['signature 372', 'signature 373']);
const MIN_KEY_BYTES = 32;

const vectors = wycheproof.flatMap(({ alg, key, vectors: ofKey }) =>
  ofKey.map(([id, verdict, about, token]) => ({ alg, key, id, verdict, about, token })),
);
/** Returns true if the configuration accepts a key of this length. */
const isLongEnough = ({ key }: { key: string }): boolean =>
  Buffer.from(key, 'base64url').length >= MIN_KEY_BYTES;

test.each(vectors.filter((vector) => isLongEnough(vector)))(
  'J9 Wycheproof, $id ($alg): $about',
  ({ alg, key, id, verdict, token }) => {
    // Only HS256 is accepted, so a valid HS384 is rejected.
    const isGood =
      alg === 'HS256' && (SAME_AS_VALID.has(id) || (verdict === 'valid' && !NOT_BASE64URL.has(id)));
    expect(isAccepted(key, token)).toBe(isGood);
  },
);

test.each(vectors.filter((vector) => !isLongEnough(vector)))(
  'J9 Wycheproof, $id ($alg): $about: a key of that length is not accepted',
  ({ key, verdict }) => {
    // These keys are valid UTF-8, so they could be configured.
    const secret = Buffer.from(key, 'base64url').toString();
    expect(Buffer.from(secret).toString('base64url')).toBe(key);
    expect(verdict).toBe('invalid');
    expect(() =>
      readConfig(
        { DATABASE_URL: 'postgresql://u@127.0.0.1/x', SIGNING_SECRET: secret },
        () => undefined,
      ),
    ).toThrow(ConfigError);
  },
);

test.each(vectors)(
  'J9 Wycheproof, $id, sent to the app, which has another key: 401',
  async ({ token }) => {
    // Text with a space is not a bearer token, so it counts as no credentials (docs/decisions.md).
    expect(await tryCredentials(shop, token)).toEqual(
      token === '' || /\s/.test(token) ? ANONYMOUS : REJECTED,
    );
  },
);

test('J9 the set is complete: 49 vectors, 12 of them valid', () => {
  expect(vectors).toHaveLength(49);
  expect(vectors.filter(({ verdict }) => verdict === 'valid')).toHaveLength(12);
});

function isAccepted(key: string, token: string): boolean {
  try {
    return (
      readSignedBy(createSecretKey(Buffer.from(key, 'base64url')), token).header.alg === 'HS256'
    );
  } catch (error) {
    if (error instanceof TokenError) return false;
    throw error;
  }
}
