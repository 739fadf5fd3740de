import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/core/config.ts';
import { compareAnswers, type Correspondence } from '../../packages/pages/index.ts';
import type { Route } from '../../src/api/route.ts';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { openapiOf } from '../../src/rest/openapi.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';

const shop = useShop();
const config = readConfig({}, () => '');
const endpoints = features.flatMap(({ routes }) => routes?.(config) ?? []);
const PASSWORD = 'alice-demo-1';

/** How the responses of an endpoint and its GraphQL equivalent are compared, in one shape. */
interface Comparison {
  /** Request options beyond the examples. */
  options?: (alice: User) => Promise<RequestOptions> | RequestOptions;
  rest: (body: any, alice: User) => unknown;
  graphql: (data: any, alice: User) => unknown;
}

const as = (alice: User): RequestOptions => ({ as: alice });
const pages = (name: string, node: (found: any) => unknown): Comparison => ({
  options: as,
  rest: ({ items, count, next }) => ({ items, count, hasNext: next !== null }),
  graphql: ({ [name]: { nodes, totalCount, pageInfo } }) => ({
    items: nodes.map(node),
    count: totalCount,
    hasNext: pageInfo.hasNextPage,
  }),
});
const product = ({ pk, ...rest }: { pk: string }) => ({ pk: Number(pk), ...rest });
const userOfToken = async (token: string) => (await shop.rest('GET', '/users/me/', { token })).body;
const userOfKey = async (sessionKey: string) =>
  (await shop.rest('GET', '/users/me/', { sessionKey })).body;
const tokenLogin: Comparison = {
  rest: async ({ access_token, token_type }) => [token_type, await userOfToken(access_token)],
  graphql: async ({ login }) => [login.token_type, await userOfToken(login.access_token)],
};
const sessionLogin: Comparison = {
  rest: async ({ session_key }) => userOfKey(session_key),
  graphql: async ({ login }) => userOfKey(login.session_key),
};
// One of two sessions ends, and the other remains.
const countSessions = async () => {
  const sessions = await shop.sql('select sid from session');
  expect(sessions).toHaveLength(1);
  return sessions.length;
};
const logout: Comparison = {
  options: async () => {
    await newKey();
    return { sessionKey: await newKey() };
  },
  rest: countSessions,
  graphql: countSessions,
};

const COMPARISONS: Record<string, Comparison> = {
  'GET /api/v1/shop/products': {
    rest: (body) => body,
    graphql: ({ products }) => products.nodes.map(product),
  },
  'GET /api/v1/shop/product/{pk}': {
    rest: (body) => body,
    graphql: (data) => product(data.product),
  },
  'POST /api/v1/shop/product/': {
    options: as,
    rest: (body) => body,
    graphql: ({ createProduct }) => product(createProduct),
  },
  'GET /api/v2/shop/products': pages('products', product),
  'GET /api/users': pages('users', (user) => user),
  'GET /users/me/': { options: as, rest: (body) => body, graphql: ({ me }) => me },
  'GET /users/me/items/': {
    options: as,
    rest: (body) => body,
    graphql: ({ me }) =>
      me.items.nodes.map(({ item_id, owner }: any) => ({ item_id, owner: owner.username })),
  },
  'GET /blog': { options: as, rest: (body) => body, graphql: ({ blog }) => blog.nodes },
  'POST /token': tokenLogin,
  'POST /login': tokenLogin,
  'POST /session/login': sessionLogin,
  'GET /api/v2/auth/login': sessionLogin,
  'POST /session/logout': logout,
  'POST /api/v2/auth/login': logout,
};

test.each(endpoints.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
  'GraphQL equivalents: %s returns what its GraphQL equivalent does',
  async (name, endpoint) => {
    const comparison = COMPARISONS[name];
    if (!comparison) throw new Error(`no comparison for ${name} and its GraphQL equivalent`);
    const answers: unknown[] = [];
    const byRest = await inShop(async (alice) => {
      const options = (await comparison.options?.(alice)) ?? {};
      const { path, ...request } = exampleOf(endpoint, options);
      const answer = await shop.rest(endpoint.method, path, { ...options, ...request });
      expect([answer.status, answer.text]).toEqual([endpoint.success.status, expect.any(String)]);
      answers.push(answer.body);
      return comparison.rest(answer.body, alice);
    });
    const byGraphql = await inShop(async (alice) => {
      const options = (await comparison.options?.(alice)) ?? {};
      const { body } = await shop.graphql(
        endpoint.graphqlEquivalent.operation,
        endpoint.graphqlEquivalent.variables,
        options,
      );
      expect(body.errors).toBeUndefined();
      answers.push(body.data);
      return comparison.graphql(body.data, alice);
    });
    expect(byGraphql).toEqual(byRest);
    const { correspondences } = endpoint.graphqlEquivalent;
    const { compared, differences } = compareAnswers(answers[0], answers[1], correspondences);
    expect(differences).toEqual([]);
    expect(compared).toBeGreaterThan(0);
    expect(byRest).toBeTruthy();
  },
);

