import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { expectTimeout, retryUntilServed, type SendRequest } from '../support/late.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

// Another transaction blocks the database for longer than the request timeout: on the embedded
// database, which has a single backend, by being open; on a server, by its locks.

const DEADLINE_MS = 250;
const shop = useShop({ REQUEST_TIMEOUT_MS: String(DEADLINE_MS) });

let user: User;
let release: () => Promise<void> = async () => undefined;

beforeEach(async () => {
  user = await shop.makeUser({
    username: 'ada',
    scopes: ['products:write', 'users:read', 'blog:write'],
  });
  await shop.makeProduct({ name: 'Lamp' });
});

afterEach(() => release());

const ADD = 'mutation ($id: String!) { addItem(itemId: $id) { itemId } }';
const login: SendRequest = () =>
  shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } });
const create: SendRequest = () =>
  shop.rest('POST', '/api/v1/shop/product/', {
    as: user,
    json: { name: 'Chair', barcode: shop.newBarcode(), price: 1 },
  });
const requests: [string, 'graphql' | 'rest', SendRequest][] = [
  ['a prepared read', 'graphql', () => shop.graphql('{ products { nodes { name } } }')],
  [
    'a read with a filter',
    'graphql',
    () => shop.graphql('{ products(filter: { search: "lamp" }) { nodes { name } } }'),
  ],
  [
    'a read by GET',
    'graphql',
    () =>
      shop.rest('GET', '/graphql?query={products(first:2){nodes{name}}}', {
        headers: { 'apollo-require-preflight': '1' },
      }),
  ],
  ['a write', 'graphql', () => shop.graphql(ADD, { id: shop.newBarcode() }, { as: user })],
  [
    'a login',
    'graphql',
    () =>
      shop.graphql(`mutation { login(username: "ada", password: "${PASSWORD}") { tokenType } }`),
  ],
  ['a read', 'rest', () => shop.rest('GET', '/api/v1/shop/product/1')],
  ['a page', 'rest', () => shop.rest('GET', '/api/v2/shop/products')],
  ['the whole list', 'rest', () => shop.rest('GET', '/api/v1/shop/products')],
  ['the caller', 'rest', () => shop.rest('GET', '/users/me/', { as: user })],
  ['a write', 'rest', create],
  ['a login', 'rest', login],
];

describe('a database that is blocked by another transaction', () => {
  test.each(requests)(
    'D23 %s by %s is 503 at the deadline, and succeeds once the database is free',
    async (_what, api, send) => {
      await lockTables();
      const answer = await send();
      expect(answer.status).toBe(503);
      expectTimeout(shop, answer, api);
      await release();
      await expectServed(send);
    },
  );

  test('D23 a client that prefers the GraphQL media type gets the timeout in that media type', async () => {
    await lockTables();
    const headers = { Accept: 'application/graphql-response+json, application/json;q=0.9' };
    const answer = await shop.rest('POST', '/graphql', {
      json: { query: '{ products { nodes { name } } }' },
      headers,
    });
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([
      503,
      'application/graphql-response+json; charset=utf-8',
    ]);
    expect(answer.body.errors[0].extensions).toEqual({ code: 'TIMEOUT', retryAfter: 1 });
  });

  test('D23 requests without database access are answered meanwhile', async () => {
    await lockTables();
    const answers = await Promise.all([
      shop.graphql('{ __typename }'),
      shop.graphql('{ products {'),
      shop.rest('OPTIONS', '/api/v2/shop/products'),
      shop.rest('GET', '/nowhere'),
      shop.rest('PUT', '/token'),
      shop.rest('GET', '/users/me/', { token: 'x' }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200, 404, 405, 401]);
  });

  test('D23 a write that timed out is not executed later', async () => {
    await lockTables();
    const answers = await Promise.all([
      create(),
      shop.graphql(ADD, { id: 'lamp' }, { as: user }),
      login(),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503]);
    await release();
    // Queued behind any statement that may still be running.
    await expectServed(() => shop.rest('GET', '/users/me/', { as: user }));
    expect(await shop.sql('select name from product')).toEqual([{ name: 'Lamp' }]);
    expect(await shop.sql('select * from item')).toEqual([]);
    expect(await shop.sql('select * from session')).toEqual([]);
  });
});

async function expectServed(send: SendRequest): Promise<void> {
  const { status, body } = await retryUntilServed(send);
  expect(status).toBeLessThan(300);
  expect(Array.isArray(body) ? undefined : body.errors).toBeUndefined();
}

/** Locks the tables until `release` is called. */
async function lockTables(): Promise<void> {
  let free: () => void = () => undefined;
  const freed = new Promise<void>((done) => (free = done));
  let ended: Promise<void> = Promise.resolve();
  await new Promise<void>((locked, fail) => {
    ended = shop.database.fork().transactional(async (em) => {
      await em.execute('lock table product, item, session, "user" in access exclusive mode');
      locked();
      await freed;
    });
    ended.catch(fail);
  });
  release = async () => {
    release = async () => undefined;
    free();
    await ended;
  };
}
