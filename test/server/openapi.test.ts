import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Validator } from '@seriousme/openapi-schema-validator';
import { features } from '../../src/features.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { readConfig } from '../../src/core/config.ts';
import { openapiOf, openapiText } from '../../src/rest/openapi/openapi.ts';
import { OpenApiChecker, Schemas } from '../support/openapi.ts';
import { PASSWORD, PUBLIC_URL, Shop, useShop, type RequestOptions } from '../support/shop.ts';

const shop = useShop();
const based = new Shop({
  BASE_PATH: '/shop',
  SESSION_PREFIX: '/accounts/session',
  V1_DEPRECATION: '2027-01-31',
});
const closed = new Shop({ GRAPHQL_EXPLORER: 'false' });
beforeAll(() => Promise.all([based.start(), closed.start()]));
afterAll(() => Promise.all([based.stop(), closed.stop()]));

test('openapi.json matches the code; npm run -s openapi > openapi.json updates it', async () => {
  const text = openapiText(
    readConfig({}, () => ''),
    features,
  );
  expect(await readFile('openapi.json', 'utf8')).toBe(text);
});

test.each([
  ['by default', () => shop],
  ['under BASE_PATH', () => based],
])('/openapi.json is valid OpenAPI 3.1 to a public validator: %s', async (_how, at) => {
  const { status, headers, body } = await at().rest('GET', '/openapi.json');
  expect([status, headers.get('content-type'), body.openapi]).toEqual([
    200,
    'application/json; charset=utf-8',
    '3.1.0',
  ]);
  expect(await new Validator().validate(body)).toEqual({ valid: true });
});

test('the validator rejects an invalid document', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  expect(
    await new Validator().validate({ ...body, paths: { '/token': { post: { responses: 7 } } } }),
  ).toMatchObject({ valid: false });
});

test('it describes every endpoint and nothing else, each under its own id', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const operations = Object.entries<Record<string, { operationId: string }>>(body.paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods).map(([method, { operationId }]) => ({
        endpoint: `${method.toUpperCase()} ${path}`,
        operationId,
      })),
  );
  const endpoints = features
    .flatMap(({ routes }) => routes?.(shop.config) ?? [])
    .map(({ method, path }) => `${method} ${path}`);
  expect(operations.map(({ endpoint }) => endpoint).toSorted()).toEqual(endpoints.toSorted());
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(endpoints.length);
});

test('it follows the configuration: the base path, the session router and deprecations', async () => {
  const { body } = await based.rest('GET', '/openapi.json');
  expect(body.servers).toEqual([{ url: `${PUBLIC_URL}/shop`, description: expect.any(String) }]);
  expect(body.components.securitySchemes.passwordAuth.flows.password.tokenUrl).toBe(
    `${PUBLIC_URL}/shop/token`,
  );
  expect(body.paths).toHaveProperty('/accounts/session/login');
  expect(body.paths['/api/v1/shop/products'].get.deprecated).toBe(true);
  expect(body.paths['/users/me/'].get.deprecated).toBeUndefined();
});

test('without PUBLIC_URL, the server is relative', () => {
  const { servers, components } = openapiOf(
    readConfig({ BASE_PATH: '/shop' }, () => ''),
    features,
  ) as any;
  expect([servers[0].url, components.securitySchemes.passwordAuth.flows.password.tokenUrl]).toEqual(
    ['/shop', '/shop/token'],
  );
});

test('429 is described where failed logins are counted, and nowhere else', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const limited = operationsOf(body).filter(({ responses }) => '429' in responses);
  expect(limited.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
    'GET /api/v2/auth/login',
    'POST /api/v2/auth/login',
    'POST /login',
    'POST /session/login',
    'POST /token',
  ]);
});

test('it has the version of the package, and the catalogue first', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  expect(body.info.version).toBe(JSON.parse(await readFile('package.json', 'utf8')).version);
  expect([body.tags[0].name, Object.keys(body.paths)[0]]).toEqual([
    'Catalogue',
    '/api/v1/shop/products',
  ]);
});

test('a primary key is an integer, and no request body has alternatives', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const [pk] = body.paths['/api/v1/shop/product/{pk}'].get.parameters;
  expect(pk.schema).toMatchObject({ type: 'integer', minimum: 1 });
  expect(
    operationsOf(body).filter(({ requestBody }) =>
      /"(any|one|all)Of"/.test(JSON.stringify(requestBody ?? null)),
    ),
  ).toEqual([]);
});

test('every operation has two or three sentences of description', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const sentences = (text: string) => text.split(/(?<=\.)\s/).length;
  const wrong = operationsOf(body).filter(
    ({ description }) => sentences(description) < 2 || sentences(description) > 4,
  );
  expect(wrong.map(({ operationId }) => operationId)).toEqual([]);
});

