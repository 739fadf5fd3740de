import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import fc from 'fast-check';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { features } from '../../src/features.ts';
import { readConfig } from '../../src/core/config.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { decimal, exactly, faultOf, Fuzz, MANY, RUNS, type Asked } from '../support/fuzz.ts';
import { listedProducts, productsInGraphql, storedProducts } from '../support/fuzz.doors.ts';
import { requestsAt, type Fields, type Keys } from '../support/fuzz.requests.ts';
import { barcodeText, anyText, lineText, priceText, quoted } from '../support/fuzz.values.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';

// A login that fails costs a hash: after so many, the rest costs none. What the shop's clients forward is where they are.
const shop = useShop({ LOG_LEVEL: 'info', LOGIN_FAILURES_PER_ADDRESS: '20', TRUST_PROXY: '127.0.0.1' });

const TIMEOUT = 600_000;
const ELSEWHERE = { 'X-Forwarded-For': '203.0.113.9' };
const USERNAME = 'alice';

/** What a row is sent, and a good request with the status that it gets. */
interface Target {
  fields: Fields;
  good: () => RequestOptions;
  status?: number;
}

const usernames = fc.oneof({ weight: 6, arbitrary: fc.constant(USERNAME) }, fc.constantFrom('Alice', 'nobody', 'zoe'), anyText);
const passwords = fc.oneof({ weight: 6, arbitrary: fc.constant(PASSWORD) }, anyText);
const numbers = fc.oneof(fc.integer({ min: 0, max: 30 }).map(String), fc.bigInt().map(String));
const pages = { page: numbers, limit: numbers, offset: numbers };
const keys = fc.nat({ max: 38 });
const form = {
  fields: {
    username: usernames,
    password: passwords,
    grant_type: fc.constantFrom('password', 'password', '', 'refresh_token', 'client_credentials'),
    scope: fc.oneof(fc.constantFrom('', 'offline_access', 'products:write users:read', 'offline_access  blog:write x'), anyText),
    refresh_token: fc.oneof(anyText, fc.constantFrom('a.b.c')),
  },
  good: () => ({ form: { username: USERNAME, password: PASSWORD } }),
};
const login = {
  fields: { username: quoted(usernames), password: quoted(passwords) },
  good: () => ({ json: { username: USERNAME, password: PASSWORD } }),
};
const logout = {
  fields: { session_key: keys.map((index) => JSON.stringify(sessionKeys[index])) },
  good: () => ({ json: { session_key: sessionKeys.at(-1) } }),
};
const read = { fields: {}, good: () => ({ as: caller }) };

const TARGETS: Record<string, Target> = {
  'GET /api/users': { ...read, fields: pages },
  'POST /token': form,
  'POST /login': form,
  'POST /session/login': login,
  'POST /session/logout': logout,
  'GET /api/v2/auth/login': {
    fields: { username: usernames, password: passwords },
    good: () => ({ headers: { Authorization: `Basic ${Buffer.from(`${USERNAME}:${PASSWORD}`).toString('base64')}` } }),
  },
  'POST /api/v2/auth/login': { ...logout, fields: { ...logout.fields, ...login.fields } },
  'GET /api/v1/shop/products': read,
  'GET /api/v1/shop/product/{pk}': { ...read, fields: { pk: fc.oneof(numbers, fc.constantFrom('1', '2', '2147483647', '2147483648')) } },
  'POST /api/v1/shop/product/': {
    fields: {
      name: quoted(lineText),
      barcode: quoted(barcodeText),
      price: fc.oneof(
        priceText,
        priceText.map((text) => JSON.stringify(text)),
      ),
    },
    good: () => ({ as: caller, json: { name: 'Pen', barcode: shop.newBarcode(), price: 1 } }),
    status: 201,
  },
  'GET /api/v2/shop/products': { ...read, fields: pages },
  'GET /users/me/': read,
  'GET /users/me/items/': read,
  'GET /blog': read,
};

const config = readConfig({ SIGNING_SECRET: TEST_SECRET }, () => undefined);
const rows = features.flatMap(({ routes }) => routes?.(config) ?? []).map((row) => [`${row.method} ${row.path}`, row] as const);

let fuzz: Fuzz;
let caller: User;
let sessionKeys: string[];
let asking: Keys;

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
  // Of somebody else: the more logins a user has, the fewer of the older sessions stay.
  const other = await shop.makeUser();
  sessionKeys = [];
  for (let index = 0; index < 40; index++) sessionKeys.push((await sessions.open(shop.context(), other, null)).key);
  // The last is for the good request.
  asking = { token: shop.tokenOf(caller, 3_600), username: USERNAME, sessionKeys: sessionKeys.slice(0, -1) };
});

test('R24 the rows below are all there are', () => {
  expect(rows.map(([name]) => name).toSorted()).toEqual(Object.keys(TARGETS).toSorted());
});

test.each(rows)(
  'R24 %s: whatever it is sent, no 5xx, no hang, and nothing is stored but what a read shows byte for byte',
  async (name, row) => {
    const { fields, good, status = 200 }: Target = TARGETS[name] ?? read;
    // What reads has less to be sent.
    const runs = row.method === 'POST' ? RUNS : RUNS / 10;
    const [others, before] = [await storedBesides(), await storedProducts(shop)];
    const made = new Map(before.map((product) => [product.pk, product]));
    const statuses = new Map<number, number>();
    await fuzz.storm(requestsAt(row, fields, asking), runs, async (asked) => {
      const reply = await fuzz.ask(asked);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      if (reply.status === 201) {
        const { pk, ...product } = exactly(reply.text);
        if (!isDeepStrictEqual(product, meant(asked))) return `${JSON.stringify(asked.text)} was stored as ${reply.text}`;
        made.set(pk, { pk, ...product });
      }
      return faultOf(asked, reply);
    });
    const shown = [...made.values()].toSorted((a, b) => Number(a.pk) - Number(b.pk));
    expect(await storedProducts(shop)).toEqual(shown);
    expect(await listedProducts(shop)).toEqual(shown);
    expect(await productsInGraphql(shop)).toEqual(shown);
    expect(await storedBesides()).toEqual(others);
    const { method, path } = row;
    const { headers, ...request } = good();
    const after = await shop.rest(method, path.replace('{pk}', '1'), { ...request, headers: { ...ELSEWHERE, ...headers } });
    expect(after.status).toBe(status);
    // Most is nonsense, but much is not: otherwise no more than the front door was tried.
    if (runs >= MANY) expect(statuses.get(status) ?? 0).toBeGreaterThan(runs / 1_000);
  },
  TIMEOUT,
);

/** What the row was told to store. */
function meant({ text = '' }: Asked) {
  const { name, barcode, price } = exactly(text);
  return { name: name.trim(), barcode, price: decimal(price) };
}

/** Whatever no REST row may write; sessions are opened and ended. */
async function storedBesides() {
  return [
    await shop.sql('select * from "user" order by pk'),
    await shop.sql('select * from item order by pk'),
    await shop.sql('select * from blog_entry order by pk'),
  ];
}
