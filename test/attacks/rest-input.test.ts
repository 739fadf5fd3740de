import { gzipSync } from 'node:zlib';
import fc, { type Arbitrary } from 'fast-check';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { openapiOf } from '../../src/rest/openapi.ts';
import { anyJson } from '../support/fuzz.values.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

// What the server does with a body before an endpoint sees it, on every endpoint with a body. The
// fields come from the schemas of the endpoints.

const shop = useShop();

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MULTIPART_TYPE = 'multipart/form-data; boundary=the-boundary';
const KB = 1024;
const MB = 1024 * KB;
const UNREADABLE = [400, 'The request cannot be read'] as const;
const TOO_LARGE = [413, 'The request is too large'] as const;
const NOT_SUPPORTED = [415, 'This content type, charset or encoding is not supported'] as const;
const V2_LOGIN = '/api/v2/auth/login';
const PRODUCT = '/api/v1/shop/product/';

type Kind = 'form' | 'json' | 'graphql';

const TARGETS: readonly { path: string; kind: Kind; limit: number }[] = [
  ...['/token', '/login'].map((path) => ({ path, kind: 'form' as const, limit: 4 * KB })),
  ...['/session/login', '/session/logout', V2_LOGIN, PRODUCT].map((path) => ({
    path,
    kind: 'json' as const,
    limit: 16 * KB,
  })),
  { path: '/graphql', kind: 'graphql', limit: 100 * KB },
];
type Target = (typeof TARGETS)[number];
type Body = string | Buffer;

let caller: User;

beforeEach(async () => {
  caller = await shop.makeUser({ scopes: ['products:write'] });
});

/** The outcome at an endpoint: served, or the status and the message of the error. */
type Outcome = 'served' | readonly [number, unknown];

interface Case {
  rule: string;
  body?: Body | ((good: string, limit: number) => Body);
  type?: string;
  encoding?: string;
  /** The kinds of endpoints to which it is sent. Default: all. */
  kinds?: readonly Kind[];
  outcome: Outcome;
}

const JSON_KINDS = ['json', 'graphql'] as const;
const messageOf = (types: string): Outcome => [415, `The content type must be ${types} in UTF-8`];

const NOT_A_FORM = messageOf(`${FORM_TYPE} or multipart/form-data`);

