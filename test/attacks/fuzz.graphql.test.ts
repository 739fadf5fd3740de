import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import fc, { type Arbitrary } from 'fast-check';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { faultOf, Fuzz, RUNS, type FuzzRequest } from '../support/fuzz.ts';
import { restProducts, graphqlProducts, storedProducts } from '../support/fuzz.apis.ts';
import { Operations, type Operation } from '../support/fuzz.graphql.ts';
import { headersOf } from '../support/fuzz.requests.ts';
import {
  anyJson,
  anyText,
  barcodeText,
  damaged,
  endless,
  numberText,
} from '../support/fuzz.values.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop(
  { LOG_LEVEL: 'info', TRUST_PROXY: '127.0.0.1' },
  { loginFailuresPerAddressPer10Minutes: 20 },
);

const TIMEOUT = 600_000;
const PATH = '/graphql';
const JSON_TYPE = { 'Content-Type': 'application/json' };

let fuzz: Fuzz;
let caller: User;
let generated: Arbitrary<FuzzRequest>;

beforeAll(() => {
  fuzz = new Fuzz(shop);
});

afterAll(() => fuzz.stop());

beforeEach(async () => {
  caller = await shop.makeUser({ scopes: ['products:write', 'blog:write', 'users:read'] });
  const other = await shop.makeUser();
  const barcodes = (await shop.makeProducts(60)).map(({ barcode }) => barcode);
  const [items, entries] = [[await shop.makeItem(caller)], [await shop.makeEntry(caller)]];
  for (const user of [caller, other, other]) {
    items.push(await shop.makeItem(user));
    entries.push(await shop.makeEntry(user, { published: user === caller }));
  }
  const opened = [];
  for (let index = 0; index < 10; index++)
    opened.push((await sessions.open(shop.context(), other, null)).key);
  const found = await shop.graphql('{ products { nodes { id } edges { cursor } } }');
  const { nodes, edges } = found.body.data.products as {
    nodes: { id: string }[];
    edges: { cursor: string }[];
  };
  const ids = textOf(
    ...nodes.map(({ id }) => id),
    caller.id,
    other.id,
    ...[...items, ...entries].map(({ id }) => id),
  );
  const operations = new Operations(await makeSchema(), {
    id: ids,
    ids,
    pk: fc.oneof(
      fc.integer({ min: 1, max: 200 }).map(String),
      fc.integer({ min: 1, max: 200 }).map((pk) => `"${pk}"`),
      numberText,
    ),
    after: textOf(...edges.map(({ cursor }) => cursor)),
    before: textOf(...edges.map(({ cursor }) => cursor)),
    barcode: fc.oneof(
      textOf(...barcodes),
      barcodeText.map((barcode) => JSON.stringify(barcode)),
    ),
    itemId: textOf(...items.map(({ itemId }) => itemId)),
    username: textOf(caller.username, other.username),
    password: textOf(PASSWORD),
    current: textOf(PASSWORD),
    sessionKey: textOf(...opened),
    scopes: textOf('products:write', 'users:read'),
    name: textOf('Product', '__Type', 'User'),
  });
  const keys = {
    token: shop.tokenOf(caller, 3_600),
    username: caller.username,
    sessionKeys: opened,
  };
  const sent = fc.oneof(
    { weight: 3, arbitrary: operations.queries },
    { weight: 2, arbitrary: operations.mutations },
  );
  generated = requests(sent, keys.token, headersOf(keys));
});

test(
  'R24 GraphQL: generated and damaged operations cause no 5xx and no hang, and both APIs then return the same products',
  async () => {
    const outcomes = new Map<string, number>();
    await fuzz.attemptAll(generated, RUNS, async (request) => {
      const reply = await fuzz.sendRequest(request);
      const codes = reply.text.match(/(?<="code":")\w+/g) ?? [
        reply.text.startsWith('{"data"') ? 'served' : 'other',
      ];
      for (const code of new Set(codes)) outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
      return codes.includes('INTERNAL_SERVER_ERROR') ? reply.text : faultOf(request, reply);
    });
    const stored = await storedProducts(shop);
    expect(await restProducts(shop)).toEqual(stored);
    expect(await graphqlProducts(shop)).toEqual(stored);
    expect((await shop.graphql('{ me { username } }', {}, { as: caller })).body).toEqual({
      data: { me: { username: caller.username } },
    });
    // Many operations are valid.
    expect(outcomes.get('served') ?? 0).toBeGreaterThan(RUNS / 10);
  },
  TIMEOUT,
);

/** Requests with these operations: mostly valid, sometimes with a damaged body. */
function requests(
  operations: Arbitrary<Operation>,
  token: string,
  others: Arbitrary<Record<string, string>>,
): Arbitrary<FuzzRequest> {
  const extra = fc.constantFrom(
    ...Array<string>(40).fill(''),
    ',"operationName":"x"',
    ',"operationName":1',
    ',"extensions":{"cost":true}',
    ',"variables":[]',
    ',"query":null',
    ',"extensions":{"persistedQuery":{"version":1,"sha256Hash":"x"}}',
  );
  const body = fc
    .tuple(operations, extra)
    .map(
      ([{ query, variables }, more]) =>
        `{"query":${JSON.stringify(query)},"variables":${variables}${more}}`,
    );
  const bodies: Arbitrary<string | Buffer> = fc.oneof(
    { weight: 26, arbitrary: body },
    { weight: 3, arbitrary: damaged(body) },
    { weight: 1, arbitrary: fc.oneof(endless, anyJson, anyText) },
  );
  const credentials = fc
    .nat({ max: 8 })
    .map((number): Record<string, string> =>
      number === 0 ? {} : { Authorization: `Bearer ${token}` },
    );
  const posted = fc.tuple(bodies, credentials, others).map(([sent, own, more]): FuzzRequest => ({
    method: 'POST',
    path: PATH,
    headers: { ...JSON_TYPE, ...own, ...more },
    body: sent,
  }));
  const got = fc.tuple(operations, credentials).map(([operation, headers]): FuzzRequest => ({
    method: 'GET',
    path: `${PATH}?${new URLSearchParams({ ...operation }).toString().slice(0, 8_000)}`,
    headers: { ...headers, Accept: 'application/json' },
  }));
  return fc.oneof({ weight: 16, arbitrary: posted }, { weight: 1, arbitrary: got });
}

/** One of these texts, or any text, as JSON. */
function textOf(...texts: string[]): Arbitrary<string> {
  return fc
    .oneof({ weight: 4, arbitrary: fc.constantFrom(...texts) }, { weight: 1, arbitrary: anyText })
    .map((value) => JSON.stringify(value));
}
