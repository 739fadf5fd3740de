import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { recordStatements } from '../support/statements.ts';
import { Shop, useShop } from '../support/shop.ts';
import {
  tryCredentials,
  claimsOf,
  forge,
  forgeText,
  INACTIVE,
  REJECTED,
  seconds,
  servedAs,
  useControl,
  type Values,
} from '../support/forge.ts';

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'shopfront';

const shop = useShop();
useControl(shop);
const ofIssuer = new Shop({ JWT_ISSUER: ISSUER });
const ofAudience = new Shop({ JWT_AUDIENCE: AUDIENCE });
/** Instance that gets single requests, to count their statements. */
const plain = new Shop();
const others = [ofIssuer, ofAudience, plain];
beforeAll(() => Promise.all(others.map((other) => other.start())));
afterAll(() => Promise.all(others.map((other) => other.stop())));

type Claims = (now: number) => Values;

describe('times', () => {
  test('J12 without exp a token lives 15 minutes from its iat', async () => {
    const user = await shop.makeUser();
    // With its fraction, so that the clock is known to the millisecond.
    const token = forge(claimsOf(shop, user, { iat: shop.now().getTime() / 1000, exp: undefined }));
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    shop.advanceClock(880_000);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    shop.advanceClock(20_000);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
  });

  test.each<[string, Claims]>([
    ['no iat', () => ({ iat: undefined })],
    ['no iat, but nbf', (now) => ({ iat: undefined, nbf: now - 1 })],
    ['iat 15 minutes ago', (now) => ({ iat: now - 900 })],
    ['iat 0', () => ({ iat: 0 })],
    ['iat -1', () => ({ iat: -1 })],
    ['iat null', () => ({ iat: null })],
    ['iat as text', (now) => ({ iat: String(now) })],
    ['iat as a list', (now) => ({ iat: [now] })],
    ['iat an hour ahead', (now) => ({ iat: now + 3_600 })],
  ])('J12 no exp, %s: rejected', async (_what, claims) => {
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser(), { exp: undefined, ...claims(seconds(shop)) })),
      ),
    ).toEqual(REJECTED);
  });

  test.each<[string, Claims]>([
    ['now', (now) => ({ exp: now })],
    ['a second ago', (now) => ({ exp: now - 1 })],
    ['a year ago', (now) => ({ exp: now - 31_536_000 })],
    ['0', () => ({ exp: 0 })],
    ['-1', () => ({ exp: -1 })],
    ['-0.5', () => ({ exp: -0.5 })],
    ['-9007199254740993', () => ({ exp: -9_007_199_254_740_992 })],
    ['before iat', (now) => ({ iat: now, exp: now - 10 })],
    ['as text', () => ({ exp: '9999999999' })],
    ['as a date', () => ({ exp: '2099-01-01T00:00:00Z' })],
    ['null', () => ({ exp: null })],
    ['true', () => ({ exp: true })],
    ['a list', () => ({ exp: [9_999_999_999] })],
    ['an object', () => ({ exp: { $gt: 0 } })],
    ['a second after the last date', () => ({ exp: 8.64e12 + 1 })],
    ['after the last date, without iat', () => ({ exp: 9e15, iat: undefined })],
  ])('J13 exp %s: rejected', async (_what, claims) => {
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser(), claims(seconds(shop)))),
      ),
    ).toEqual(REJECTED);
  });

  test.each(['exp', 'nbf', 'iat'])(
    'J13 an infinite %s, such as 1e400, is rejected',
    async (name) => {
      const { sub, exp } = claimsOf(shop, await shop.makeUser());
      for (const time of ['1e400', '-1e400']) {
        const claims = Object.entries({ sub: JSON.stringify(sub), exp: String(exp), [name]: time });
        expect(
          await tryCredentials(
            shop,
            forgeText(
              '{"alg":"HS256","typ":"JWT"}',
              `{${claims.map(([key, value]) => `"${key}":${value}`).join()}}`,
            ),
          ),
        ).toEqual(REJECTED);
      }
    },
  );

  test('J13 a token is rejected at its exp, although it was served before', async () => {
    const user = await shop.makeUser();
    const token = shop.tokenOf(user, 60);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    shop.advanceClock(60_000);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
  });

  test('J15 an exp may have a fraction, which counts', async () => {
    const user = await shop.makeUser();
    const token = forge(claimsOf(shop, user, { exp: seconds(shop) + 120.5 }));
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    shop.advanceClock(120_500);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
  });

  test('J13 a token of another issuer lives 30 minutes from its iat, whatever its exp is; one of ours until its exp', async () => {
    const user = await shop.makeUser();
    const foreign = forge(
      claimsOf(shop, user, { iat: shop.now().getTime() / 1000, exp: seconds(shop) + 86_400 }),
    );
    const timeless = forge(claimsOf(shop, user, { iat: undefined, exp: seconds(shop) + 86_400 }));
    shop.advanceClock(1_799_000);
    expect(await tryCredentials(shop, foreign)).toEqual(servedAs(user));
    shop.advanceClock(1_000);
    expect(await tryCredentials(shop, foreign)).toEqual(REJECTED);
    expect(await tryCredentials(shop, timeless)).toEqual(servedAs(user));
  });

  test.each<[string, Claims]>([
    ['in exponent form', (now) => ({ exp: Math.ceil(now / 1e6 + 1) * 1e6 })],
    ['in the year 9999', () => ({ exp: 253_402_300_799 })],
    ['in milliseconds, as some write it', (now) => ({ exp: (now + 60) * 1_000 })],
  ])('J15 an exp %s is served', async (_what, claims) => {
    const user = await shop.makeUser();
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, claims(seconds(shop)))))).toEqual(
      servedAs(user),
    );
  });

  test.each<[string, Claims]>([
    ['in ten minutes', (now) => ({ nbf: now + 600 })],
    ['in five seconds and a half', (now) => ({ nbf: now + 5.5 })],
    ['no number', () => ({ nbf: 'x' })],
    ['empty', () => ({ nbf: '' })],
    ['a number as text', () => ({ nbf: '0' })],
    ['null', () => ({ nbf: null })],
    ['false', () => ({ nbf: false })],
    ['a list', () => ({ nbf: [0] })],
  ])('J16 nbf %s: rejected', async (_what, claims) => {
    const now = seconds(shop);
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser(), { exp: now + 3_600, ...claims(now) })),
      ),
    ).toEqual(REJECTED);
  });

  test('J16 a token is served from its nbf on', async () => {
    const user = await shop.makeUser();
    const token = forge(
      claimsOf(shop, user, { nbf: seconds(shop) + 600, exp: seconds(shop) + 3_600 }),
    );
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    shop.advanceClock(600_000);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
  });

  test.each<[string, Claims]>([
    ['in an hour', (now) => ({ iat: now + 3_600 })],
    ['in two minutes', (now) => ({ iat: now + 120 })],
    ['in a thousand years', (now) => ({ iat: now + 3.2e10 })],
    ['in milliseconds', (now) => ({ iat: now * 1_000 })],
    ['as text', (now) => ({ iat: String(now) })],
    ['null', () => ({ iat: null })],
  ])('J17 iat %s: rejected', async (_what, claims) => {
    const now = seconds(shop);
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser(), { exp: now + 1e11, ...claims(now) })),
      ),
    ).toEqual(REJECTED);
  });

  test('J17 a token whose iat has come is served', async () => {
    const user = await shop.makeUser();
    const token = forge(
      claimsOf(shop, user, { iat: seconds(shop) + 3_600, exp: seconds(shop) + 7_200 }),
    );
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    shop.advanceClock(3_600_000);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
  });
});