const CASES: Case[] = [
  ...['{"a":', '{"a":1,}', '{/* a */"a":1}', '{"a":NaN}', '{a:1}', '{"a":1}\0', '{}\n{}', ' '].map(
    (body): Case => ({ rule: 'R1 invalid JSON', body, kinds: JSON_KINDS, outcome: UNREADABLE }),
  ),
  ...[
    Buffer.from('{"a":"é"}', 'latin1'),
    Buffer.of(0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x3a, 0x31, 0x7d),
  ].map((body): Case => ({ rule: 'R1 bytes that are not UTF-8', body, outcome: UNREADABLE })),
  {
    rule: 'R1 a byte order mark',
    body: (good) => `\ufeff${good}`,
    kinds: JSON_KINDS,
    outcome: 'served',
  },
  ...['1', '"x"', 'null '].map((body): Case => ({
    rule: 'R2 a scalar',
    body,
    kinds: body === 'null ' ? ['graphql'] : JSON_KINDS,
    outcome: UNREADABLE,
  })),
  {
    rule: 'R2 a list',
    body: '[{"username":"a","password":"b"}]',
    kinds: ['json'],
    outcome: [
      422,
      [{ type: 'dictionary_type', loc: ['body'], msg: 'Input should be a valid dictionary' }],
    ],
  },
  ...['text/plain', 'application/xml', 'application/vnd.api+json', '{}'].flatMap((type): Case[] => [
    { rule: 'R3 another type', type, kinds: JSON_KINDS, outcome: messageOf(JSON_TYPE) },
    { rule: 'R3 another type', type, kinds: ['form'], outcome: NOT_A_FORM },
  ]),
  ...[FORM_TYPE, MULTIPART_TYPE].map((type): Case => ({
    rule: 'R3 the type of the other API',
    type,
    kinds: JSON_KINDS,
    outcome: messageOf(JSON_TYPE),
  })),
  {
    rule: 'R3 the type of the other API',
    type: JSON_TYPE,
    kinds: ['form'],
    outcome: NOT_A_FORM,
  },
  ...['utf-7', 'utf-16', 'gbk', 'x'].map((charset): Case => ({
    rule: 'R3 another charset',
    type: `${JSON_TYPE}; charset=${charset}`,
    kinds: JSON_KINDS,
    outcome: messageOf(JSON_TYPE),
  })),
  ...['utf8', 'UTF-8', '"utf-8"', 'unicode-1-1-utf-8', 'ISO-8859-1', 'windows-1252'].flatMap(
    (charset): Case[] => [
      {
        rule: 'R3 a supported charset',
        type: `${JSON_TYPE}; charset=${charset}`,
        kinds: JSON_KINDS,
        outcome: 'served',
      },
      {
        rule: 'R3 a supported charset',
        type: `${FORM_TYPE}; charset=${charset}`,
        kinds: ['form'],
        outcome: 'served',
      },
    ],
  ),
  {
    rule: 'R4 as many bytes as the limit',
    body: (good, limit) => padded(good, limit),
    outcome: 'served',
  },
  ...[1, MB].map((over): Case => ({
    rule: `R4 ${over} bytes more than the limit`,
    body: (good, limit) => padded(good, limit + over),
    outcome: TOO_LARGE,
  })),
  { rule: 'R5 gzip', body: (good) => gzipSync(good), encoding: 'gzip', outcome: 'served' },
  {
    rule: 'R5 gzip that expands beyond the limit',
    body: gzipSync(' '.repeat(10 * MB)),
    encoding: 'gzip',
    outcome: TOO_LARGE,
  },
  {
    rule: 'R5 gzip of more than 16 KB that expands to less than the limit',
    // Empty members (RFC 1952, 2.2).
    body: (good) => Buffer.concat([gzipSync(good), ...Array<Buffer>(900).fill(gzipSync(''))]),
    encoding: 'gzip',
    outcome: TOO_LARGE,
  },
  { rule: 'R5 corrupt gzip', encoding: 'gzip', outcome: UNREADABLE },
  {
    rule: 'R5 truncated gzip',
    body: (good) => gzipSync(good).subarray(0, -4),
    encoding: 'gzip',
    outcome: UNREADABLE,
  },
  ...['foo', 'gzip, gzip', 'br', 'zstd'].map((encoding): Case => ({
    rule: 'R5 another encoding',
    encoding,
    outcome: NOT_SUPPORTED,
  })),
  ...['username=%zz&password=x', 'username=%ff&password=%ff'].map((body): Case => ({
    rule: 'R23 an invalid escape',
    body,
    kinds: ['form'],
    outcome: [401, 'Incorrect username or password'],
  })),
  ...['a', '__proto__=x', 'a[]=1'].map((parameter): Case => ({
    rule: 'R23 more than ten parameters',
    body: (good) => [good, ...Array<string>(9).fill(parameter)].join('&'),
    kinds: ['form'],
    outcome: TOO_LARGE,
  })),
  {
    rule: 'R10 unknown fields',
    body: (good) => `${good}&disabled=true&pk=1&hashed_password=x`,
    kinds: ['form'],
    outcome: 'served',
  },
  {
    rule: 'R23 a form in parts',
    body: (good) => partsOf(good),
    type: MULTIPART_TYPE,
    kinds: ['form'],
    outcome: 'served',
  },
  {
    rule: 'R23 parts without an end',
    body: (good) => partsOf(good).slice(0, -9),
    type: MULTIPART_TYPE,
    kinds: ['form'],
    outcome: UNREADABLE,
  },
];

test.each(CASES.map((one) => [`${one.rule} (${one.type ?? one.encoding ?? ''})`, one] as const))(
  '%s has one outcome at every endpoint',
  async (_rule, { body, type, encoding, kinds, outcome }) => {
    for (const target of TARGETS.filter(({ kind }) => kinds?.includes(kind) ?? true)) {
      const good = await goodBody(target);
      const sent = typeof body === 'function' ? body(good, target.limit) : (body ?? good);
      const answer = await post(target, sent, type, encoding);
      const { detail, data, errors } = answer.body;
      const found = [answer.status, detail ?? data ?? errors?.[0].message];
      if (outcome === 'served')
        expect([target.path, found[0]]).toEqual([target.path, target.path === PRODUCT ? 201 : 200]);
      else expect([target.path, ...found]).toEqual([target.path, ...outcome]);
    }
  },
);

