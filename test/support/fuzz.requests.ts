import { createHmac } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import fc, { type Arbitrary } from 'fast-check';
import type { Route } from '../../src/api/route.ts';
import { TEST_SECRET } from './databases.ts';
import type { FuzzRequest } from './fuzz.ts';
import { anyJson, anyText, damaged, endless, numberText, objectOf } from './fuzz.values.ts';

/** Values of each field of an endpoint's body, query and path, as they are written there. */
export type Fields = Record<string, Arbitrary<string>>;

type Headers = Record<string, string>;

/** Credentials for requests. */
export interface FuzzCredentials {
  token: string;
  username: string;
  sessionKeys: readonly string[];
}

/** Maximum length of an encoded value: the head of a request has room for 16 KB. */
const MAX_ENCODED = 1_000;
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const OTHER_METHODS = ['HEAD', 'OPTIONS', 'PUT', 'PATCH', 'DELETE', 'GET', 'POST'];
const MEDIA_TYPES = [
  JSON_TYPE,
  FORM_TYPE,
  'application/problem+json',
  'text/plain',
  '*/*',
  '',
  'application/json; charset=utf-8',
  'application/json; charset=utf-16',
  'application/json, text/plain',
  'multipart/form-data; boundary=x',
  'a/b;q=0.1,'.repeat(50),
];
const PACKERS = [gzipSync, deflateSync, brotliCompressSync];
const ENCODINGS = ['gzip', 'deflate', 'br', 'zstd', 'identity', 'gzip, gzip', 'x', ''];

/** Valid text of a header value: printable ASCII and Latin-1. */
const headerText = fc.string({
  unit: fc
    .integer({ min: 0x20, max: 0xff })
    .filter((code) => code !== 0x7f)
    .map((code) => String.fromCharCode(code)),
  maxLength: 40,
});

/** Requests to an endpoint: mostly valid, with everything that a client may do to them. */
export function requestsTo(
  endpoint: Route,
  fields: Fields,
  keys: FuzzCredentials,
): Arbitrary<FuzzRequest> {
  const method = fc.oneof(
    { weight: 30, arbitrary: fc.constant<string>(endpoint.method) },
    { weight: 1, arbitrary: fc.constantFrom(...OTHER_METHODS) },
  );
  return fc
    .tuple(
      method,
      pathOf(endpoint, fields),
      payloadOf(endpoint, fields),
      ownHeaders(endpoint, keys),
      headersOf(keys),
    )
    .map(([sentMethod, path, { headers: typed, ...payload }, own, others]): FuzzRequest => ({
      method: sentMethod,
      path,
      ...payload,
      headers: { ...own, ...typed, ...others },
    }));
}

function pathOf({ path, input }: Route, fields: Fields): Arbitrary<string> {
  const own = path
    .replace(/\/$/, '')
    .split(/(\{\w+\})/)
    .map((piece) => {
      const name = /^\{(\w+)\}$/.exec(piece)?.[1];
      return name === undefined
        ? fc.constant(piece)
        : rarely(10, (fields[name] ?? fc.constant('1')).map(encoded), inUrl);
    });
  const query = fc.oneof(
    { weight: input?.query ? 0 : 8, arbitrary: fc.constant('') },
    { weight: 2, arbitrary: queryOf(fields) },
  );
  return fc
    .tuple(fc.tuple(...own), fc.constantFrom('', '', '', '/', '?'), query)
    .map(([pieces, end, search]) => `${pieces.join('')}${end}${search}`);
}

function queryOf(fields: Fields): Arbitrary<string> {
  const own = Object.entries(fields).map(([name, value]) =>
    rarely(8, value.map(encoded), inUrl).map((text) => `${name}=${text}`),
  );
  const others = fc.tuple(inUrl, inUrl).map(([name, value]) => `${name}=${value}`);
  const parameters = fc.array(fc.oneof(...own, others), { maxLength: 3 });
  // A login needs all of its fields at once.
  const all = fc
    .tuple(fc.tuple(...own), rarely(6, fc.constant([]), fc.tuple(others)))
    .map((parts) => parts.flat());
  return fc
    .oneof(parameters, all)
    .map((texts) => (texts.length === 0 ? '' : `?${texts.join('&')}`));
}

// Correctly encoded, or not decodable.
const inUrl: Arbitrary<string> = fc.oneof(
  fc.oneof(anyText, numberText, anyJson).map((text) => encoded(text)),
  fc.constantFrom('%', '%zz', '%FF', '..%2f..', '+', '1e3', '9'.repeat(1_000)),
);

/** A body with the headers that describe it. */
type Payload = Pick<FuzzRequest, 'headers' | 'body' | 'text'>;

function payloadOf({ input, bodyOptional }: Route, fields: Fields): Arbitrary<Payload> {
  const none = fc.constant<Payload>({ headers: {} });
  const json = bodiesOf(JSON_TYPE, objectOf(fields), fc.oneof(anyJson, endless));
  if (input?.form)
    return fc.oneof(
      { weight: 20, arbitrary: bodiesOf(FORM_TYPE, formOf(fields), fc.oneof(endless, anyText)) },
      { weight: 1, arbitrary: json },
    );
  if (input?.json)
    return fc.oneof(
      { weight: 20, arbitrary: json },
      { weight: bodyOptional ? 6 : 1, arbitrary: none },
    );
  // An endpoint without a body gets one now and then.
  return fc.oneof({ weight: 20, arbitrary: none }, { weight: 1, arbitrary: json });
}

