import { constants, createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { describe, expect, test } from '../support/jest.ts';
import { TokenError } from '../../src/features/auth/tokens/signing.ts';
import { readAccessToken } from '../../src/features/auth/tokens/token.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';
import {
  tryCredentials,
  base64url,
  claimsOf,
  forge,
  forgeText,
  REJECTED,
  servedAs,
  signed,
  useControl,
  type Values,
} from '../support/forge.ts';

const shop = useShop();
/** Instance that gets single requests, for hundreds of tokens. */
const plain = useShop();
const OTHER_SECRET = 'another-secret-for-tests-of-32-bytes';
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

useControl(shop);

test('J1 a valid token returns its user, with exactly four members', async () => {
  const user = await shop.makeUser({ fullName: 'Ann Example', scopes: ['users:read'] });
  const { body } = await shop.rest('GET', '/users/me/', { token: shop.tokenOf(user) });
  expect(Object.keys(body).toSorted()).toEqual(['disabled', 'email', 'full_name', 'username']);
  for (const token of [shop.tokenOf(user), forge(claimsOf(shop, user))])
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
});

describe('the algorithm', () => {
  test.each(['none', 'None', 'NONE', 'nOnE', 'nonE', ' none', 'none ', 'none\u0000'])(
    'J2 alg %j is rejected, without a signature and with one',
    async (alg) => {
      const user = await shop.makeUser();
      const [header, payload] = [
        base64url(JSON.stringify({ alg, typ: 'JWT' })),
        base64url(JSON.stringify(claimsOf(shop, user))),
      ];
      for (const signature of ['', 'c2lnbmF0dXJl', 'AA', 'A'.repeat(43)])
        expect(await tryCredentials(shop, `${header}.${payload}.${signature}`)).toEqual(REJECTED);
      // A valid signature does not make up for it.
      expect(await tryCredentials(shop, signed(header, payload))).toEqual(REJECTED);
    },
  );

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 256],
    ['true', true],
    ['a list of ours', ['HS256']],
    ['a list of none and ours', ['none', 'HS256']],
    ['an object', { toString: 'HS256' }],
    ['a name of the prototype', '__proto__'],
  ])('J2 an alg that is %s is rejected', async (_what, alg) => {
    expect(
      await tryCredentials(shop, forge(claimsOf(shop, await shop.makeUser()), { alg })),
    ).toEqual(REJECTED);
  });

  test.each([
    ['HS384', 'sha384'],
    ['HS512', 'sha512'],
    ['HS384', 'sha256'],
    ['HS512', 'sha256'],
    ['HS1', 'sha1'],
    ['hs256', 'sha256'],
    ['Hs256', 'sha256'],
    ['HS256 ', 'sha256'],
    ['HS256\u0000', 'sha256'],
    ['HMAC', 'sha256'],
    ['RS256', 'sha256'],
    ['RS384', 'sha384'],
    ['PS256', 'sha256'],
    ['ES256', 'sha256'],
    ['ES256K', 'sha256'],
    ['EdDSA', 'sha512'],
  ])('J3 alg %j is rejected, although our secret signed it with %s', async (alg, hash) => {
    const claims = JSON.stringify(claimsOf(shop, await shop.makeUser()));
    expect(
      await tryCredentials(
        shop,
        forgeText(JSON.stringify({ alg, typ: 'JWT' }), claims, TEST_SECRET, hash),
      ),
    ).toEqual(REJECTED);
  });

  test.each(['sha1', 'sha384', 'sha512', 'sha3-256', 'sha512-256'])(
    'J3 a token that says HS256 and was signed with %s is rejected',
    async (hash) => {
      const claims = JSON.stringify(claimsOf(shop, await shop.makeUser()));
      expect(
        await tryCredentials(
          shop,
          forgeText('{"alg":"HS256","typ":"JWT"}', claims, TEST_SECRET, hash),
        ),
      ).toEqual(REJECTED);
    },
  );

  test('J3 the last of two alg members counts, and both are signed', async () => {
    const user = await shop.makeUser();
    const claims = JSON.stringify(claimsOf(shop, user));
    expect(
      await tryCredentials(shop, forgeText('{"alg":"HS256","alg":"none","typ":"JWT"}', claims)),
    ).toEqual(REJECTED);
    expect(
      await tryCredentials(
        shop,
        `${base64url('{"alg":"none","alg":"HS256","typ":"JWT"}')}.${base64url(claims)}.`,
      ),
    ).toEqual(REJECTED);
  });
});