test('R5 gzip in chunks of more than 16 KB is 413 before its end', async () => {
  const members = Buffer.concat(Array<Buffer>(900).fill(gzipSync('')));
  const body = new ReadableStream({ start: (sent) => sent.enqueue(members) });
  const headers = { 'Content-Type': JSON_TYPE, 'Content-Encoding': 'gzip' };
  const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit;
  expect((await fetch(`${shop.url}/graphql`, init)).status).toBe(413);
});

test('R3 a body in windows-1252 is decoded', async () => {
  const name = 'Gr\u00fcn \u0080';
  const json = JSON.stringify({ name, barcode: shop.newBarcode(), price: 1 });
  const created = await shop.rest('POST', PRODUCT, {
    as: caller,
    body: new Uint8Array(Buffer.from(json, 'latin1')),
    headers: { 'Content-Type': `${JSON_TYPE}; charset=ISO-8859-1` },
  });
  expect(created.body.name).toBe('Grün €');
});

describe('an empty body', () => {
  test.each([
    ['no length', ''],
    ['length 0', 'Content-Length: 0\r\n'],
    ['no chunk', 'Transfer-Encoding: chunked\r\n'],
    ['an unsupported type', 'Content-Type: text/plain\r\nContent-Length: 0\r\n'],
  ])('R2 is 422 where a body is needed, else a logout: %s', async (_what, framing) => {
    for (const { path, kind } of TARGETS) {
      const status = path === V2_LOGIN ? 200 : kind === 'graphql' ? 400 : 422;
      const { key } = await sessions.open(shop.context(), caller, null);
      const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX-SESSION-ID: ${key}\r\n`;
      const end = framing.startsWith('Transfer') ? '0\r\n\r\n' : '';
      expect([path, await shop.raw(`${head}${framing}\r\n${end}`)]).toEqual([
        path,
        expect.stringMatching(new RegExp(`^HTTP/1\\.1 ${status} `)),
      ]);
    }
  });

  test('R2 JSON null counts as no body where the body is optional, and is 400 elsewhere', async () => {
    const { key: sessionKey } = await sessions.open(shop.context(), caller, null);
    const request = { sessionKey, body: 'null', headers: { 'Content-Type': JSON_TYPE } };
    expect((await shop.rest('POST', '/session/logout', request)).status).toBe(400);
    expect((await shop.rest('POST', V2_LOGIN, request)).status).toBe(200);
  });
});

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  maximum?: number;
}

/** The JSON bodies of the document, by path. */
function jsonBodies(): [string, Schema][] {
  const document = openapiOf(shop.config, features) as unknown as {
    paths: Record<
      string,
      { post?: { requestBody?: { content: Record<string, { schema: any }> } } }
    >;
    components: { schemas: Record<string, Schema> };
  };
  return Object.entries(document.paths).flatMap(([path, { post: operation }]) => {
    const schema = operation?.requestBody?.content[JSON_TYPE]?.schema;
    const name = String(schema?.$ref).split('/').at(-1) ?? '';
    return schema ? [[path, document.components.schemas[name] ?? schema]] : [];
  });
}

/** JSON values that the schema of a field rejects. */
function invalid({ type, minLength = 0, maxLength, pattern, maximum }: Schema): Arbitrary<string> {
  const types = new Set([type].flat());
  const others = anyJson.filter((json) => {
    const value: unknown = JSON.parse(json);
    return !types.has(value === null ? 'null' : typeof value);
  });
  const texts: Arbitrary<string>[] = [];
  if (minLength > 0) texts.push(fc.constantFrom('', ' '));
  if (pattern !== undefined)
    texts.push(fc.string().filter((text) => !new RegExp(pattern).test(text)));
  else if (maxLength !== undefined) texts.push(fc.constant('x'.repeat(maxLength * 20)));
  return fc.oneof(
    others,
    ...texts.map((text) => text.map((value) => JSON.stringify(value))),
    ...(maximum === undefined ? [] : [fc.constantFrom('-0.01', '0.001', `${maximum}1`, '1e400')]),
  );
}

test('R2 each field of each schema is checked: 422 names it, repeats no input, and stores nothing', async () => {
  for (const [path, { properties = {}, required = [] }] of jsonBodies()) {
    const target = TARGETS.find((one) => one.path === path);
    if (!target) throw new Error(`${path} is missing in this file`);
    // At a login, wrong texts are wrong credentials.
    const isLogin = path.endsWith('login');
    for (const name of isLogin ? ['username'] : Object.keys(properties)) {
      const values = invalid(properties[name] ?? {}).filter(
        (json) => path === PRODUCT || !json.startsWith('"'),
      );
      const good = JSON.parse(await goodBody(target)) as Record<string, unknown>;
      const without = Object.entries({ password: 'x', ...good }).filter(([own]) => own !== name);
      const rest = without.map((entry) => entry.map((text) => JSON.stringify(text)).join(':'));
      const send = (members: string[]) => post(target, `{${members.join()}}`);
      await fc.assert(
        fc.asyncProperty(values, async (json) => {
          const { status, body, text } = await send([...rest, `"${name}":${json}`]);
          expect([path, name, json, status]).toEqual([path, name, json, 422]);
          expect(body.detail).toEqual([
            { type: expect.any(String), loc: ['body', name], msg: expect.any(String) },
          ]);
          if (json.length > 20) expect(text).not.toContain(json);
        }),
        { numRuns: 30, seed: 1 },
      );
      if (required.includes(name))
        expect((await send(rest)).body.detail).toEqual([
          { type: 'missing', loc: ['body', name], msg: 'Field required' },
        ]);
    }
  }
  expect(await shop.sql('select * from product')).toEqual([]);
});

test('R10 members that no schema names change nothing: any JSON beside a valid body', async () => {
  const others = ['pk', 'id', 'hashed_password', 'disabled', 'scopes', 'sid', '__proto__'];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...others), anyJson, async (name, value) => {
      for (const target of TARGETS.filter(
        ({ kind, path }) => kind === 'json' && path !== '/session/login',
      )) {
        const body = `{${JSON.stringify(name)}:${value},${(await goodBody(target)).slice(1)}`;
        const { status, text } = await post(target, body);
        expect([200, 201]).toContain(status);
        expect(text).not.toContain('hashed');
      }
    }),
    { numRuns: 20, seed: 1 },
  );
  expect(await shop.sql('select distinct name from product')).toEqual([{ name: 'Pen' }]);
  expect(await shop.sql('select disabled, scopes from "user"')).toEqual([
    { disabled: false, scopes: ['products:write'] },
  ]);
});

// Reading exact numbers recurses into every level; too deep a body must not be a server error.
test('R1 the deepest nesting that the size limit allows is no server error', async () => {
  for (const target of TARGETS.filter(({ kind }) => kind !== 'form'))
    for (const deep of [
      '['.repeat(7_000) + ']'.repeat(7_000),
      `${'{"a":'.repeat(2_500)}1${'}'.repeat(2_500)}`,
    ])
      for (const body of [`[${deep}]`, `{"name":${deep}}`])
        expect([400, 401, 422]).toContain((await post(target, body)).status);
});

test.each<[string, string, string, number]>([
  [PRODUCT, '"name":""', '"name":"Pen"', 201],
  [PRODUCT, '"name":"Pen"', '"na\\u006de":""', 422],
  ['/graphql', '"query":"{ none }"', '"query":"{ me { username } }"', 200],
])(
  'R8 of duplicate members the last one counts: POST %s {%s,%s} is %i',
  async (path, first, last, status) => {
    const target = TARGETS.find((one) => one.path === path) as Target;
    const rest = path === PRODUCT ? `,"barcode":"${shop.newBarcode()}","price":1` : '';
    expect((await post(target, `{${first},${last}${rest}}`)).status).toBe(status);
  },
);

test('R22 Expect: 100-continue is served, and any other expectation is 417', async () => {
  const send = (expected: string) =>
    shop.raw(
      `POST /session/login HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nExpect: ${expected}\r\nContent-Length: 2\r\nContent-Type: ${JSON_TYPE}\r\n\r\n{}`,
    );
  expect(await send('42')).toMatch(/^HTTP\/1\.1 417 /);
  expect(await send('100-continue')).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 422 /);
});

describe('R13: methods and paths', () => {
  const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY'];
  const send = (method: string, path: string) =>
    shop.raw(`${method} ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`);

  /** The methods of every path. */
  const methodsByPath = () => {
    const routes = features.flatMap(({ routes: own }) => own?.(shop.config) ?? []);
    const allowed = new Map([['/graphql', ['GET', 'POST']]]);
    for (const { method, path } of routes) {
      const filled = path.replace('{pk}', '1');
      allowed.set(filled, [...(allowed.get(filled) ?? []), method].toSorted());
    }
    return allowed;
  };

  test('H1 OPTIONS of every path is 200 with its methods, without a body or a statement', async () => {
    const probes = ['/livez', '/readyz'].map((path) => [path, ['GET']] as const);
    for (const [path, methods] of [...methodsByPath(), ...probes])
      for (const form of [path, `${path}?page=0&page=x`]) {
        const { answer, statements } = await recordStatements(() => shop.rest('OPTIONS', form));
        const { status, text, headers } = answer;
        expect([form, status, text, statements]).toEqual([form, 200, '', []]);
        expect([headers.get('Content-Length'), headers.get('Content-Type')]).toEqual(['0', null]);
        for (const name of ['Allow', 'Access-Control-Allow-Methods'])
          expect(headers.get(name)).toBe([...methods, 'OPTIONS'].join(', '));
      }
  });

  test('R13 every path rejects every other method with 405 and Allow, and repeats no input', async () => {
    const allowed = methodsByPath();
    expect(
      [...allowed]
        .flatMap(([path, methods]) => (methods.includes('POST') ? [path] : []))
        .toSorted(),
    ).toEqual(TARGETS.map(({ path }) => path).toSorted());
    for (const [path, methods] of allowed)
      for (const method of METHODS.filter((name) => !methods.includes(name))) {
        const answer = await send(method, `${path}?x=canary`);
        expect(answer).toMatch(/^HTTP\/1\.1 405 /);
        expect(answer).toContain(`\r\nAllow: ${[...methods, 'OPTIONS'].join(', ')}\r\n`);
        expect(answer).toContain(
          path === '/graphql'
            ? 'METHOD_NOT_ALLOWED'
            : JSON.stringify(`Method "${method}" not allowed.`),
        );
        expect(answer).not.toContain('canary');
      }
  });

  test.each([
    '/nothing',
    '/api/v1/shop/products/1',
    '/GraphQL',
    '/__proto__',
    '//token',
    '/.env',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/metrics',
    '/%3Cscript%3Ecanary%3C/script%3E',
    '/%zz',
    '/users/%ff',
    `/${'x'.repeat(8_000)}`,
  ])('R13 %s is 404 in JSON by every method, and not repeated', async (path) => {
    for (const method of [...METHODS, 'OPTIONS']) {
      const answer = await send(method, path);
      expect(answer).toMatch(
        /^HTTP\/1\.1 404 (.*\r\n)*Content-Type: application\/json; charset=utf-8\r\n/,
      );
      expect(answer.split('\r\n\r\n')[1]).toBe('{"detail":"Not found"}');
      expect(answer).not.toMatch(/\r\n(Allow|Access-Control-Allow-(Methods|Headers)):/i);
    }
  });
});

/** Returns a valid body for the endpoint. */
async function goodBody({ path, kind }: Target): Promise<string> {
  const login = { username: caller.username, password: PASSWORD };
  if (kind === 'form') return new URLSearchParams(login).toString();
  if (kind === 'graphql') return '{"query":"{ me { username } }"}';
  if (path === '/session/login') return JSON.stringify(login);
  if (path === PRODUCT)
    return JSON.stringify({ name: 'Pen', barcode: shop.newBarcode(), price: 1 });
  return JSON.stringify({ session_key: (await sessions.open(shop.context(), caller, null)).key });
}

/** Returns a valid body, padded to this many bytes by an unknown member. */
function padded(good: string, length: number): string {
  return good.startsWith('{')
    ? `{"pad":"${'x'.repeat(length - good.length - 9)}",${good.slice(1)}`
    : `${good}&pad=${'x'.repeat(length - good.length - 5)}`;
}

/** Returns the form as multipart/form-data. */
function partsOf(form: string): string {
  const parts = [...new URLSearchParams(form)].map(
    ([name, value]) =>
      `--the-boundary\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  );
  return `${parts.join('')}--the-boundary--\r\n`;
}

function post(
  { path, kind }: Target,
  body: Body,
  type = kind === 'form' ? FORM_TYPE : JSON_TYPE,
  encoding?: string,
): Promise<Answer> {
  return shop.rest('POST', path, {
    as: caller,
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: {
      'Content-Type': type,
      ...(encoding !== undefined && { 'Content-Encoding': encoding }),
    },
  });
}
