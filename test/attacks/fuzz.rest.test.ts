import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import fc from 'fast-check';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/core/config.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from '../support/databases.ts';
import {
  decimal,
  parseExact,
  faultOf,
  Fuzz,
  MANY,
  RUNS,
  type FuzzRequest,
} from '../support/fuzz.ts';
import { restProducts, graphqlProducts, storedProducts } from '../support/fuzz.apis.ts';
import { requestsTo, type Fields, type FuzzCredentials } from '../support/fuzz.requests.ts';
import { barcodeText, anyText, lineText, priceText, quoted } from '../support/fuzz.values.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';

// A failed login costs a hash; after 20 of an address, logins are rejected without one.
// The address of a client is its X-Forwarded-For.
const shop = useShop(
  { LOG_LEVEL: 'info', TRUST_PROXY: '127.0.0.1' },
  { loginFailuresPerAddressPer10Minutes: 20 },
);

const TIMEOUT = 600_000;
const ELSEWHERE = { 'X-Forwarded-For': '203.0.113.9' };
const USERNAME = 'alice';

/** The fields of an endpoint, and a valid request with its status. */
interface Target {
  fields: Fields;
  valid: () => RequestOptions;
  status?: number;
}

const usernames = fc.oneof(
  { weight: 6, arbitrary: fc.constant(USERNAME) },
  fc.constantFrom('Alice', 'nobody', 'zoe'),
  anyText,
);
const passwords = fc.oneof({ weight: 6, arbitrary: fc.constant(PASSWORD) }, anyText);
const numbers = fc.oneof(fc.integer({ min: 0, max: 30 }).map(String), fc.bigInt().map(String));
const pages = { page: numbers, limit: numbers, offset: numbers };
const keys = fc.nat({ max: 38 });
const form = {
  fields: {
    username: usernames,
    password: passwords,
    grant_type: fc.constantFrom('password', 'password', '', 'refresh_token', 'client_credentials'),
    scope: fc.oneof(
      fc.constantFrom(
        '',
        'offline_access',
        'products:write users:read',
        'offline_access  blog:write x',
      ),
      anyText,
    ),
    refresh_token: fc.oneof(anyText, fc.constantFrom('a.b.c')),
  },
  valid: () => ({ form: { username: USERNAME, password: PASSWORD } }),
};
const login = {
  fields: { username: quoted(usernames), password: quoted(passwords) },
  valid: () => ({ json: { username: USERNAME, password: PASSWORD } }),
};
const logout = {
  fields: { session_key: keys.map((index) => JSON.stringify(sessionKeys[index])) },
  valid: () => ({ json: { session_key: sessionKeys.at(-1) } }),
};
const read = { fields: {}, valid: () => ({ as: caller }) };

const TARGETS: Record<string, Target> = {
  'GET /api/users': { ...read, fields: pages },
  'POST /token': form,
  'POST /login': form,
  'POST /session/login': login,
  'POST /session/logout': logout,
  'GET /api/v2/auth/login': {
    fields: { username: usernames, password: passwords },
    valid: () => ({
      headers: {
        Authorization: `Basic ${Buffer.from(`${USERNAME}:${PASSWORD}`).toString('base64')}`,
      },
    }),
  },
  'POST /api/v2/auth/login': { ...logout, fields: { ...logout.fields, ...login.fields } },
  'GET /api/v1/shop/products': read,
  'GET /api/v1/shop/product/{pk}': {
    ...read,
    fields: { pk: fc.oneof(numbers, fc.constantFrom('1', '2', '2147483647', '2147483648')) },
  },
  'POST /api/v1/shop/product/': {
    fields: {
      name: quoted(lineText),
      barcode: quoted(barcodeText),
      price: fc.oneof(
        priceText,
        priceText.map((text) => JSON.stringify(text)),
      ),
    },
    valid: () => ({ as: caller, json: { name: 'Pen', barcode: shop.newBarcode(), price: 1 } }),
    status: 201,
  },
  'GET /api/v2/shop/products': { ...read, fields: pages },
  'GET /users/me/': read,
  'GET /users/me/items/': read,
  'GET /blog': read,
};

