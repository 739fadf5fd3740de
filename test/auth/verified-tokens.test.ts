import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { TokenError } from '../../src/features/auth/tokens/signing.ts';
import { createAccessToken, readAccessToken } from '../../src/features/auth/tokens/token.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

// Only the validity of a signature is cached; nothing else of a token may be.
const shop = useShop();
// All share the secret and the cached tokens of the first, except the one with its own secret.
const ofIssuer = new Shop({ JWT_ISSUER: 'https://issuer.example' });
const ofAudience = new Shop({ JWT_AUDIENCE: 'shopfront' });
const otherSecret = new Shop({ SIGNING_SECRET: 'another-secret-for-tests-of-32-bytes' });
const others = [ofIssuer, ofAudience, otherSecret];
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

beforeAll(() => Promise.all(others.map((other) => other.start())));
afterAll(() => Promise.all(others.map((other) => other.stop())));

/** Returns the responses of both APIs to the token. */
async function request(at: Shop, token: string): Promise<unknown[]> {
  const answers = [
    await at.rest('GET', '/users/me/', { token }),
    await at.graphql('{ me { username } }', {}, { token }),
  ];
  return answers.map(({ status, headers, body }: Answer) => [
    status,
    headers.get('WWW-Authenticate'),
    body.username ?? body.data?.me.username,
  ]);
}

/** Sends the token until it is certainly cached. */
async function accept(at: Shop, token: string, { username }: User): Promise<void> {
  for (let time = 0; time < 3; time++) expect(await request(at, token)).toEqual(served(username));
}

function served(username: string): unknown[] {
  return [
    [200, null, username],
    [200, null, username],
  ];
}

const INVALID = [
  [401, 'Bearer', undefined],
  [401, 'Bearer', undefined],
];