function bodiesOf(
  type: string,
  good: Arbitrary<string>,
  bad: Arbitrary<string>,
): Arbitrary<Payload> {
  const plain = (text: string): Payload => ({
    headers: { 'Content-Type': type },
    body: text,
    text,
  });
  const packed = (headers: Headers, body: string | Buffer, text: string): Payload => ({
    headers: { 'Content-Type': type, ...headers },
    body,
    text,
  });
  return fc.oneof(
    { weight: 24, arbitrary: good.map(plain) },
    { weight: 3, arbitrary: bad.map(plain) },
    { weight: 4, arbitrary: damaged(good).map((bytes) => packed({}, bytes, bytes.toString())) },
    {
      weight: 1,
      arbitrary: good.map((text) => packed({ 'Transfer-Encoding': 'chunked' }, text, text)),
    },
    { weight: 1, arbitrary: good.map((text) => packed({}, `\ufeff${text}`, text)) },
    { weight: 1, arbitrary: good.map((text) => packed({}, Buffer.from(text, 'utf16le'), text)) },
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          good,
          fc.constantFrom(...PACKERS.entries()),
          rarely(4, fc.constant(undefined), fc.constantFrom(...ENCODINGS)),
        )
        .map(([text, [index, pack], other]) =>
          packed({ 'Content-Encoding': other ?? String(ENCODINGS[index]) }, pack(text), text),
        ),
    },
  );
}

function formOf(fields: Fields): Arbitrary<string> {
  const own = Object.entries(fields).map(([name, value]) =>
    fc.oneof(
      { weight: 12, arbitrary: value.map((text) => `${name}=${encoded(text)}`) },
      { weight: 1, arbitrary: inUrl.map((text) => `${name}=${text}`) },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          '',
          name,
          `${name}=`,
          `${name}[]=1`,
          `${name}[a]=1`,
          `${name}=1&${name}=2`,
          '__proto__=1',
          'a=1&'.repeat(12),
        ),
      },
    ),
  );
  return fc.tuple(...own).map((parts) => parts.filter((part) => part !== '').join('&'));
}

// Headers of a valid client besides those of the body.
function ownHeaders({ access }: Route, { token }: FuzzCredentials): Arbitrary<Headers> {
  if (access === 'login') return fc.constant({});
  return rarely(
    9,
    fc.constant<Headers>({ Authorization: `Bearer ${token}` }),
    fc.constant<Headers>({}),
  );
}

/** Unnecessary headers, mostly none. */
export function headersOf({ token, username, sessionKeys }: FuzzCredentials): Arbitrary<Headers> {
  const key = fc.oneof(
    fc.constantFrom(...sessionKeys),
    fc.constantFrom(...sessionKeys).map((text) => text.slice(1)),
    headerText,
  );
  const authorization = fc.oneof(
    fc.constantFrom(
      `Bearer ${token}`,
      `bearer  ${token}`,
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${'a'.repeat(6_000)}`,
      'Bearer',
      token,
      'Basic',
      '',
    ),
    headerText.map((text) => `Bearer ${text}`),
    forgedToken(username).map((text) => `Bearer ${text}`),
    fc
      .tuple(anyText, anyText)
      .map((pair) => `Basic ${Buffer.from(pair.join(':')).toString('base64')}`),
    headerText,
  );
  const others: Record<string, Arbitrary<string>> = {
    Authorization: authorization,
    'X-SESSION-ID': key,
    'X-SESSIONID': key,
    'Idempotency-Key': fc.oneof(
      fc.constantFrom('a', 'b', 'c', '', 'x'.repeat(255), 'x'.repeat(256), 'a b', '\u00e4'),
      headerText,
    ),
    Accept: fc.oneof(fc.constantFrom(...MEDIA_TYPES), headerText),
    'Content-Type': fc.oneof(fc.constantFrom(...MEDIA_TYPES), headerText),
    'Content-Encoding': fc.constantFrom(...ENCODINGS),
    'X-Forwarded-For': fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc.constantFrom('::ffff:1.2.3.4', '1.2.3.4:80', 'unknown', ',,', '127.0.0.1, 127.0.0.1'),
      headerText,
    ),
    'Access-Control-Request-Headers': fc.oneof(
      fc.constantFrom('Authorization, x-session-id', ',,,', '*'),
      headerText,
    ),
    Host: fc.constantFrom('', 'evil.example', '[::1', 'a:b:c', '127.0.0.1:99999'),
  };
  const header = fc.oneof(
    ...Object.entries(others).map(([name, value]) => value.map((text) => [name, text] as const)),
  );
  const some = fc
    .array(header, { maxLength: 3 })
    .map((pairs): Headers => Object.fromEntries(pairs));
  return rarely(2, fc.constant<Headers>({}), some);
}

/** A validly signed token with any claims. */
function forgedToken(username: string): Arbitrary<string> {
  const claims = objectOf({
    sub: fc.constantFrom(JSON.stringify(username), '"nobody"'),
    exp: fc.constantFrom('9999999999', '99999999999999999', '1', '9999999999.5'),
    ...Object.fromEntries(
      ['iat', 'nbf', 'sid', 'aud', 'iss', 'scopes', 'jti'].map((name) => [name, anyJson]),
    ),
  });
  const header = objectOf({
    alg: fc.constant('"HS256"'),
    typ: fc.constantFrom('"JWT"', '"refresh+jwt"'),
    kid: anyJson,
    crit: anyJson,
  });
  const headers = rarely(3, fc.constant('{"alg":"HS256","typ":"JWT"}'), header);
  return fc
    .tuple(headers, claims)
    .map((parts) => parts.map((text) => Buffer.from(text).toString('base64url')).join('.'))
    .filter((text) => text.length < 6_000)
    .map((text) => `${text}.${createHmac('sha256', TEST_SECRET).update(text).digest('base64url')}`);
}

function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).slice(0, MAX_ENCODED);
}

function rarely<A, B>(weight: number, usual: Arbitrary<A>, other: Arbitrary<B>): Arbitrary<A | B> {
  return fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: other });
}