describe('parties', () => {
  const FOREIGN: [string, unknown][] = [
    ['another', 'other'],
    ['a list of others', ['other', 'shopfront2']],
    ['an empty list', []],
    ['empty', ''],
    ['null', null],
    ['a number', 0],
    ['an object', { [AUDIENCE]: true }],
    ['ours in upper case', AUDIENCE.toUpperCase()],
    ['ours and a space', `${AUDIENCE} `],
    ['the beginning of ours', AUDIENCE.slice(0, -1)],
    ['ours among others in one text', `other ${AUDIENCE}`],
    ['ours in a list of lists', [[AUDIENCE]]],
    ['a pattern', '*'],
  ];

  test.each(FOREIGN)(
    'J18 an aud that is %s is rejected, with and without a configured audience',
    async (_what, aud) => {
      const user = await shop.makeUser();
      for (const at of [ofAudience, shop])
        expect(await tryCredentials(at, forge(claimsOf(at, user, { aud })))).toEqual(REJECTED);
      expect(await tryCredentials(ofAudience, ofAudience.tokenOf(user))).toEqual(servedAs(user));
    },
  );

  test('J18 the audience of another deployment is rejected where none is configured', async () => {
    const user = await shop.makeUser();
    for (const aud of [AUDIENCE, [AUDIENCE]])
      expect(await tryCredentials(shop, forge(claimsOf(shop, user, { aud })))).toEqual(REJECTED);
    expect(await tryCredentials(shop, ofAudience.tokenOf(user))).toEqual(REJECTED);
  });

  test.each<[string, Values]>([
    ['ours', { aud: AUDIENCE }],
    ['ours in a list', { aud: [AUDIENCE] }],
    ['ours among others', { aud: ['other', AUDIENCE] }],
    ['absent', {}],
  ])('J19 an aud that is %s is served where ours is configured', async (_what, claims) => {
    const user = await shop.makeUser();
    expect(await tryCredentials(ofAudience, forge(claimsOf(ofAudience, user, claims)))).toEqual(
      servedAs(user),
    );
  });

  test.each<[string, Values]>([
    ['another', { iss: 'https://other.example' }],
    ['absent', {}],
    ['null', { iss: null }],
    ['empty', { iss: '' }],
    ['a list of ours', { iss: [ISSUER] }],
    ['an object', { iss: { url: ISSUER } }],
    ['ours with a slash', { iss: `${ISSUER}/` }],
    ['ours in upper case', { iss: ISSUER.toUpperCase() }],
    ['a longer one that begins with ours', { iss: `${ISSUER}.evil.example` }],
  ])('J20 an iss that is %s is rejected where ours is configured', async (_what, claims) => {
    const user = await shop.makeUser();
    expect(await tryCredentials(ofIssuer, forge(claimsOf(ofIssuer, user, claims)))).toEqual(
      REJECTED,
    );
    expect(
      await tryCredentials(ofIssuer, forge(claimsOf(ofIssuer, user, { iss: ISSUER }))),
    ).toEqual(servedAs(user));
    // Without a configured issuer, iss is not checked.
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, claims)))).toEqual(servedAs(user));
  });
});

