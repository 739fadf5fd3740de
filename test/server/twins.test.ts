import { beforeAll, expect, test } from '../support/jest.ts';
import { parse, validate, type GraphQLSchema } from 'graphql';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/core/config.ts';
import type { Route } from '../../src/api/route.ts';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { openapiOf } from '../../src/rest/openapi/openapi.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type RequestOptions } from '../support/shop.ts';

const shop = useShop();
const config = readConfig({}, () => '');
const rows = features.flatMap(({ routes }) => routes?.(config) ?? []);
const PASSWORD = 'alice-demo-1';

/** How the answers of a row and its twin are compared: what is asked beyond the examples, and both in one shape. */
interface Comparison {
  asked?: (alice: User) => Promise<RequestOptions> | RequestOptions;
  rest: (body: any, alice: User) => unknown;
  twin: (data: any, alice: User) => unknown;
}

const as = (alice: User): RequestOptions => ({ as: alice });
const pages = (name: string, node: (found: any) => unknown): Comparison => ({
  asked: as,
  rest: ({ items, count, next }) => ({ items, count, hasNext: next !== null }),
  twin: ({ [name]: { nodes, totalCount, pageInfo } }) => ({ items: nodes.map(node), count: totalCount, hasNext: pageInfo.hasNextPage }),
});
const product = ({ pk, ...rest }: { pk: string }) => ({ pk: Number(pk), ...rest });
const userOfToken = async (token: string) => (await shop.rest('GET', '/users/me/', { token })).body;
const userOfKey = async (sessionKey: string) => (await shop.rest('GET', '/users/me/', { sessionKey })).body;
const tokenLogin: Comparison = {
  rest: async ({ access_token, token_type }) => [token_type, await userOfToken(access_token)],
  twin: async ({ login }) => [login.token_type, await userOfToken(login.access_token)],
};
const sessionLogin: Comparison = {
  rest: async ({ session_key }) => userOfKey(session_key),
  twin: async ({ login }) => userOfKey(login.session_key),
};
// One of two sessions ends, and the other is left.
const left = async () => {
  const sessions = await shop.sql('select sid from session');
  expect(sessions).toHaveLength(1);
  return sessions.length;
};
const logout: Comparison = {
  asked: async () => {
    await newKey();
    return { sessionKey: await newKey() };
  },
  rest: left,
  twin: left,
};

const COMPARISONS: Record<string, Comparison> = {
  'GET /api/v1/shop/products': { rest: (body) => body, twin: ({ products }) => products.nodes.map(product) },
  'GET /api/v1/shop/product/{pk}': { rest: (body) => body, twin: (data) => product(data.product) },
  'POST /api/v1/shop/product/': { asked: as, rest: (body) => body, twin: ({ createProduct }) => product(createProduct) },
  'GET /api/v2/shop/products': pages('products', product),
  'GET /api/users': pages('users', (user) => user),
  'GET /users/me/': { asked: as, rest: (body) => body, twin: ({ me }) => me },
  'GET /users/me/items/': {
    asked: as,
    rest: (body) => body,
    twin: ({ me }) => me.items.nodes.map(({ item_id, owner }: any) => ({ item_id, owner: owner.username })),
  },
  'GET /blog': { asked: as, rest: (body) => body, twin: ({ blog }) => blog.nodes },
  'POST /token': tokenLogin,
  'POST /login': tokenLogin,
  'POST /session/login': sessionLogin,
  'GET /api/v2/auth/login': sessionLogin,
  'POST /session/logout': logout,
  'POST /api/v2/auth/login': logout,
};

let schema: GraphQLSchema;
beforeAll(async () => {
  schema = await makeSchema();
});

