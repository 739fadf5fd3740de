import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import {
  ANONYMOUS,
  tryCredentials,
  base64url,
  claimsOf,
  forge,
  forgeText,
  ME,
  REJECTED,
  servedAs,
  signed,
  useControl,
  type Values,
} from '../support/forge.ts';

const shop = useShop();
useControl(shop);

const MAX_TOKEN_LENGTH = 8_192;
const HEADER = '{"alg":"HS256","typ":"JWT"}';

describe('segments', () => {
  test.each<[string, (token: string) => string]>([
    ['one segment', (token) => token.replaceAll('.', '')],
    ['two segments', (token) => token.slice(0, token.lastIndexOf('.'))],
    ['two segments, the first one missing', (token) => token.slice(token.indexOf('.') + 1)],
    ['four segments', (token) => `${token}.e30`],
    ['four segments, the last one empty', (token) => `${token}.`],
    ['four segments, the first one empty', (token) => `.${token}`],
    ['five segments, as of an encrypted token', (token) => `${token}.e30.e30`],
    ['two tokens in one', (token) => `${token}.${token}`],
    ['two tokens with a comma', (token) => `${token},${token}`],
    ['an empty segment in the middle', (token) => token.replace(/\.[^.]+\./, '..')],
    ['.', () => '.'],
    ['..', () => '..'],
    ['...', () => '...'],
    ['8,192 dots', () => '.'.repeat(MAX_TOKEN_LENGTH)],
    ['null', () => 'null'],
    ['undefined', () => 'undefined'],
    ['NaN', () => 'NaN'],
    ['true', () => 'true'],
    ['0', () => '0'],
    ['{}', () => '{}'],
    ['[]', () => '[]'],
    ['a template that was never filled in', () => '{{access_token}}'],
    ['a stringified object', () => '[object'],
    ['a token in quotation marks', (token) => `"${token}"`],
    ['a token in angle brackets', (token) => `<${token}>`],
    ['a percent-encoded token', (token) => token.replaceAll('.', '%2E')],
    ['a token in base64', (token) => Buffer.from(token).toString('base64')],
    ['a token of another format', () => 'v4.local.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'],
    ['letters that are not ASCII', () => '\u00e9\u00e8.\u00ff\u00fe.\u00e0'],
    ['the general JSON serialization', (token) => jsonSerialization(token, true)],
    ['the flattened JSON serialization', (token) => jsonSerialization(token, false)],
  ])('J9 %s: rejected', async (_what, change) => {
    expect(await tryCredentials(shop, change(shop.tokenOf(await shop.makeUser())))).toEqual(
      REJECTED,
    );
  });

  test.each<[string, (segment: string) => string]>([
    ['padded', (segment) => `${segment}=`],
    ['in plain base64', (segment) => Buffer.from(segment, 'base64url').toString('base64')],
    [
      'with a character that decoders skip',
      (segment) => `${segment.slice(0, 4)}!${segment.slice(4)}`,
    ],
    ['with unused trailing bits', (segment) => `${segment}A`],
  ])(
    'J9 a header or a payload that is %s is rejected, although our secret signed it',
    async (_how, change) => {
      const user = await shop.makeUser();
      // Lengths with room for padding, and characters that base64url encodes differently.
      const header = base64url('{"alg":"HS256","typ":"JWT","kid":"\u00ff\u00ff>>??"}');
      const payload = base64url(JSON.stringify(claimsOf(shop, user, { pad: '\u00ff\u00ff>>??' })));
      expect(await tryCredentials(shop, signed(header, payload))).toEqual(servedAs(user));
      for (const token of [signed(change(header), payload), signed(header, change(payload))])
        expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    },
  );
});

