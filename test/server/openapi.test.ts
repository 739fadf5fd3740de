import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Validator } from '@seriousme/openapi-schema-validator';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/kit/config.ts';
import { openapiText } from '../../src/server/openapi/openapi.ts';
import { Documented, Schemas } from '../support/openapi.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();
const based = new Shop({ BASE_PATH: '/shop', SESSION_PREFIX: '/accounts/session', V1_DEPRECATED_ON: '2027-01-31' });
const closed = new Shop({ GRAPHQL_EXPLORER: 'false' });
beforeAll(() => Promise.all([based.start(), closed.start()]));
afterAll(() => Promise.all([based.stop(), closed.stop()]));

test('openapi.json is what the code says; npm run -s openapi > openapi.json brings it up to date', async () => {
  const text = openapiText(
    readConfig({}, () => ''),
    features,
  );
  expect(await readFile('openapi.json', 'utf8')).toBe(text);
});

test.each([
  ['by default', () => shop],
  ['under BASE_PATH', () => based],
])('/openapi.json is valid OpenAPI 3.1, says a public validator: %s', async (_how, at) => {
  const { status, headers, body } = await at().rest('GET', '/openapi.json');
  expect([status, headers.get('content-type'), body.openapi]).toEqual([200, 'application/json; charset=utf-8', '3.1.0']);
  expect(await new Validator().validate(body)).toEqual({ valid: true });
});

test('a document that is not valid is not taken for one', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  expect(await new Validator().validate({ ...body, paths: { '/token': { post: { responses: 7 } } } })).toMatchObject({ valid: false });
});

test('it describes every row and nothing else, each under an id of its own', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const operations = Object.entries<Record<string, { operationId: string }>>(body.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => ({ row: `${method.toUpperCase()} ${path}`, operationId })),
  );
  const rows = features.flatMap(({ routes }) => routes?.(shop.config) ?? []).map(({ method, path }) => `${method} ${path}`);
  expect(operations.map(({ row }) => row).toSorted()).toEqual(rows.toSorted());
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(rows.length);
});

test('it follows the configuration: where the app stands, the session router, and what is deprecated', async () => {
  const { body } = await based.rest('GET', '/openapi.json');
  expect(body.servers[0].url).toBe('/shop');
  expect(body.paths).toHaveProperty('/accounts/session/login');
  expect(body.paths['/api/v1/shop/products'].get.deprecated).toBe(true);
  expect(body.paths['/users/me/'].get.deprecated).toBeUndefined();
});

test('every part has a description, and what is sent and answered has examples', async () => {
  const { body } = await shop.rest('GET', '/openapi.json');
  const bare: string[] = [];
  const examples: unknown[] = [];
  walk(body.components.schemas, 'schemas', (at, schema) => {
    if ('examples' in schema) examples.push(schema['examples']);
    if (/\.properties\.[^.]+$/.test(at) && !('$ref' in schema) && !('description' in schema)) bare.push(at);
  });
  expect(bare).toEqual([]);
  expect(examples.length).toBeGreaterThan(15);
});

test('its examples are valid themselves', async () => {
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
  expect(wrong).toEqual([]);
});

test('who has it gets 304', async () => {
  const tag = String((await shop.rest('GET', '/openapi.json')).headers.get('etag'));
  expect((await shop.rest('GET', '/openapi.json', { headers: { 'If-None-Match': tag } })).status).toBe(304);
});

test('without the explorers there is none', async () => {
  const answer = await closed.rest('GET', '/openapi.json');
  expect([answer.status, answer.body]).toEqual([404, { detail: 'Not found' }]);
});

describe('what holds the answers of all tests against it finds', () => {
  const page = '{"items":[],"count":0,"next":null,"previous":null}';
  const json = { 'X-Request-Id': '1', 'Content-Type': 'application/json; charset=utf-8' };

  test.each<[string, string, string, number, string, Record<string, string>?]>([
    ['a status that the row has not', 'GET', '/users/me/', 201, '{}'],
    ['a member that is missing', 'GET', '/api/v2/shop/products?page=1', 200, '{"items":[],"count":0,"next":null}'],
    ['a member that is too many', 'GET', '/api/v2/shop/products', 200, page.replace('{', '{"hashed_password":"x",')],
    ['a member of another type', 'GET', '/api/v2/shop/products', 200, page.replace('0', '"0"')],
    ['a member of a thing in a list', 'GET', '/api/v1/shop/products', 200, '[{"pk":"1","name":"a","barcode":"4006381333931","price":1}]'],
    ['a member of an error', 'GET', '/api/v1/shop/product/7', 404, '{"message":"No such product"}'],
    ['an error under the key of another router', 'GET', '/users/me/', 401, '{"data":"Not authenticated"}'],
    ['an error with more than its text', 'GET', '/users/me/', 500, '{"detail":"x","stack":"y"}'],
    ['a body with 304', 'GET', '/api/v2/shop/products', 304, page],
    ['a body to HEAD', 'HEAD', '/api/v2/shop/products', 200, page],
    ['another media type', 'GET', '/api/v2/shop/products', 200, page, { ...json, 'Content-Type': 'text/html' }],
  ])('%s', (_what, method, path, status, text, headers = json) => {
    expect(() => new Documented(shop.config).check(method, path, { status, headers: new Headers(headers), text })).toThrow(
      `${method} ${path.split('?')[0]} answers ${status}`,
    );
  });

  test('nothing where all is well', () => {
    const answer = { status: 200, headers: new Headers(json), text: page };
    expect(() => new Documented(shop.config).check('GET', '/api/v2/shop/products/', answer)).not.toThrow();
  });
});

function walk(value: unknown, at: string, visit: (at: string, schema: Record<string, unknown>) => void): void {
  if (typeof value !== 'object' || value === null) return;
  visit(at, value as Record<string, unknown>);
  for (const [name, member] of Object.entries(value)) walk(member, `${at}.${name}`, visit);
}