describe('the secret', () => {
  test('J4 a token signed with the empty secret is rejected', async () => {
    const user = await shop.makeUser();
    for (const secret of ['', '\u0000'.repeat(32), ' '])
      expect(await tryCredentials(shop, forge(claimsOf(shop, user), {}, secret))).toEqual(REJECTED);
  });

  test('J4 a token signed with any of 100 common secrets is rejected', async () => {
    const user = await plain.makeUser();
    const secrets = COMMON_WORDS.flatMap((word) => VARIATIONS.map((vary) => vary(word)));
    expect(new Set(secrets).size).toBe(100);
    expect(secrets).toContain('secret');
    expect(
      await statuses(secrets.map((secret) => forge(claimsOf(plain, user), {}, secret))),
    ).toEqual({ 401: 100 });
    expect(await tryCredentials(plain, plain.tokenOf(user))).toEqual(servedAs(user));
  });

  test.each<[string, (secret: string) => string | Buffer]>([
    ['in upper case', (secret) => secret.toUpperCase()],
    ['without its last character', (secret) => secret.slice(0, -1)],
    ['cut to 32 bytes', (secret) => secret.slice(0, 32)],
    ['with a line break', (secret) => `${secret}\n`],
    ['in base64', (secret) => Buffer.from(secret).toString('base64')],
    ['in hexadecimal digits', (secret) => Buffer.from(secret).toString('hex')],
    ['read as base64', (secret) => Buffer.from(secret, 'base64')],
    ['hashed', (secret) => createHmac('sha256', '').update(secret).digest()],
    ['in UTF-16', (secret) => Buffer.from(secret, 'utf16le')],
  ])('J4 a token signed with our secret %s is rejected', async (_how, change) => {
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser()), {}, change(TEST_SECRET)),
      ),
    ).toEqual(REJECTED);
  });
});

