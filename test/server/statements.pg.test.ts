import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, jest, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import * as users from '../../src/features/users/user.service.ts';
import { PASSWORD, Shop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

// Of this file alone: caches that other tests have filled would change the number of statements.
const shop = new Shop();
beforeAll(() => shop.start());
beforeEach(() => shop.empty());
afterAll(() => shop.stop());

const DOCUMENT = 'docs/performance.md';
const PRODUCT = '/api/v1/shop/product/';
/** Statements that set up a connection once, when it is opened or lent. */
const SETUP = /^(set|listen|deallocate|discard)\b/i;

/** A kind of request. The first one is not counted, and the second one requests other data. */
type Kind = (time: number) => Request;

let others: User[];
let pks: number[];
let token: Record<string, string>;
let keys: string[];
let cursors: string[];

beforeEach(async () => {
  const ada = await shop.makeUser({
    username: 'ada',
    scopes: ['products:write', 'users:read', 'blog:write'],
  });
  others = [await shop.makeUser(), await shop.makeUser(), await shop.makeUser()];
  for (const user of [ada, ...others]) {
    for (let made = 0; made < 3; made++) {
      await shop.makeItem(user);
      await shop.makeEntry(user);
    }
  }
  pks = (await shop.makeProducts(25)).map(({ pk }) => pk);
  keys = [];
  for (let made = 0; made < 2; made++)
    keys.push((await sessions.open(shop.context(), ada, null)).key);
  const tokens = await shop.rest('POST', '/token', {
    form: { username: 'ada', password: PASSWORD },
  });
  token = { Authorization: `Bearer ${tokens.body.access_token}` };
  const { body } = await shop.graphql('{ products { edges { cursor } } }');
  cursors = body.data.products.edges.map(({ cursor }: { cursor: string }) => cursor);
});

const kinds: Record<string, Kind> = {
  'GraphQL: product': (time) =>
    graphql('query ($pk: ID!) { product(pk: $pk) { name price } }', { pk: pks[time] }),
  'GraphQL: page of products': (time) => page('nodes { name }', time),
  'GraphQL: page with `totalCount`': (time) => page('totalCount nodes { name }', time),
  'GraphQL: page with a common filter': (time) => filtered({ nameContains: 'product' }, time),
  'GraphQL: page with a rare filter': (time) => filtered({ nameContains: 'product 2' }, 20 + time),
  'GraphQL: search for the beginning of many names': (time) =>
    filtered({ search: 'product' }, time),
  'GraphQL: search with few results': (time) => filtered({ search: 'product 2' }, 20 + time),
  'GraphQL: search with a typo': (time) => filtered({ search: 'prodcut' }, time),
  'GraphQL: `me`': () => graphql('{ me { username email } }', {}, token),
  'GraphQL: `me { items blog { creator } }`': (time) =>
    graphql(
      'query ($first: Int) { me { items(first: $first) { nodes { itemId } } blog(first: $first) { nodes { title creator { username } } } } }',
      { first: 2 + time },
      token,
    ),
  'GraphQL: page of `users { items }`': (time) =>
    graphql(
      'query ($first: Int) { users(first: $first) { nodes { username items(first: $first) { nodes { itemId } } } } }',
      { first: 2 + time },
      token,
    ),
  'REST: product': (time) => get(`${PRODUCT}${pks[time]}`),
  'REST: page of products': (time) => get(`/api/v2/shop/products?page=${2 + time}`),
  'REST: `/users/me/` by token': () => get('/users/me/', token),
  'REST: `/users/me/` by session key': (time) =>
    get('/users/me/', { 'X-SESSION-ID': keys[time] ?? '' }),
  'REST: `/users/me/items/`': () => get('/users/me/items/', token),
  'REST: `/blog`, 12 entries': () => get('/blog', token),
  'Creation of a product': () => post(PRODUCT, newProduct(), token),
  'Creation of a product with `Idempotency-Key`': (time) =>
    post(PRODUCT, newProduct(), { ...token, 'Idempotency-Key': `key-${time}` }),
  'Login by `/token`': (time) =>
    requestTo('/token', { method: 'POST', body: new URLSearchParams(credentials(time)) }),
  'Login by `/session/login`': (time) => post('/session/login', credentials(time)),
  'Logout by `/session/logout`': (time) => post('/session/logout', { session_key: keys[time] }),
};

describe(`${DOCUMENT}, Statements per request`, () => {
  test('the table names each kind of request, and no other', async () => {
    expect([...(await table()).keys()]).toEqual(Object.keys(kinds));
  });

  test.each(Object.entries(kinds))('%s', async (name, kind) => {
    expect((await complete(kind(0))).status).toBeLessThan(300);
    const { answer, statements } = await costOf(kind(1));

    expect(answer.status).toBeLessThan(300);
    expect(await answer.json()).not.toHaveProperty('errors');
    expect({ count: statements.length, statements }).toEqual({
      count: (await table()).get(name),
      statements,
    });
  });
});

/** The table in the document: statements by kind of request. */
async function table(): Promise<Map<string, number>> {
  const [, section = ''] = (await readFile(DOCUMENT, 'utf8')).split(/^## Statements per request$/m);
  const rows = section.split(/^## /m)[0]?.matchAll(/^\| (.+?) +\| +(\d+) +\|$/gm) ?? [];
  return new Map([...rows].map(([, name = '', statements]) => [name, Number(statements)]));
}

test('a lookup by a unique column uses a prepared statement', async () => {
  const read = jest.spyOn(shop.database.statements, 'read');
  try {
    await fetch(graphql('{ productByBarcode(barcode: "4006381333931") { pk } }', {}));
    await users.byTypedUsername(shop.context(), 'ada');
    const lookups = read.mock.calls.filter(([{ text }]) =>
      /where \(?"?(barcode|username)"? = /.test(text),
    );
    expect(lookups.map(([, prepared]) => prepared)).toEqual([true, true]);
  } finally {
    read.mockRestore();
  }
});

/** The response and its statements. */
async function costOf(request: Request): Promise<{ answer: Response; statements: string[] }> {
  // As after a commit: the version of the catalogue is not cached.
  shop.database.statements.commits++;
  const { answer, statements } = await recordStatements(() => complete(request));
  return { answer, statements: statements.filter((text) => !SETUP.test(text)) };
}

/** The response, after its whole body has arrived. */
async function complete(request: Request): Promise<Response> {
  const response = await fetch(request);
  await response.clone().arrayBuffer();
  return response;
}

/** A single request; `shop` sends each request several times. */
function requestTo(path: string, init: RequestInit): Request {
  return new Request(shop.url + path, init);
}

function get(path: string, headers: Record<string, string> = {}): Request {
  return requestTo(path, { headers });
}

function post(path: string, json: unknown, headers: Record<string, string> = {}): Request {
  return requestTo(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(json),
  });
}

function graphql(query: string, variables: object, headers: Record<string, string> = {}): Request {
  return post('/graphql', { query, variables }, headers);
}

function page(fields: string, time: number): Request {
  const query = `query ($first: Int, $after: String) { products(first: $first, after: $after) { ${fields} } }`;
  return graphql(query, { first: 5 + time, after: cursors[time] });
}

function filtered(filter: object, time: number): Request {
  const query =
    'query ($first: Int, $filter: ProductFilter) { products(first: $first, filter: $filter) { nodes { name } } }';
  return graphql(query, { first: 5 + time, filter });
}

function newProduct(): object {
  return { name: 'New', barcode: shop.newBarcode(), price: 1 };
}

function credentials(time: number): Record<string, string> {
  return { username: others[time]?.username ?? '', password: PASSWORD };
}