describe('the bearer', () => {
  const NO_NAMES: [string, unknown][] = [
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 123],
    ['zero', 0],
    ['true', true],
    ['a list', ['alice']],
    ['an object', { $ne: null }],
    ['an object with a text of its own', { toString: 'alice', length: 5 }],
    ['a raw SQL fragment of an ORM', { __raw: 'alice' }],
    ['a name with a NUL behind it', 'alice\u0000'],
    ['a name with a NUL inside', 'ali\u0000ce'],
    ['a name with half of a surrogate pair', 'alice\ud800'],
  ];

  test.each(NO_NAMES)(
    'J23 a sub that is %s is rejected, and no statement is sent',
    async (_what, sub) => {
      const user = await shop.makeUser({ username: 'alice' });
      expect(await tryCredentials(shop, forge(claimsOf(shop, user, { sub })))).toEqual(REJECTED);
      for (const [token, status] of [
        [forge(claimsOf(plain, user, { sub })), 401],
        [plain.tokenOf(user), 200],
      ] as const) {
        const rest = await recordStatements(() => plain.rest('GET', '/users/me/', { token }));
        const graphql = await recordStatements(() =>
          plain.graphql('{ me { username } }', {}, { token }),
        );
        expect([rest.answer.status, graphql.answer.status]).toEqual([status, status]);
        expect([rest.statements.length > 0, graphql.statements.length > 0]).toEqual([
          status === 200,
          status === 200,
        ]);
      }
    },
  );

  test.each([10_240, 5_000])('J23 a sub of %d characters is rejected', async (length) => {
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, await shop.makeUser(), { sub: 'a'.repeat(length) })),
      ),
    ).toEqual(REJECTED);
  });

  test.each([
    ['never existed', 'nobody'],
    ['differs in case', 'ALICE'],
    ['has a lookalike letter', '\u0430lice'],
    ['has a space behind it', 'alice '],
    ['is a pattern', 'al%'],
    ['is a piece of SQL', "alice' or '1'='1"],
    ['has a line break', 'alice\n'],
    ['goes from right to left', '\u202ealice'],
    ['is the key of the user', '1'],
  ])('J24 a sub that %s is rejected', async (_what, sub) => {
    const user = await shop.makeUser({ username: 'alice' });
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, { sub })))).toEqual(REJECTED);
    expect(await tryCredentials(shop, forge(claimsOf(shop, user)))).toEqual(servedAs(user));
  });

  // Equal statements and bodies imply equal time; a measurement would be less certain.
  test('J24 a deleted user and one who never existed get the same response', async () => {
    const [gone, never] = [await shop.makeUser(), { username: 'never' }];
    const token = shop.tokenOf(gone);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(gone));
    await shop.sql(`delete from "user" where pk = ${gone.pk}`);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    const observe = async (of: { username: string }) => {
      const { answer, statements } = await recordStatements(() =>
        plain.rest('GET', '/users/me/', { token: forge(claimsOf(plain, of)) }),
      );
      const headers = [...answer.headers].filter(
        ([name]) => name !== 'date' && name !== 'x-request-id',
      );
      return { status: answer.status, text: answer.text, headers, statements };
    };
    const [ofGone, ofNever] = [await observe(gone), await observe(never)];
    expect(ofGone).toEqual(ofNever);
    expect(ofGone).toMatchObject({ status: 401, statements: [expect.any(String)] });
  });

  test('J24 a session token of a deleted user is invalid for a new user of the same name', async () => {
    const gone = await shop.makeUser({ username: 'alice' });
    const { session } = await sessions.open(shop.context(), gone, null);
    const token = createAccessToken(shop.context(), { username: 'alice', sid: session.sid });
    expect(await tryCredentials(shop, token)).toEqual(servedAs(gone));
    await shop.sql(`delete from "user" where pk = ${gone.pk}`);
    await shop.makeUser({ username: 'alice' });
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
  });

  test('J25 a disabled user gets 400 with a valid token, and 401 with any other', async () => {
    const user = await shop.makeUser({ disabled: true });
    expect(await tryCredentials(shop, shop.tokenOf(user))).toEqual(INACTIVE);
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, { exp: seconds(shop) })))).toEqual(
      REJECTED,
    );
    expect(
      await tryCredentials(
        shop,
        forge(claimsOf(shop, user), {}, 'another-secret-for-tests-of-32-bytes'),
      ),
    ).toEqual(REJECTED);
  });

  test.each(['/users/me/', '/users/me/items/', '/blog', '/api/users', '/api/v2/shop/products'])(
    'J25 a disabled user gets 400 at %s',
    async (path) => {
      const user = await shop.makeUser({ disabled: true });
      const { status, headers, body } = await shop.rest('GET', path, { as: user });
      expect([status, headers.get('WWW-Authenticate'), body]).toEqual([
        400,
        null,
        { detail: 'Inactive user' },
      ]);
    },
  );

  test.each<[string, boolean]>([
    ['of a session', true],
    ['of another issuer, without a session', false],
  ])(
    'J26 a user disabled after the issue of a token %s gets 400 at the next request, at every instance',
    async (_what, hasSession) => {
      const user = await shop.makeUser();
      const { session } = await sessions.open(shop.context(), user, null);
      const token = createAccessToken(shop.context(), {
        username: user.username,
        ...(hasSession && { sid: session.sid }),
      });
      // Repeatedly, so that every cache holds it.
      for (let time = 0; time < 3; time++)
        expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
      await accounts.disable(plain.context(), user.username);
      expect(await tryCredentials(shop, token)).toEqual(INACTIVE);
      expect(await tryCredentials(plain, token)).toEqual(INACTIVE);
      await accounts.enable(plain.context(), user.username);
      // Disabling ended the session; a token without a session is valid again.
      expect(await tryCredentials(shop, token)).toEqual(hasSession ? REJECTED : servedAs(user));
    },
  );
});