describe('the signature', () => {
  test('J5 a signature with any one of its 256 bits flipped is rejected', async () => {
    const token = plain.tokenOf(await plain.makeUser());
    const flipped = Array.from({ length: 256 }, (_, bit) =>
      withSignature(token, (bytes) =>
        bytes.map((byte, at) => (at === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)),
      ),
    );
    expect(new Set([token, ...flipped]).size).toBe(257);
    expect(await statuses(flipped)).toEqual({ 401: 256 });
    expect(await statuses([token])).toEqual({ 200: 1 });
  });

  test('J5 a signature cut at any position is rejected', async () => {
    const token = plain.tokenOf(await plain.makeUser());
    expect(
      await statuses(Array.from({ length: 43 }, (_, cut) => token.slice(0, -1 - cut))),
    ).toEqual({ 401: 43 });
  });

  test.each<[string, (token: string, other: string) => string]>([
    [
      'of another token',
      (token, other) =>
        token.slice(0, token.lastIndexOf('.')) + other.slice(other.lastIndexOf('.')),
    ],
    ['of zeros', (token) => withSignature(token, (bytes) => Buffer.alloc(bytes.length))],
    [
      'longer by a byte',
      (token) => withSignature(token, (bytes) => Buffer.concat([bytes, Buffer.of(0)])),
    ],
    ['twice', (token) => token + token.slice(token.lastIndexOf('.') + 1)],
    [
      'in hexadecimal digits',
      (token) => withSignatureText(token, (bytes) => bytes.toString('hex')),
    ],
    ['in plain base64', (token) => withSignatureText(token, (bytes) => bytes.toString('base64'))],
    ['padded with =', (token) => `${token}=`],
    ['padded with ==', (token) => `${token}==`],
    ['with a percent-encoded line break', (token) => `${token}%0A`],
    ['with a character behind it that is not base64', (token) => `${token}!`],
    ['with a byte behind it that is not ASCII', (token) => `${token}\u00e9`],
    ['with a dot behind it', (token) => `${token}.`],
  ])('J5 a signature %s is rejected', async (_what, change) => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    expect(await tryCredentials(shop, change(token, shop.tokenOf(user)))).toEqual(REJECTED);
  });

  test('J5 any other last character for the same bytes is rejected', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    const same = [...ALPHABET]
      .map((last) => token.slice(0, -1) + last)
      .filter((other) => other !== token && bytesOf(other).equals(bytesOf(token)));
    expect(same).toHaveLength(3);
    for (const other of same) expect(await tryCredentials(shop, other)).toEqual(REJECTED);
  });

  // HTTP trims header values and forbids line breaks, so this calls the token reader directly.
  test.each(['\n', '\r\n', '\r', '\t', ' ', '\0', '\u2028', '\ufeff'])(
    'J5 %j before or behind a token is rejected',
    (space) => {
      const token = forge({ sub: 'alice', exp: Date.now() / 1000 + 60 });
      expect(readAccessToken(shop.context(), token)).toEqual({
        username: 'alice',
        until: expect.any(Date),
      });
      for (const other of [
        token + space,
        space + token,
        token.replace('.', `.${space}`),
        token.replace('.', `${space}.`),
      ]) {
        expect(() => readAccessToken(shop.context(), other)).toThrow(TokenError);
      }
    },
  );

  test.each<[string, (mine: Values, theirs: User) => Values | string]>([
    ['sub names another user', (mine, { username }) => ({ ...mine, sub: username })],
    [
      'a second sub names another user',
      (mine, { username }) =>
        `${JSON.stringify(mine).slice(0, -1)},"sub":${JSON.stringify(username)}}`,
    ],
    [
      'scopes are added',
      (mine) => ({ ...mine, scopes: ['products:write', 'users:read', 'blog:write'] }),
    ],
    ['exp is later', (mine) => ({ ...mine, exp: Number(mine['exp']) + 1 })],
    ['nothing but a space is added', (mine) => `${JSON.stringify(mine)} `],
  ])(
    'J6 a payload that was changed under an old signature is rejected: %s',
    async (_what, change) => {
      const [mine, theirs] = [await shop.makeUser(), await shop.makeUser()];
      const claims = claimsOf(shop, mine);
      const [header, , signature] = forge(claims).split('.');
      const changed = change(claims, theirs);
      expect(
        await tryCredentials(
          shop,
          `${header}.${base64url(typeof changed === 'string' ? changed : JSON.stringify(changed))}.${signature}`,
        ),
      ).toEqual(REJECTED);
    },
  );

  test('J6 a header that was changed under an old signature is rejected', async () => {
    const [, payload, signature] = shop.tokenOf(await shop.makeUser()).split('.');
    for (const header of ['{"alg":"HS256"}', '{"typ":"JWT","alg":"HS256"}', '{}']) {
      expect(await tryCredentials(shop, `${base64url(header)}.${payload}.${signature}`)).toEqual(
        REJECTED,
      );
    }
  });
});