describe('a token that was accepted before', () => {
  test('is rejected from the second in which it expires', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user, 60);
    await accept(shop, token, user);
    shop.advanceClock(55_000);
    expect(await request(shop, token)).toEqual(served(user.username));
    shop.advanceClock(5_000);
    expect(await request(shop, token)).toEqual(INVALID);
    shop.advanceClock(-30_000);
    expect(await request(shop, token)).toEqual(served(user.username));
  });

  test('is rejected if it was issued in the future by the clock', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    await accept(shop, token, user);
    shop.advanceClock(-3_600_000);
    expect(await request(shop, token)).toEqual(INVALID);
  });

  test.each<[string, (user: User, sid: string, token: string) => Promise<unknown>]>([
    [
      'been ended by logout',
      (_user, _sid, token) => shop.graphql('mutation { logout { ended } }', {}, { token }),
    ],
    ['been ended by its id', (_user, sid) => sessions.endBySid(shop.context(), sid)],
    [
      'been ended with all others of the user',
      (_user, _sid, token) =>
        shop.graphql('mutation { logoutEverywhere { ended } }', {}, { token }),
    ],
    [
      'been ended by a change of the password in another',
      async ({ username }) => {
        const { body } = await shop.graphql(
          'mutation ($u: String!, $p: String!) { login(username: $u, password: $p) { accessToken } }',
          {
            u: username,
            p: PASSWORD,
          },
        );
        const change =
          'mutation ($p: String!) { changePassword(current: $p, new: "a new password") { id } }';
        return shop.graphql(change, { p: PASSWORD }, { token: body.data.login.accessToken });
      },
    ],
    ['been ended on another instance', (_user, sid) => sessions.endBySid(ofIssuer.context(), sid)],
    ['been deleted from the database', () => shop.sql('delete from session')],
    [
      'expired',
      async () =>
        shop.sql(
          `update session set ${['created_at', 'last_seen_at', 'expires_at'].map((at) => `${at} = ${at} - interval '15 days'`).join()}`,
        ),
    ],
  ])('is rejected once its session has %s', async (_how, end) => {
    const user = await shop.makeUser();
    const { session } = await sessions.open(shop.context(), user, null);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    await accept(shop, token, user);
    await end(user, session.sid, token);
    expect(await request(shop, token)).toEqual(INVALID);
  });

  test('has the current scopes of its user, not those of its first use', async () => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const token = shop.tokenOf(user);
    await accept(shop, token, user);
    const create = () =>
      shop.rest('POST', '/api/v1/shop/product/', {
        token,
        json: { name: 'Lamp', barcode: shop.newBarcode(), price: 1 },
      });
    expect((await create()).status).toBe(201);
    await shop.sql(`update "user" set scopes = '{}'`);
    expect((await create()).status).toBe(403);
  });

  test('is rejected each time where another issuer is required, and accepted where none is', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    for (let time = 0; time < 3; time++) {
      await accept(shop, token, user);
      expect(await request(ofIssuer, token)).toEqual(INVALID);
    }
    const named = ofIssuer.tokenOf(user);
    await accept(ofIssuer, named, user);
  });

  test('is rejected where its audience is not the required one', async () => {
    const user = await shop.makeUser();
    const token = ofAudience.tokenOf(user);
    for (let time = 0; time < 3; time++) {
      await accept(ofAudience, token, user);
      expect(await request(shop, token)).toEqual(INVALID);
    }
  });

  test('is rejected each time where the secret differs, and vice versa', async () => {
    const user = await shop.makeUser();
    const [ours, theirs] = [shop.tokenOf(user), otherSecret.tokenOf(user)];
    for (let time = 0; time < 3; time++) {
      await accept(shop, ours, user);
      expect(await request(otherSecret, ours)).toEqual(INVALID);
      await accept(otherSecret, theirs, user);
      expect(await request(shop, theirs)).toEqual(INVALID);
    }
  });

  test('is not a refresh token, and a refresh token used as one is rejected each time', async () => {
    const user = await shop.makeUser();
    const form = { username: user.username, password: PASSWORD, scope: 'offline_access' };
    const { body } = await shop.rest('POST', '/token', { form });
    await accept(shop, body.access_token, user);
    const refresh = (token: string) =>
      shop.rest('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token: token } });
    expect((await refresh(body.access_token)).status).toBe(401);
    for (let time = 0; time < 3; time++)
      expect(await request(shop, body.refresh_token)).toEqual(INVALID);
    expect((await refresh(body.refresh_token)).status).toBe(200);
    // It is cached by now, and rejected once it is no longer the last reusable token.
    shop.advanceClock(10_000);
    expect((await refresh(body.refresh_token)).status).toBe(401);
  });
});

describe('a token that differs from an accepted one in one character', () => {
  test('is rejected for any character and any replacement', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    await accept(shop, token, user);
    const ctx = shop.context();
    const taken: string[] = [];
    const tryOne = (changed: string): void => {
      try {
        readAccessToken(ctx, changed);
      } catch (error) {
        if (error instanceof TokenError) return;
      }
      taken.push(changed);
    };
    for (let at = 0; at < token.length; at++) {
      const [before, was = '', after] = [token.slice(0, at), token[at], token.slice(at + 1)];
      const next = ALPHABET[(ALPHABET.indexOf(was) + 1) % ALPHABET.length] ?? 'A';
      for (const other of [
        next,
        was.toLowerCase() === was ? was.toUpperCase() : was.toLowerCase(),
        '.',
        '=',
        '',
        `${was}${was}`,
        ' ',
      ]) {
        if (other !== was) tryOne(before + other + after);
      }
    }
    // The last character has unused bits.
    for (const last of ALPHABET) if (!token.endsWith(last)) tryOne(token.slice(0, -1) + last);
    expect(taken).toEqual([]);
    expect(readAccessToken(ctx, token)).toMatchObject({ username: user.username });
  });

  test('is also rejected the second time', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user);
    await accept(shop, token, user);
    for (const changed of [
      `${token}A`,
      token.slice(0, -1),
      `${token}=`,
      token.replace('.', '..'),
      token.toLowerCase(),
    ]) {
      for (let time = 0; time < 3; time++) expect(await request(shop, changed)).toEqual(INVALID);
    }
    expect(await request(shop, token)).toEqual(served(user.username));
  });
});