test.each(rows.map((row) => [`${row.method} ${row.path}`, row] as const))(
  'twins: %s does what its twin at the GraphQL door does',
  async (name, row) => {
    const comparison = COMPARISONS[name];
    if (!comparison) throw new Error(`nothing here says how ${name} is compared with its twin`);
    const byRest = await inShop(async (alice) => {
      const asked = (await comparison.asked?.(alice)) ?? {};
      const { path, ...request } = exampleOf(row, asked);
      const answer = await shop.rest(row.method, path, { ...asked, ...request });
      expect([answer.status, answer.text]).toEqual([row.success.status, expect.any(String)]);
      return comparison.rest(answer.body, alice);
    });
    const byTwin = await inShop(async (alice) => {
      const asked = (await comparison.asked?.(alice)) ?? {};
      const { body } = await shop.graphql(row.twin.operation, row.twin.variables, asked);
      expect(body.errors).toBeUndefined();
      return comparison.twin(body.data, alice);
    });
    expect(byTwin).toEqual(byRest);
    expect(byRest).toBeTruthy();
  },
);

test.each(rows.map((row) => [`${row.method} ${row.path}`, row] as const))(
  'twins: the document of %s is valid, and has one operation',
  (_name, { twin }) => {
    const document = parse(twin.operation);
    expect(validate(schema, document)).toEqual([]);
    expect(document.definitions).toHaveLength(1);
  },
);

test('twins: OpenAPI names each as x-graphql', () => {
  const { paths } = openapiOf(config, features) as { paths: Record<string, Record<string, Record<string, unknown>>> };
  for (const { method, path, twin } of rows) {
    expect(paths[path]?.[method.toLowerCase()]?.['x-graphql']).toEqual({ operation: twin.operation, variables: twin.variables ?? {} });
  }
});

// The same things are there each time, with the same keys, for whoever writes first.
async function inShop<T>(work: (alice: User) => Promise<T>): Promise<T> {
  await shop.empty();
  const alice = await shop.makeUser({
    username: 'alice',
    password: PASSWORD,
    email: 'alice@shop.example',
    fullName: 'Alice Archer',
    scopes: ['products:write'],
  });
  for (let n = 1; n < 8; n++) await shop.makeUser({ username: `customer${n}`, password: null });
  for (let n = 1; n <= 12; n++) await shop.makeProduct({ name: `Product ${n}`, barcode: barcode(n), price: `${n}.50` });
  for (const name of ['notebook', 'umbrella']) await shop.makeItem(alice, name);
  const at = (hour: number) => new Date(Date.UTC(2027, 0, 1, hour));
  await shop.makeEntry(alice, { title: 'Draft', published: false, createdAt: at(1) });
  await shop.makeEntry(alice, { title: 'Opening day', createdAt: at(2) });
  return work(alice);
}

async function newKey(): Promise<string> {
  const { body } = await shop.rest('POST', '/session/login', { json: { username: 'alice', password: PASSWORD } });
  return body.session_key;
}

// The request that the document of the row gives as its example.
function exampleOf(row: Route, { sessionKey }: RequestOptions): { path: string } & RequestOptions {
  const { paths } = openapiOf(config, features) as any;
  const { parameters = [], requestBody } = paths[row.path][row.method.toLowerCase()];
  const example = ({ examples }: any) => examples?.[0];
  const path = row.path.replace(/\{(\w+)\}/g, (_all, name) => example(parameters.find((found: any) => found.name === name).schema));
  const query = parameters
    .filter((found: any) => found.in === 'query' && example(found.schema) !== undefined)
    .map((found: any) => `${found.name}=${encodeURIComponent(example(found.schema))}`)
    .join('&');
  const at = { path: query === '' ? path : `${path}?${query}` };
  if (!requestBody) return at;
  const [[type, media]] = Object.entries<any>(requestBody.content) as [[string, any]];
  const body = media.example ?? Object.values<any>(media.examples)[0].value;
  const fields = 'session_key' in body ? { ...body, session_key: sessionKey } : body;
  return type.includes('form') ? { ...at, form: fields } : { ...at, json: fields };
}

function barcode(n: number): string {
  const digits = `400123456${String(n).padStart(3, '0')}`;
  return digits + checkDigit(digits);
}