describe('content of the segments', () => {
  test.each<[string, string | Buffer]>([
    ['a string', '"alice"'],
    ['an empty string', '""'],
    ['a list', '[1]'],
    ['an empty list', '[]'],
    ['a list of claims', '[{"sub":"alice","exp":9999999999}]'],
    ['null', 'null'],
    ['a number', '1'],
    ['zero', '0'],
    ['true', 'true'],
    ['false', 'false'],
    ['not JSON', 'sub=alice'],
    ['half of an object', '{"sub":"alice","exp":9999999999'],
    ['an object and more', '{"sub":"alice","exp":9999999999}{}'],
    ['an object with a comma too many', '{"sub":"alice","exp":9999999999,}'],
    ['nothing', ''],
    ['a space', ' '],
    ['a NUL', '\0'],
    ['an object without claims', '{}'],
    ['claims in a prototype', '{"__proto__":{"sub":"alice","exp":9999999999}}'],
    ['claims in a constructor', '{"constructor":{"prototype":{"sub":"alice"}},"exp":9999999999}'],
    ['claims in an object of their own', '{"claims":{"sub":"alice","exp":9999999999}}'],
    ['claims of another case', '{"SUB":"alice","EXP":9999999999}'],
    ['bytes that are not UTF-8', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
    ['a list as deep as fits', '['.repeat(3_000) + ']'.repeat(3_000)],
  ])('J11 a payload that is %s is rejected, whatever typ says', async (_what, payload) => {
    await shop.makeUser({ username: 'alice' });
    for (const header of [HEADER, '{"alg":"HS256"}', '{"alg":"HS256","typ":"x"}'])
      expect(await tryCredentials(shop, forgeText(header, payload))).toEqual(REJECTED);
  });

  test.each([
    'null',
    '1',
    '"HS256"',
    '[]',
    '["HS256"]',
    '{}',
    '',
    'alg',
    '{"alg":"HS256"',
    '{"__proto__":{"alg":"HS256"}}',
    '{"ALG":"HS256"}',
  ])('J11 a header that is %s is rejected', async (header) => {
    expect(
      await tryCredentials(
        shop,
        forgeText(header, JSON.stringify(claimsOf(shop, await shop.makeUser()))),
      ),
    ).toEqual(REJECTED);
  });

  test.each<[string, Values]>([
    ['crit', { crit: ['x'], x: 1 }],
    ['crit with a known name', { crit: ['exp'], exp: 9_999_999_999 }],
    ['crit without names', { crit: [] }],
    ['crit null', { crit: null }],
    ['crit as text', { crit: 'exp' }],
    ['b64 false', { b64: false }],
    ['b64 false and critical', { b64: false, crit: ['b64'] }],
    ['b64 true', { b64: true }],
    ['zip', { zip: 'DEF' }],
    ['zip empty', { zip: '' }],
  ])(
    'J21 a validly signed token with the header %s is rejected (RFC 7515, 4.1.11)',
    async (_what, header) => {
      const user = await shop.makeUser();
      expect(await tryCredentials(shop, forge(claimsOf(shop, user), header))).toEqual(REJECTED);
      // As claims they have no meaning.
      expect(await tryCredentials(shop, forge(claimsOf(shop, user, header)))).toEqual(
        servedAs(user),
      );
    },
  );

  test.each([
    '{"alg":"HS256","typ":"JWT","typ":"JWT"}',
    '{"alg":"none","alg":"HS256"}',
    '{"alg":"HS256","typ":"refresh+jwt","\\u0074yp":"JWT"}',
    '{"alg":"HS256", "kid" : "a", "x":{"y":[1]}, "kid" : "b"}',
  ])('J21 a header that names a parameter twice is rejected: %s (RFC 7515, 4)', async (header) => {
    const claims = JSON.stringify(claimsOf(shop, await shop.makeUser()));
    expect(await tryCredentials(shop, forgeText(header, claims))).toEqual(REJECTED);
  });

  test('J21 a name within a parameter or a string is not a parameter', async () => {
    const user = await shop.makeUser();
    const header =
      '{"alg":"HS256","typ":"JWT","x":{"typ":1,"alg":"{\\"typ\\":1"},"kid":"\\"alg\\":","y":["alg","alg"]}';
    expect(
      await tryCredentials(shop, forgeText(header, JSON.stringify(claimsOf(shop, user)))),
    ).toEqual(servedAs(user));
  });

  test('J21 a payload that is not in base64url, as b64 false would have it, is rejected', async () => {
    const payload = JSON.stringify(claimsOf(shop, await shop.makeUser())).replaceAll(' ', '');
    expect(
      await tryCredentials(
        shop,
        signed(base64url('{"alg":"HS256","b64":false,"crit":["b64"]}'), payload),
      ),
    ).toEqual(REJECTED);
  });

  test.each<[string, Values]>([
    ['typ JOSE', { typ: 'JOSE' }],
    ['no typ', { typ: undefined }],
    ['typ jwt', { typ: 'jwt' }],
    ['typ at+jwt', { typ: 'at+jwt' }],
    ['typ as a number', { typ: 1 }],
    ['typ null', { typ: null }],
    ['typ as a list with the rejected one', { typ: ['refresh+jwt'] }],
    ['cty JWT without a token inside', { cty: 'JWT' }],
    ['unknown headers', { foo: 'bar', __proto__: null, enc: 'A128GCM' }],
  ])('J22 %s makes no difference', async (_what, header) => {
    const user = await shop.makeUser();
    expect(await tryCredentials(shop, forge(claimsOf(shop, user), header))).toEqual(servedAs(user));
  });

  test('J22 a refresh token is no access token, forged or real, before its use and after', async () => {
    const user = await shop.makeUser();
    expect(await tryCredentials(shop, forge(claimsOf(shop, user), { typ: 'refresh+jwt' }))).toEqual(
      REJECTED,
    );
    const form = { username: user.username, password: PASSWORD, scope: 'offline_access' };
    const { body } = await shop.rest('POST', '/token', { form });
    expect(await tryCredentials(shop, body.refresh_token)).toEqual(REJECTED);
    const again = await shop.rest('POST', '/token', {
      form: { grant_type: 'refresh_token', refresh_token: body.refresh_token },
    });
    expect(again.status).toBe(200);
    for (const token of [body.refresh_token, again.body.refresh_token])
      expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    // Nor is an access token a refresh token.
    const swapped = await shop.rest('POST', '/token', {
      form: { grant_type: 'refresh_token', refresh_token: again.body.access_token },
    });
    expect([swapped.status, swapped.body]).toEqual([
      401,
      {
        detail: 'Could not validate credentials',
        error: 'invalid_grant',
        error_description: 'Could not validate credentials',
      },
    ]);
  });

  test('J29 a token is read up to 8,192 bytes, and one of 8,193 is rejected', async () => {
    const user = await shop.makeUser();
    const [fits, tooLong] = [MAX_TOKEN_LENGTH, MAX_TOKEN_LENGTH + 1].map((length) =>
      ofLength(length, claimsOf(shop, user)),
    );
    expect(await tryCredentials(shop, String(fits))).toEqual(servedAs(user));
    expect(await tryCredentials(shop, String(tooLong))).toEqual(REJECTED);
    expect(await tryCredentials(shop, 'a'.repeat(12_000))).toEqual(REJECTED);
  });

  test.each([20_000, 1_048_576])(
    'J29 a header of %d bytes is 431, and the connection is closed',
    async (length) => {
      const answer = await sendUntilAnswered(
        `GET /users/me/ HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${'a'.repeat(length)}\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 431 .*\r\nConnection: close\r\n(.*\r\n)*\r\n$/);
    },
  );
});

describe('place of the token', () => {
  test.each<[string, (token: string) => string]>([
    ['Bearer', () => 'Bearer'],
    ['Bearer and spaces', () => 'Bearer  '],
    ['Bearer and two words', (token) => `Bearer a ${token}`],
    ['Bearer and a word behind the token', (token) => `Bearer ${token} b`],
    ['Bearer twice', (token) => `Bearer Bearer ${token}`],
    ['Bearer and a tab', (token) => `Bearer\t${token}`],
    ['Bearer right before the token', (token) => `Bearer${token}`],
    ['Bearer and a colon', (token) => `Bearer: ${token}`],
    ['Bearer and an equals sign', (token) => `Bearer=${token}`],
    ['Bearer behind another scheme', (token) => `Basic x, Bearer ${token}`],
    ['Bearers', (token) => `Bearers ${token}`],
    ['Basic', (token) => `Basic ${token}`],
    [
      'Basic with name and password',
      () => `Basic ${Buffer.from(`user:${PASSWORD}`).toString('base64')}`,
    ],
    ['Token', (token) => `Token ${token}`],
    ['JWT', (token) => `JWT ${token}`],
    ['DPoP', (token) => `DPoP ${token}`],
    ['the token alone', (token) => token],
    ['nothing', () => ''],
  ])('J31 %s: no credentials', async (_what, header) => {
    expect(
      await tryCredentials(shop, { Authorization: header(shop.tokenOf(await shop.makeUser())) }),
    ).toEqual(ANONYMOUS);
  });

  test.each(['bearer', 'BEARER', 'bEARER', 'Bearer  '])(
    'J31 the scheme matches in any case, with any number of spaces: %j',
    async (scheme) => {
      const user = await shop.makeUser();
      const { status, body } = await shop.rest('GET', '/users/me/', {
        headers: { Authorization: `${scheme} ${shop.tokenOf(user)}` },
      });
      expect([status, body.username]).toEqual([200, user.username]);
    },
  );

  test.each([
    'access_token',
    'token',
    'jwt',
    'bearer',
    'authorization',
    'Authorization',
    'id_token',
  ])('J32 a token in the query, in a cookie or in a body as %s is ignored', async (name) => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    for (const value of [shop.tokenOf(user), `Bearer ${shop.tokenOf(user)}`]) {
      const query = new URLSearchParams({ [name]: value }).toString();
      const NONE = [401, 'Bearer', '{"detail":"Not authenticated"}'];
      expect(seen(await shop.rest('GET', `/users/me/?${query}`))).toEqual(NONE);
      expect(
        await tryCredentials(shop, {
          Cookie: `${name}=${encodeURIComponent(value)}; session=${value}`,
        }),
      ).toEqual(ANONYMOUS);

      const json = { name: 'Pen', barcode: shop.newBarcode(), price: 1, [name]: value };
      expect(seen(await shop.rest('POST', '/api/v1/shop/product/', { json }))).toEqual(NONE);
      expect(await shop.sql('select pk from product')).toEqual([]);

      for (const body of [
        { query: ME, [name]: value },
        { query: ME, variables: { [name]: value } },
        { query: ME, extensions: { [name]: value } },
      ]) {
        expect((await shop.rest('POST', `/graphql?${query}`, { json: body })).body).toEqual({
          data: { me: null },
        });
      }
    }
  });

  test.each([
    'X-Authorization',
    'Proxy-Authorization',
    'X-Access-Token',
    'X-Auth-Token',
    'Token',
    'X-Forwarded-Authorization',
    'Authorization-Bearer',
  ])('J32 a token in the header %s is ignored', async (name) => {
    expect(
      await tryCredentials(shop, { [name]: `Bearer ${shop.tokenOf(await shop.makeUser())}` }),
    ).toEqual(ANONYMOUS);
  });

  const message = 'Duplicate Authorization header';
  const errors = {
    detail: message,
    data: message,
    errors: [{ message, extensions: { code: 'BAD_REQUEST' } }],
  };

  test.each<[string, keyof typeof errors, string, string?]>([
    ['REST', 'detail', 'GET /users/me/ HTTP/1.1'],
    ['a public endpoint', 'detail', 'GET /api/v2/shop/products HTTP/1.1'],
    ['the whole list', 'detail', 'GET /api/v1/shop/products HTTP/1.1'],
    ['an optimized path', 'detail', 'GET /api/v1/shop/product/1 HTTP/1.1'],
    [
      'the creation of a product',
      'detail',
      'POST /api/v1/shop/product/ HTTP/1.1\r\nContent-Type: application/json',
      '{"name":"Pen","barcode":"4006381333931","price":1}',
    ],
    [
      'a login',
      'data',
      'POST /api/v2/auth/login HTTP/1.1\r\nContent-Type: application/json',
      JSON.stringify({ username: 'alice', password: PASSWORD }),
    ],
    [
      'GraphQL by GET',
      'errors',
      `GET /graphql?query=${encodeURIComponent(ME)} HTTP/1.1\r\napollo-require-preflight: true`,
    ],
    [
      'GraphQL by POST',
      'errors',
      'POST /graphql HTTP/1.1\r\nContent-Type: application/json',
      JSON.stringify({ query: ME }),
    ],
  ])(
    'J33 two Authorization headers are 400 at %s, whichever is valid',
    async (_name, key, head, body = '') => {
      await shop.makeProduct();
      const user = await shop.makeUser({ username: 'alice', scopes: ['products:write'] });
      const good = `Bearer ${shop.tokenOf(user)}`;
      const send = (...values: string[]) => {
        const headers = ['Host: shop', 'Connection: close', `Content-Length: ${body.length}`];
        return shop.raw([head, ...headers, ...values].join('\r\n') + `\r\n\r\n${body}`);
      };
      expect(await send(`Authorization: ${good}`)).toMatch(/^HTTP\/1\.1 20[01] /);
      for (const two of [
        [`Authorization: ${good}`, 'Authorization: Bearer x'],
        ['Authorization: Bearer x', `Authorization: ${good}`],
        [`Authorization: ${good}`, `Authorization: ${good}`],
        [`Authorization: ${good}`, `authorization: ${good}`],
        ['Authorization: Basic eDp5', `AUTHORIZATION: ${good}`],
        [`Authorization: ${good}`, 'Authorization:'],
        ['Authorization:', `Authorization: ${good}`],
        [`Authorization: ${good}`, 'X-Between: 1', `Authorization: ${good}`],
      ]) {
        const answer = await send(...two);
        expect(answer).toMatch(
          /^HTTP\/1\.1 400 Bad Request\r\n(.*\r\n)*Content-Type: application\/json/,
        );
        expect(answer.split('\r\n\r\n')[1]).toBe(JSON.stringify({ [key]: errors[key] }));
      }
    },
  );
});

/** Sends the text in pieces until a response arrives: later data could reset the connection. */
async function sendUntilAnswered(text: string): Promise<string> {
  const socket = connect(shop.port, '127.0.0.1');
  const answer: string[] = [];
  socket.on('data', (piece: Buffer) => answer.push(piece.toString('latin1')));
  const closed = once(socket, 'close');
  for (let at = 0; at < text.length && answer.length === 0 && !socket.closed; at += 4_096) {
    socket.write(text.slice(at, at + 4_096));
    await setImmediate();
  }
  await closed;
  return answer.join('');
}

function seen({
  status,
  headers,
  text,
}: {
  status: number;
  headers: Headers;
  text: string;
}): unknown[] {
  return [status, headers.get('WWW-Authenticate'), text];
}

/** Returns a valid token of this length. */
function ofLength(length: number, claims: Values): string {
  for (const kid of ['', 'k', 'kk', 'kkk']) {
    const spare = Math.floor(((length - forge({ ...claims, pad: '' }, { kid }).length) * 3) / 4);
    for (const size of [spare - 1, spare, spare + 1]) {
      const token = forge({ ...claims, pad: 'p'.repeat(size) }, { kid });
      if (token.length === length) return token;
    }
  }
  throw new Error(`no token has ${length} characters`);
}

function jsonSerialization(token: string, isGeneral: boolean): string {
  const [header, payload, signature] = token.split('.');
  return JSON.stringify(
    isGeneral
      ? { payload, signatures: [{ protected: header, signature }] }
      : { payload, protected: header, signature },
  );
}
