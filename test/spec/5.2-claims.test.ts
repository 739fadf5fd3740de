import { describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { readConfig } from '../../src/kit/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { PASSWORD, useShop, type Answer, type Shop } from '../support/shop.ts';

const shop = useShop();

const REFUSED = { status: 401, body: { detail: 'Could not validate credentials' }, challenge: 'Bearer error="invalid_token"' };
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

test('5.2 an issued token has sub, iat, exp, jti, sid and scopes, and no more', async () => {
  expect(await issuedClaims(shop, { username: 'alice', scopes: ['blog:write'] })).toEqual({
    sub: 'alice',
    iat: expect.any(Number),
    exp: expect.any(Number),
    jti: expect.stringMatching(UUID),
    sid: expect.stringMatching(UUID),
    scopes: ['blog:write'],
  });
});

test('5.2 all claims but sub and a time are optional', async () => {
  expect(said(await me({ sub: await alice(), exp: seconds(60) }))).toEqual({ status: 200 });
});

test('5.2 iss: any issuer is taken where none is configured', async () => {
  expect(said(await me({ ...(await good()), iss: 'https://issuer.example' }))).toEqual({ status: 200 });
});

test('5.2 sub: the username is case-sensitive', async () => {
  await alice();
  expect(said(await me({ sub: 'Alice', exp: seconds(60) }))).toEqual(REFUSED);
});

test.each([
  ['text', 'shop'],
  ['a list', ['shop', 'other']],
  ['an empty list', []],
  ['null', null],
])('5.2 aud: %s is refused where no audience is configured', async (_what, aud) => {
  expect(said(await me({ ...(await good()), aud }))).toEqual(REFUSED);
});

test('5.2 exp: a token is accepted before this time and not after', async () => {
  const token = signed({ sub: await alice(), exp: seconds(60) });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  shop.pass(60_000);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.2 exp: a token is not accepted at this time', async () => {
  expect(said(await me({ sub: await alice(), exp: seconds(0) }))).toEqual(REFUSED);
});

test.each([0, -1, 'x', null, '99999999999', [99_999_999_999]])('5.2 exp: %j is refused', async (exp) => {
  expect(said(await me({ sub: await alice(), exp }))).toEqual(REFUSED);
});

test('5.2 exp: a fraction of a second is a numeric date, too', async () => {
  expect(said(await me({ sub: await alice(), exp: seconds(60) + 0.5 }))).toEqual({ status: 200 });
});

test('5.2 exp: a token without it lives 15 minutes from its iat', async () => {
  const token = signed({ sub: await alice(), iat: seconds(0) });
  shop.pass(14 * 60_000);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  shop.pass(60_000);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.2 exp: a token with neither exp nor iat is refused', async () => {
  expect(said(await me({ sub: await alice() }))).toEqual(REFUSED);
});

test('5.2 nbf: a token is not accepted before this time and is from then on', async () => {
  const token = signed({ sub: await alice(), nbf: seconds(60), exp: seconds(120) });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
  shop.pass(60_000);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
});

test('5.2 nbf: text is refused', async () => {
  expect(said(await me({ ...(await good()), nbf: 'x' }))).toEqual(REFUSED);
});

test('5.2 iat: an issue time an hour ahead is refused', async () => {
  expect(said(await me({ sub: await alice(), iat: seconds(3600), exp: seconds(7200) }))).toEqual(REFUSED);
});

test('5.2 iat: text is refused', async () => {
  expect(said(await me({ ...(await good()), iat: 'x' }))).toEqual(REFUSED);
});

test('5.2 iat: an issued token holds the time of its issue', async () => {
  const before = seconds(0);
  const { iat } = await issuedClaims(shop);
  expect(iat).toBeGreaterThanOrEqual(before);
  expect(iat).toBeLessThanOrEqual(seconds(0));
});

test('5.2 jti: no two tokens have the same', async () => {
  const user = await shop.makeUser();
  const [first, second] = [claimsOf(shop.tokenOf(user)), claimsOf(shop.tokenOf(user))];
  expect(first.jti).not.toBe(second.jti);
});

test('5.2 sid: an issued token names the session that the login opened', async () => {
  const { sid } = await issuedClaims(shop);
  expect(await shop.sql('select sid from session')).toEqual([{ sid }]);
});

test('5.2 scopes: a token without them may do all that the user may', async () => {
  expect(await create({ sub: await alice(), exp: seconds(60) })).toMatchObject({ status: 201 });
});

test('5.2 scopes: a token with the scope may do what it permits', async () => {
  expect(await create({ sub: await alice(), exp: seconds(60), scopes: ['products:write'] })).toMatchObject({ status: 201 });
});

test.each([
  ['none', []],
  ['others', ['blog:write', 'users:read']],
  ['unknown ones', ['products:*']],
])('5.2 scopes: a token with %s is refused with 403, whatever the user holds', async (_what, scopes) => {
  const answer = await create({ sub: await alice(), exp: seconds(60), scopes });
  expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining('products:write') } });
});

test('5.2 scopes: a token adds nothing to what the user holds', async () => {
  const { username } = await shop.makeUser({ scopes: [] });
  const answer = await create({ sub: username, exp: seconds(60), scopes: ['products:write'] });
  expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining('products:write') } });
});

test('5.2 scopes: a scope taken from the user is gone from the tokens that name it', async () => {
  const claims = { sub: await alice(), exp: seconds(60), scopes: ['products:write'] };
  await shop.sql(`update "user" set scopes = '{}'`);
  expect(await create(claims)).toMatchObject({ status: 403 });
});

