import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Validator } from '@seriousme/openapi-schema-validator';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/core/config.ts';
import { openapiText } from '../../src/rest/openapi.ts';
import { OpenApiChecker, Schemas } from '../support/openapi.ts';
import { PUBLIC_URL, Shop, useShop } from '../support/shop.ts';

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
  expect(body.servers).toEqual([{ url: `${PUBLIC_URL}/shop` }]);
  expect(body.paths).toHaveProperty('/accounts/session/login');
  expect(body.paths['/api/v1/shop/products'].get.deprecated).toBe(true);
  expect(body.paths['/users/me/'].get.deprecated).toBeUndefined();
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
  expect(examples.length).toBeGreaterThan(10);
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

test('without the explorers it is 404', async () => {
  const answer = await closed.rest('GET', '/openapi.json');
  expect([answer.status, answer.body]).toEqual([404, { detail: 'Not found' }]);
});

describe('the check of all test responses against it finds', () => {
  const page = '{"items":[],"count":0,"next":null,"previous":null}';
  const json = { 'X-Request-Id': '1', 'Content-Type': 'application/json; charset=utf-8' };

  test.each<[string, string, string, number, string, Record<string, string>?]>([
    ['a status that the endpoint does not have', 'GET', '/users/me/', 201, '{}'],
    ['a member of another type', 'GET', '/api/v2/shop/products', 200, page.replace('0', '"0"')],
    ['a member of an error', 'GET', '/api/v1/shop/product/7', 404, '{"message":"No such product"}'],
    ['a body to HEAD', 'HEAD', '/api/v2/shop/products', 200, page],
  ])('%s', (_what, method, path, status, text, headers = json) => {
    expect(() =>
      new OpenApiChecker(shop.config).check(method, path, {
        status,
        headers: new Headers(headers),
        text,
      }),
    ).toThrow(`${method} ${path.split('?')[0]} returns ${status}`);
  });
});

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