test('every property has a description, and schemas have examples', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const bare: string[] = [];
  const examples: unknown[] = [];
  walk(body.components.schemas, 'schemas', (at, schema) => {
    if ('examples' in schema) examples.push(schema['examples']);
    if (/\.properties\.[^.]+$/.test(at) && !('$ref' in schema) && !('description' in schema))
      bare.push(at);
  });
  expect(bare).toEqual([]);
  expect(examples.length).toBeGreaterThan(15);
});

test('its examples are valid', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const schemas = new Schemas(body.components);
  const wrong: string[] = [];
  walk(body, '', (at, schema) => {
    if (!Array.isArray(schema['examples'])) return;
    for (const example of schema['examples']) {
      const fault = schemas.faultOf(schema, example);
      if (fault !== undefined) wrong.push(`${at}: ${fault}`);
    }
  });
  walk(body, '', (at, { schema, ...media }) => {
    for (const example of examplesOf(media)) {
      const fault = schemas.faultOf(schema as object, example.value);
      if (fault !== undefined) wrong.push(`${at} ${example.name}: ${fault}`);
    }
  });
  expect(wrong).toEqual([]);
});

test('every request and response body has an example', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const bare: string[] = [];
  walk(body, '', (at, { content }) => {
    for (const [type, media] of Object.entries(content ?? {}))
      if (examplesOf(media).length === 0) bare.push(`${at} ${type}`);
  });
  expect(bare).toEqual([]);
});

describe('the examples of errors are the real responses:', () => {
  /** The request that provokes an error, by the error's code. */
  const REQUESTS: Record<string, (at: Provoked) => RequestOptions & { path?: string }> = {
    INACTIVE_USER: ({ zoe }) => ({ as: zoe }),
    NOT_AUTHENTICATED: () => ({ sessionKey: 'of-no-session' }),
    INVALID_TOKEN: () => ({ token: 'no.token.at.all' }),
    FORBIDDEN: ({ bob, sent }) => ({ as: bob, json: sent }),
    NOT_FOUND: ({ path }) => ({ path: path.replace('{pk}', '2147483647') }),
    CONFLICT: ({ alice, sent }) => ({ as: alice, json: sent }),
    INVALID_CREDENTIALS: ({ path, send }) =>
      send({ username: 'alice', password: 'wrong' }) ?? {
        path: `${path}?username=alice&password=wrong`,
      },
    INACTIVE_LOGIN: ({ send }) => send({ username: 'zoe', password: PASSWORD }) ?? {},
    INVALID_SESSION_KEY: ({ send, sent }) => send(sent) ?? {},
    BAD_REQUEST: () => ({ body: '{', headers: { 'Content-Type': 'application/json' } }),
    PAYLOAD_TOO_LARGE: ({ alice, type }) => ({
      as: alice,
      body: ' '.repeat(20_000),
      headers: { 'Content-Type': type },
    }),
    UNSUPPORTED_MEDIA_TYPE: ({ alice, type }) => ({
      as: alice,
      body: '{}',
      headers: { 'Content-Type': type, 'Content-Encoding': 'compress' },
    }),
    BAD_USER_INPUT: ({ alice, path, send, sent, example }) => {
      const { [example.detail[0].loc[1]]: _missing, ...rest } = { username: 'alice', ...sent };
      return { as: alice, ...(send(rest) ?? { path: `${path}?page=x` }) };
    },
  };
  /** Endpoints that need another request. */
  const OTHERS: Record<string, RequestOptions & { path?: string }> = {
    'GET /api/v2/auth/login BAD_USER_INPUT': { path: '/api/v2/auth/login?password=x' },
  };

  interface Provoked {
    path: string;
    type: string;
    /** The example of the body. */
    sent: any;
    /** The example of the error. */
    example: any;
    /** A request with such a body; undefined where the operation has none. */
    send: (body: any) => RequestOptions | undefined;
    alice: User;
    bob: User;
    zoe: User;
  }

  const document = openapiOf(
    readConfig({}, () => ''),
    features,
  ) as any;
  // Other tests cover the errors that all requests may get: 429, and 5xx.
  const cases = operationsOf(document).flatMap(({ method, path, requestBody, responses }) =>
    Object.entries<any>(responses)
      .filter(([status]) => /^4(?!29)/.test(status))
      .flatMap(([status, { $ref, content = document.components.responses[$ref
              ?.split('/')
              .at(-1)].content }]) =>
        Object.entries<any>(content).flatMap(([accepted, media]) =>
          examplesOf(media).map(({ name, value }) => ({
            method,
            path,
            requestBody,
            status: Number(status),
            accepted,
            code: name,
            value,
          })),
        ),
      ),
  );

  test.each(cases)(
    '$method $path $code, $accepted',
    async ({ method, path, requestBody, status, accepted, code, value }) => {
      const alice = await shop.makeUser({ username: 'alice', scopes: ['products:write'] });
      const bob = await shop.makeUser({ username: 'bob' });
      const zoe = await shop.makeUser({ username: 'zoe', disabled: true });
      const [[type, media] = ['', {}]] = Object.entries<any>(requestBody?.content ?? {});
      const sent = examplesOf(media)[0]?.value;
      // The examples are for clients that send grant_type, as the first example of the body does.
      const form = (body: any) => ({ form: { grant_type: sent.grant_type, ...body } });
      const send = (body: any) =>
        type === '' ? undefined : type.includes('form') ? form(body) : { json: body };
      if (code === 'CONFLICT') await shop.makeProduct({ barcode: sent.barcode });
      const example =
        code === 'BAD_USER_INPUT' && accepted.includes('problem')
          ? { detail: [{ loc: ['', value.errors[0].field] }] }
          : value;
      const options =
        OTHERS[`${method} ${path} ${code}`] ??
        REQUESTS[code]?.({ path, type, sent, example, send, alice, bob, zoe }) ??
        {};
      const headers = { ...options.headers, Accept: accepted };
      const answer = await shop.rest(method, (options.path ?? path).replace('{pk}', '1'), {
        ...options,
        headers,
      });
      expect([answer.status, answer.body]).toEqual([status, value]);
    },
  );
});