const config = readConfig({ SIGNING_SECRET: TEST_SECRET }, () => undefined);
const endpoints = features
  .flatMap(({ routes }) => routes?.(config) ?? [])
  .map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const);

let fuzz: Fuzz;
let caller: User;
let sessionKeys: string[];
let credentials: FuzzCredentials;

beforeAll(() => {
  fuzz = new Fuzz(shop);
});

afterAll(() => fuzz.stop());

beforeEach(async () => {
  caller = await shop.makeUser({ username: USERNAME, scopes: ['products:write', 'blog:write'] });
  await shop.makeUser({ username: 'zoe', disabled: true });
  await shop.makeProducts(20);
  for (const text of ['one', 'two']) {
    await shop.makeItem(caller, text);
    await shop.makeEntry(caller, { title: text });
  }
  // Sessions of another user, because many logins of a user end its oldest sessions.
  const other = await shop.makeUser();
  sessionKeys = [];
  for (let index = 0; index < 40; index++)
    sessionKeys.push((await sessions.open(shop.context(), other, null)).key);
  // The last key is for the valid request.
  credentials = {
    token: shop.tokenOf(caller, 3_600),
    username: USERNAME,
    sessionKeys: sessionKeys.slice(0, -1),
  };
});

test('R24 the targets are all REST endpoints', () => {
  expect(endpoints.map(([name]) => name).toSorted()).toEqual(Object.keys(TARGETS).toSorted());
});

test.each(endpoints)(
  'R24 %s: generated requests cause no 5xx and no hang, and reads return the stored values byte for byte',
  async (name, endpoint) => {
    const { fields, valid, status = 200 }: Target = TARGETS[name] ?? read;
    // Reads have fewer inputs.
    const runs = endpoint.method === 'POST' ? RUNS : RUNS / 10;
    const [others, before] = [await storedElsewhere(), await storedProducts(shop)];
    const made = new Map(before.map((product) => [product.pk, product]));
    const statuses = new Map<number, number>();
    await fuzz.attemptAll(requestsTo(endpoint, fields, credentials), runs, async (sent) => {
      const reply = await fuzz.sendRequest(sent);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      if (reply.status === 201) {
        const { pk, ...product } = parseExact(reply.text);
        if (!isDeepStrictEqual(product, expectedProduct(sent)))
          return `${JSON.stringify(sent.text)} was stored as ${reply.text}`;
        made.set(pk, { pk, ...product });
      }
      return faultOf(sent, reply);
    });
    const expected = [...made.values()].toSorted((a, b) => Number(a.pk) - Number(b.pk));
    expect(await storedProducts(shop)).toEqual(expected);
    expect(await restProducts(shop)).toEqual(expected);
    expect(await graphqlProducts(shop)).toEqual(expected);
    expect(await storedElsewhere()).toEqual(others);
    const { method, path } = endpoint;
    const { headers, ...request } = valid();
    const after = await shop.rest(method, path.replace('{pk}', '1'), {
      ...request,
      headers: { ...ELSEWHERE, ...headers },
    });
    expect(after.status).toBe(status);
    // Enough requests are valid: otherwise only the first check of the endpoint would be tested.
    if (runs >= MANY) expect(statuses.get(status) ?? 0).toBeGreaterThan(runs / 1_000);
  },
  TIMEOUT,
);

/** Returns the product that the request should store. */
function expectedProduct({ text = '' }: FuzzRequest) {
  const { name, barcode, price } = parseExact(text);
  return { name: name.trim(), barcode, price: decimal(price) };
}

/** Returns what no REST endpoint writes, except sessions, which logins and logouts change. */
async function storedElsewhere() {
  return [
    await shop.sql('select * from "user" order by pk'),
    await shop.sql('select * from item order by pk'),
    await shop.sql('select * from blog_entry order by pk'),
  ];
}