describe('GraphQL equivalents: a comparison', () => {
  const body = { items: [{ pk: 1, name: 'Oak' }], next: null, key: 'a' };
  const data = { list: { nodes: [{ pk: '1', name: 'Oak' }], more: false, key: 'b' } };
  const whole: Correspondence[] = [
    { rest: 'items', graphql: 'list.nodes', hasMore: 'list.more' },
    { rest: 'next', graphql: 'list.more', as: 'presence' },
    { rest: 'key', graphql: 'list.key', as: 'new' },
  ];
  const compare = (rest: object, list: object, leftOut: string[] = []) =>
    compareAnswers(
      { ...body, ...rest },
      { list: { ...data.list, ...list } },
      whole,
      new Set(leftOut),
    );

  test.each<[string, object, object, string]>([
    ['another value', {}, { nodes: [{ pk: '1', name: 'Elm' }] }, 'list.nodes[0].name'],
    ['another type', {}, { nodes: [{ pk: '01', name: 'Oak' }] }, 'list.nodes[0].pk'],
    ['a missing value', {}, { nodes: [{ pk: '1' }] }, 'list.nodes[0].name'],
    ['an additional value', {}, { nodes: [{ pk: '1', name: 'Oak', x: 1 }] }, 'list.nodes[0].x'],
    ['a missing entry', {}, { nodes: [] }, 'list.nodes.length'],
    ['no list', {}, { nodes: null }, 'list.nodes'],
    ['a link to a next page', { next: '/2' }, {}, 'list.more'],
    ['no key', {}, { key: '' }, 'list.key'],
    ['a further page without further entries', { next: '/2' }, { more: true }, 'list.more'],
  ])('finds %s', (_what, rest, list, at) => {
    expect(compare(rest, list).differences.map((found) => found.at)).toEqual([at]);
  });
});

test('GraphQL equivalents: OpenAPI lists each as x-graphql', () => {
  const { paths } = openapiOf(config, features) as {
    paths: Record<string, Record<string, Record<string, unknown>>>;
  };
  for (const { method, path, graphqlEquivalent } of endpoints) {
    expect(paths[path]?.[method.toLowerCase()]?.['x-graphql']).toEqual({
      operation: graphqlEquivalent.operation,
      variables: graphqlEquivalent.variables ?? {},
    });
  }
});

// Creates the same data with the same keys each time.
async function inShop<T>(work: (alice: User) => Promise<T>): Promise<T> {
  await shop.empty();
  const alice = await shop.makeUser({
    username: 'alice',
    password: PASSWORD,
    email: 'alice@shop.example',
    fullName: 'Alice Archer',
    scopes: ['products:write'],
  });
  for (let n = 1; n < 7; n++) await shop.makeUser({ username: `customer${n}`, password: null });
  const other = await shop.makeUser({ username: 'other', password: null });
  for (let n = 1; n <= 12; n++)
    await shop.makeProduct({ name: `Product ${n}`, barcode: barcode(n), price: `${n}.50` });
  for (const name of ['notebook', 'umbrella']) await shop.makeItem(alice, name);
  const at = (hour: number) => new Date(Date.UTC(2027, 0, 1, hour));
  await shop.makeEntry(alice, { title: 'Draft', published: false, createdAt: at(1) });
  await shop.makeEntry(alice, { title: 'Opening day', createdAt: at(2) });
  await shop.makeEntry(other, { title: 'Draft of another', published: false, createdAt: at(3) });
  await shop.makeEntry(other, { title: 'Hello', createdAt: at(4) });
  await shop.makeItem(other, 'lamp');
  return work(alice);
}

async function newKey(): Promise<string> {
  const { body } = await shop.rest('POST', '/session/login', {
    json: { username: 'alice', password: PASSWORD },
  });
  return body.session_key;
}

// The example request of the endpoint in the OpenAPI document.
function exampleOf(
  endpoint: Route,
  { sessionKey }: RequestOptions,
): { path: string } & RequestOptions {
  const { paths, components } = openapiOf(config, features) as any;
  const { parameters = [], requestBody } = paths[endpoint.path][endpoint.method.toLowerCase()];
  const example = ({ examples }: any) => examples?.[0];
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_all, name) =>
    example(parameters.find((found: any) => found.name === name).schema),
  );
  const query = parameters
    .filter((found: any) => found.in === 'query' && example(found.schema) !== undefined)
    .map((found: any) => `${found.name}=${encodeURIComponent(example(found.schema))}`)
    .join('&');
  const at = { path: query === '' ? path : `${path}?${query}` };
  if (!requestBody) return at;
  const [[type, media]] = Object.entries<any>(requestBody.content) as [[string, any]];
  const { required, properties } =
    components.schemas[media.schema.$ref?.split('/').at(-1)] ?? media.schema;
  const body = media.examples
    ? Object.values<any>(media.examples)[0].value
    : Object.fromEntries(required.map((name: string) => [name, example(properties[name])]));
  const fields = 'session_key' in body ? { ...body, session_key: sessionKey } : body;
  return type.includes('form') ? { ...at, form: fields } : { ...at, json: fields };
}

function barcode(n: number): string {
  const digits = `400123456${String(n).padStart(3, '0')}`;
  return digits + checkDigit(digits);
}