test('its ETag gets 304', async () => {
  const tag = String((await shop.rest('GET', '/openapi.json')).headers.get('etag'));
  expect(
    (await shop.rest('GET', '/openapi.json', { headers: { 'If-None-Match': tag } })).status,
  ).toBe(304);
});

test('without the explorers it is 404', async () => {
  const answer = await closed.rest('GET', '/openapi.json');
  expect([answer.status, answer.body]).toEqual([404, { detail: 'Not found' }]);
});

describe('the check of all test responses against it finds', () => {
  const page = '{"items":[],"count":0,"next":null,"previous":null}';
  const json = { 'X-Request-Id': '1', 'Content-Type': 'application/json; charset=utf-8' };

  test.each<[string, string, string, number, string, Record<string, string>?]>([
    ['a status that the endpoint does not have', 'GET', '/users/me/', 201, '{}'],
    [
      'a missing member',
      'GET',
      '/api/v2/shop/products?page=1',
      200,
      '{"items":[],"count":0,"next":null}',
    ],
    [
      'an additional member',
      'GET',
      '/api/v2/shop/products',
      200,
      page.replace('{', '{"hashed_password":"x",'),
    ],
    ['a member of another type', 'GET', '/api/v2/shop/products', 200, page.replace('0', '"0"')],
    [
      'a member of a list item',
      'GET',
      '/api/v1/shop/products',
      200,
      '[{"pk":"1","name":"a","barcode":"4006381333931","price":1}]',
    ],
    ['a member of an error', 'GET', '/api/v1/shop/product/7', 404, '{"message":"No such product"}'],
    [
      'an error under the key of another router',
      'GET',
      '/users/me/',
      401,
      '{"data":"Not authenticated"}',
    ],
    ['an error with more than its text', 'GET', '/users/me/', 500, '{"detail":"x","stack":"y"}'],
    ['a body with 304', 'GET', '/api/v2/shop/products', 304, page],
    ['a body to HEAD', 'HEAD', '/api/v2/shop/products', 200, page],
    [
      'another media type',
      'GET',
      '/api/v2/shop/products',
      200,
      page,
      { ...json, 'Content-Type': 'text/html' },
    ],
  ])('%s', (_what, method, path, status, text, headers = json) => {
    expect(() =>
      new OpenApiChecker(shop.config).check(method, path, {
        status,
        headers: new Headers(headers),
        text,
      }),
    ).toThrow(`${method} ${path.split('?')[0]} returns ${status}`);
  });

  test('nothing in a valid response', () => {
    const answer = { status: 200, headers: new Headers(json), text: page };
    expect(() =>
      new OpenApiChecker(shop.config).check('GET', '/api/v2/shop/products/', answer),
    ).not.toThrow();
  });
});

function operationsOf(document: any): any[] {
  return Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      ...operation,
    })),
  );
}

// The examples of a media type, in either notation.
function examplesOf({ example, examples }: any): { name: string; value: any }[] {
  if (Array.isArray(examples)) return [];
  const several = Object.entries<any>(examples ?? {}).map(([name, { value }]) => ({ name, value }));
  return example === undefined ? several : [{ name: 'example', value: example }];
}

function walk(
  value: unknown,
  at: string,
  visit: (at: string, schema: Record<string, unknown>) => void,
): void {
  if (typeof value !== 'object' || value === null) return;
  visit(at, value as Record<string, unknown>);
  for (const [name, member] of Object.entries(value)) walk(member, `${at}.${name}`, visit);
}