test.each(['JOSE', 'jwt', 'at+jwt', undefined])('5.2 typ: the header %j is ignored', async (typ) => {
  const token = signed(await good(), { typ });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
});

test('5.2 typ: a refresh token is refused, whatever it claims', async () => {
  const token = signed(await good(), { typ: 'refresh+jwt' });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.2 typ: an issued token has JWT, in upper case', async () => {
  expect(jwt.decode(shop.tokenOf(await shop.makeUser()), { complete: true })?.header.typ).toBe('JWT');
});

test('5.2 cty: the header JWT on a token that is not nested is ignored', async () => {
  const token = signed(await good(), { cty: 'JWT' });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
});

describe('with JWT_AUDIENCE', () => {
  const named = useShop({ JWT_AUDIENCE: 'shop' });

  test('5.2 aud: an issued token names the configured audience', async () => {
    expect(await issuedClaims(named)).toMatchObject({ aud: 'shop' });
  });

  test('5.2 aud: an issued token is taken', async () => {
    expect(await named.rest('GET', '/users/me/', { as: await named.makeUser() })).toMatchObject({ status: 200 });
  });

  test.each([
    ['as text', 'shop'],
    ['in a list', ['other', 'shop']],
    ['absent', undefined],
  ])('5.2 aud: the configured audience %s is taken', async (_how, aud) => {
    const token = signed({ ...(await good()), aud });
    expect(said(await named.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  });

  test.each([
    ['text', 'other'],
    ['a list', ['other']],
    ['an empty list', []],
    ['in upper case', 'SHOP'],
    ['longer', 'shop2'],
    ['null', null],
  ])('5.2 aud: another audience, %s, is refused', async (_how, aud) => {
    const token = signed({ ...(await good()), aud });
    expect(said(await named.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
  });
});

describe('with JWT_ISSUER', () => {
  const issuing = useShop({ JWT_ISSUER: 'https://issuer.example' });

  test('5.2 iss: an issued token names the configured issuer', async () => {
    expect(await issuedClaims(issuing)).toMatchObject({ iss: 'https://issuer.example' });
  });

  test('5.2 iss: a token of the configured issuer is taken', async () => {
    const token = signed({ ...(await good()), iss: 'https://issuer.example' });
    expect(said(await issuing.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  });

  test.each(['https://other.example', 'https://ISSUER.example', ['https://issuer.example'], null])(
    '5.2 iss: %j is refused where another issuer is configured',
    async (iss) => {
      const token = signed({ ...(await good()), iss });
      expect(said(await issuing.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
    },
  );
});

describe('with JWT_LEEWAY_SECONDS', () => {
  const lenient = useShop({ JWT_LEEWAY_SECONDS: '300' });

  test('5.2 exp: a token is accepted until the leeway has passed, too', async () => {
    const token = signed({ sub: await alice(), exp: seconds(0) });
    lenient.pass(240_000);
    expect(said(await lenient.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
    lenient.pass(60_000);
    expect(said(await lenient.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
  });

  test('5.2 nbf: a token is accepted ahead of its time by the leeway', async () => {
    const token = signed({ sub: await alice(), nbf: seconds(360), exp: seconds(720) });
    expect(said(await lenient.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
    lenient.pass(60_000);
    expect(said(await lenient.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  });
});

test('5.2 a leeway of five minutes is the most that may be configured', () => {
  const leeway = (value: string) =>
    readConfig({ SIGNING_SECRET: TEST_SECRET, JWT_LEEWAY_SECONDS: value }, () => undefined).jwtLeewaySeconds;
  expect(leeway('300')).toBe(300);
  expect(() => leeway('301')).toThrow('JWT_LEEWAY_SECONDS must be from 0 to 300');
});

/** What an answer says of the token: nothing but that it was taken, or how it was refused. */
function said({ status, body, headers }: Answer) {
  return status === 200 ? { status } : { status, body, challenge: headers.get('www-authenticate') };
}

function me(claims: object): Promise<Answer> {
  return shop.rest('GET', '/users/me/', { token: signed(claims) });
}

function create(claims: object): Promise<Answer> {
  const json = { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
  return shop.rest('POST', '/api/v1/shop/product/', { token: signed(claims), json });
}

async function alice(): Promise<string> {
  return (await shop.makeUser({ username: 'alice', password: null, scopes: ['products:write'] })).username;
}

/** Claims of a token that is taken. */
async function good() {
  return { sub: await alice(), iat: seconds(0), exp: seconds(60) };
}

/** A token with any claims, signed as it should be. */
function signed(claims: object, header: object = {}): string {
  return jwt.sign(JSON.stringify(claims), TEST_SECRET, { header: { alg: 'HS256', typ: 'JWT', ...header } });
}

async function issuedClaims(at: Shop, user: Parameters<Shop['makeUser']>[0] = {}): Promise<jwt.JwtPayload> {
  const { username } = await at.makeUser(user);
  const { body } = await at.rest('POST', '/token', { form: { username, password: PASSWORD } });
  return claimsOf(body.access_token);
}

function claimsOf(token: string): jwt.JwtPayload {
  return jwt.decode(token) as jwt.JwtPayload;
}

/** The numeric date that lies so many seconds ahead. */
function seconds(ahead: number): number {
  return Math.floor(Date.now() / 1000) + ahead;
}