describe('a key in the token', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const ed = generateKeyPairSync('ed25519');
  const signers: [string, (text: string) => Buffer, Values][] = [
    [
      'RS256',
      (text) => sign('sha256', Buffer.from(text), rsa.privateKey),
      rsa.publicKey.export({ format: 'jwk' }),
    ],
    [
      'PS256',
      (text) =>
        sign('sha256', Buffer.from(text), {
          key: rsa.privateKey,
          padding: constants.RSA_PKCS1_PSS_PADDING,
          saltLength: 32,
        }),
      rsa.publicKey.export({ format: 'jwk' }),
    ],
    [
      'ES256',
      (text) =>
        sign('sha256', Buffer.from(text), { key: ec.privateKey, dsaEncoding: 'ieee-p1363' }),
      ec.publicKey.export({ format: 'jwk' }),
    ],
    [
      'EdDSA',
      (text) => sign(null, Buffer.from(text), ed.privateKey),
      ed.publicKey.export({ format: 'jwk' }),
    ],
    [
      'HS256',
      (text) => createHmac('sha256', OTHER_SECRET).update(text).digest(),
      { kty: 'oct', k: Buffer.from(OTHER_SECRET).toString('base64url') },
    ],
  ];
  const keyHeaders: [string, (url: string, jwk: Values) => Values][] = [
    ['jwk', (_url, jwk) => ({ jwk })],
    ['jku', (url) => ({ jku: `${url}/jwks.json`, kid: '1' })],
    ['x5u', (url) => ({ x5u: `${url}/chain.pem` })],
    ['kid as a URL', (url) => ({ kid: `${url}/key.pem` })],
    [
      'all of them',
      (url, jwk) => ({ jwk, jku: url, x5u: url, x5c: ['AAAA'], x5t: 'AAAA', iss: url }),
    ],
  ];

  test.each(
    signers.flatMap(([alg, by, jwk]) =>
      keyHeaders.map(([what, header]) => [alg, what, by, jwk, header] as const),
    ),
  )('J7 %s by %s is neither used nor fetched', async (alg, _what, by, jwk, header) => {
    const claims = claimsOf(shop, await shop.makeUser());
    await withListener(async (url, connections) => {
      const text = `${base64url(JSON.stringify({ alg, typ: 'JWT', ...header(url, jwk) }))}.${base64url(JSON.stringify({ ...claims, iss: url }))}`;
      expect(await tryCredentials(shop, `${text}.${by(text).toString('base64url')}`)).toEqual(
        REJECTED,
      );
      expect(connections()).toBe(0);
    });
  });

  test('J7 with our signature, key headers make no difference, and nothing is fetched', async () => {
    const user = await shop.makeUser();
    await withListener(async (url, connections) => {
      for (const [, header] of keyHeaders)
        expect(
          await tryCredentials(
            shop,
            forge(claimsOf(shop, user), header(url, { kty: 'oct', k: 'AAAA' })),
          ),
        ).toEqual(servedAs(user));
      expect(connections()).toBe(0);
    });
  });

  test.each<[string, unknown]>([
    ['a file without content', '/dev/null'],
    ['a path upwards', '../../../../../../dev/null'],
    ['a piece of SQL', "x' union select ''; --"],
    ['a command', '|true'],
    ['a name of the prototype', '__proto__'],
    ['another', 'constructor'],
    ['empty', ''],
    ['a number', 0],
    ['null', null],
    ['a list', ['x']],
    ['an object', { toString: null }],
    ['of 4 KB', 'k'.repeat(4_096)],
  ])('J7 a kid that is %s leads to no other key', async (_what, kid) => {
    const user = await shop.makeUser();
    for (const secret of ['', '\u0000', OTHER_SECRET])
      expect(await tryCredentials(shop, forge(claimsOf(shop, user), { kid }, secret))).toEqual(
        REJECTED,
      );
    expect(await tryCredentials(shop, forge(claimsOf(shop, user), { kid }))).toEqual(
      servedAs(user),
    );
  });
});

/** Counts the response statuses of these tokens. */
async function statuses(tokens: readonly string[]): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (const token of tokens) {
    const { status } = await plain.rest('GET', '/users/me/', { token });
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

/** Runs the work with the URL of a listener and its connection count; checks that it counts. */
async function withListener(
  work: (url: string, connections: () => number) => Promise<void>,
): Promise<void> {
  let connections = 0;
  const listener = createServer((socket) => {
    connections++;
    socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
  }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  try {
    await work(url, () => connections);
    const before = connections;
    await fetch(url);
    expect(connections).toBe(before + 1);
  } finally {
    listener.close();
  }
}

function bytesOf(token: string): Buffer {
  return Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url');
}

function withSignature(token: string, change: (bytes: Buffer) => Uint8Array): string {
  return withSignatureText(token, (bytes) => Buffer.from(change(bytes)).toString('base64url'));
}

function withSignatureText(token: string, change: (bytes: Buffer) => string): string {
  return token.slice(0, token.lastIndexOf('.') + 1) + change(bytesOf(token));
}

const COMMON_WORDS = [
  'secret',
  'password',
  'changeme',
  'admin',
  'jwt',
  'key',
  'test',
  'token',
  'default',
  'shopfront',
];
const VARIATIONS: ((word: string) => string)[] = [
  (word) => word,
  (word) => word.toUpperCase(),
  (word) => word.charAt(0).toUpperCase() + word.slice(1),
  (word) => `${word}1`,
  (word) => `${word}123`,
  (word) => `my-${word}`,
  (word) => `your-256-bit-${word}`,
  (word) => `${word}-`.repeat(6),
  (word) => word.repeat(2),
  (word) => `super_${word}_key`,
];
