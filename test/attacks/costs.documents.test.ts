import { ApolloServer } from '@apollo/server';
import { LRUCache } from 'lru-cache';
import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';
import { closeSockets, greet } from '../support/sockets.ts';
import { listen } from '../support/events.ts';
import { until } from '../support/until.ts';

const shop = useShop();
const hidden = useShop({ GRAPHQL_EXPLORER: 'false' });
const wrong = (kind: string) => `${kind} { ${Array.from({ length: 100 }, (_, index) => `field${index} { a }`).join(' ')} }`;
const PRODUCTS = 'subscription { productChanged { pk } }';
const STOPPED = 'Too many validation errors, error limit reached. Validation aborted.';

afterEach(() => {
  jest.restoreAllMocks();
  closeSockets();
});

describe('P3 an invalid document', () => {
  test('P3 has five errors at most, the last of which says that there are more', async () => {
    const { status, body } = await shop.rest('POST', '/graphql', { json: { query: wrong('query') } });
    expect([status, body.errors.length, body.errors[4].message]).toEqual([400, 5, STOPPED]);
  });

  test('P3 the same on a WebSocket, and the second time as well', async () => {
    const socket = await greet(shop);
    const told = [];
    for (const id of ['1', '2']) {
      socket.send({ id, type: 'subscribe', payload: { query: wrong('subscription') } });
      told.push((await socket.next()).payload);
    }
    expect([told[0].length, told[0][4].message]).toEqual([5, STOPPED]);
    expect(told[0]).toContainEqual(expect.objectContaining({ locations: [{ line: 1, column: 16 }] }));
    expect(told[1]).toEqual(told[0]);
  });

  // Documents that no other test sends: the shop remembers them.
  test.each([
    ['a field that there is not', '{ onlyHere }', undefined],
    ['what cannot be parsed', '{ onlyHere', undefined],
    ['as GraphQL media type', '{ onlyHere }', 'application/graphql-response+json'],
    ['as JSON', '{ onlyHere }', 'application/json'],
  ])('P3 is not validated again, and answered as before: %s', async (_what, query, accept) => {
    const executed = jest.spyOn(ApolloServer.prototype, 'executeHTTPGraphQLRequest');
    const token = shop.tokenOf(await shop.makeUser());
    const ask = (variables: object, request = {}) =>
      shop.rest('POST', '/graphql', { json: { query, variables }, headers: accept === undefined ? {} : { Accept: accept }, ...request });
    const first = await ask({});
    for (const again of [await ask({ some: 'other' }), await ask({}, { token })]) {
      expect([again.status, again.text, again.headers.get('content-type')]).toEqual([
        first.status,
        first.text,
        first.headers.get('content-type'),
      ]);
    }
    expect(executed).toHaveBeenCalledTimes(1);
    expect((await ask({}, { token: 'nonsense' })).status).toBe(401);
  });

  test('P3 is remembered only if it is the document that is refused', async () => {
    const executed = jest.spyOn(ApolloServer.prototype, 'executeHTTPGraphQLRequest');
    const query = 'query ($pk: ID!) { product(pk: $pk) { pk } }';
    const ask = (variables: object) => shop.rest('POST', '/graphql', { json: { query, variables } });
    expect((await ask({})).status).toBe(400);
    expect((await ask({ pk: '1' })).status).toBe(200);
    expect(executed).toHaveBeenCalled();
  });
});

describe('P20 invalid subscriptions, each another one', () => {
  const ask = (query: string) =>
    fetch(`${shop.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Accept: 'text/event-stream' },
      body: JSON.stringify({ query }),
    }).then((answer) => answer.text());

  test('P20 are remembered without anything that leads to their connections, and are answered as before', async () => {
    const set = jest.spyOn(LRUCache.prototype, 'set');
    const deep = `subscription { a${'{ a'.repeat(40)}${' }'.repeat(41)}`;
    const socket = await greet(shop);
    for (const query of ['subscription { remembered', 'subscription { remembered }', deep]) {
      const first = await ask(query);
      expect(first).toContain('event: next');
      expect(await ask(query)).toBe(first);
      const kept = set.mock.calls.filter(([key]) => key === query).map(([, value]) => value as unknown);
      expect(kept).toHaveLength(1);
      expect(errorsWithin(kept)).toEqual([]);
      socket.send({ id: '1', type: 'subscribe', payload: { query } });
      expect(first).toContain(JSON.stringify((await socket.next()).payload));
    }
  });

  test('P20 are remembered a thousand at most, however short they are', async () => {
    const set = jest.spyOn(LRUCache.prototype, 'set');
    await ask('subscription { first }');
    const place = set.mock.calls.findIndex(([key]) => key === 'subscription { first }');
    const memory = set.mock.contexts[place] as LRUCache<string, object>;
    for (let index = 0; index < 1_100; index += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, next) => ask(`subscription { a${index + next} }`)));
    }
    expect(memory.size).toBeGreaterThan(500);
    expect(memory.size).toBeLessThanOrEqual(1_000);
  });
});

describe('P22 errors that repeat what the client has sent', () => {
  const enumOf = 'query ($f: ProductOrderField!) { products(orderBy: { field: $f }) { totalCount } }';
  const long = 'x'.repeat(50_000);

  test.each<[string, string, object]>([
    ['the value of a variable', enumOf, { f: `${' cannot represent'.repeat(5_700)} b` }],
    ['the value of a variable that is an object', 'query ($k: ID!) { product(pk: $k) { pk } }', { k: { [long]: long } }],
    ['a literal', `{ products(first: "${'Did you mean '.repeat(7_200)}") { totalCount } }`, {}],
    ['the name of a field', `{ ${long} }`, {}],
    ['the name of a type', `query ($a: ${long}) { products(first: $a) { totalCount } }`, {}],
  ])('P22 have 1,000 characters at most: %s', async (_what, query, variables) => {
    for (const target of [shop, hidden]) {
      const { body } = await target.graphql(query, variables as Record<string, unknown>);
      expect(body.errors.length).toBeGreaterThan(0);
      for (const { message, extensions } of body.errors) {
        expect(message.length).toBeLessThanOrEqual(1_000);
        expect(JSON.stringify(extensions).length).toBeLessThan(1_200);
      }
    }
  });

  test.each([
    ['a value', 'subscription ($f: ChangeKin) { productChanged { pk } }'],
    ['a field', 'subscription { productChangd { pk } }'],
    ['a field with a long name', `subscription { productChanged${'d'.repeat(980)} { pk } }`],
  ])('P22 tell a subscriber of no names of the schema where the explorer is off: %s', async (_what, query) => {
    const socket = await greet(hidden);
    socket.send({ id: '1', type: 'subscribe', payload: { query } });
    const { payload } = await socket.next();
    for (const { message } of payload) expect(message).not.toMatch(/did you|["…]\?$/i);
  });
});

/** The errors in a value, wherever they are in it. */
function errorsWithin(value: unknown): Error[] {
  if (value instanceof Error) return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(errorsWithin) : [];
}

describe('P9 variables with very many mistakes', () => {
  const variables = { keys: Array.from({ length: 80 }, () => null) };

  test('P9 have 50 errors at most, each of the client, and nothing is logged as ours', async () => {
    const { status, body } = await shop.rest('POST', '/graphql', {
      json: { query: 'query ($keys: [ID!]!) { nodes(ids: $keys) { id } }', variables },
    });
    expect([status, body.errors.length]).toEqual([400, 50]);
    for (const { extensions } of body.errors) expect(extensions.code).toBe('BAD_USER_INPUT');
    expect(body.errors[7]).toMatchObject({ message: expect.stringMatching(/^keys\.7: /), extensions: { fields: [{ field: 'keys.7' }] } });
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  test('P9 the same for subscriptions', async () => {
    const stream = await listen(shop, 'subscription ($keys: [ID!]) { productChanged(pks: $keys) { pk } }', variables);
    const told = await stream.next();
    expect(told?.data).toEqual({
      errors: Array.from({ length: 50 }, () =>
        expect.objectContaining({ extensions: expect.objectContaining({ code: 'BAD_USER_INPUT' }) }),
      ),
    });
  });
});

describe('P7 what subscriptions hold', () => {
  /** Begins subscriptions from the network, 20 on a socket, until one is rejected. Returns the code, and how many were begun. */
  const fill = async (target: Shop, network: string, payloadOf: (index: number) => object, most = 1_000) => {
    let socket = await greet(target, {}, { 'X-Forwarded-For': network });
    for (let index = 0; index < most; index++) {
      if (index % 20 === 19) socket = await greet(target, {}, { 'X-Forwarded-For': network });
      socket.send({ id: String(index), type: 'subscribe', payload: payloadOf(index) });
      socket.send({ type: 'ping' });
      const message = await socket.next();
      if (message.type === 'error') return { code: message.payload[0].extensions.code as string, begun: index };
    }
    return { code: undefined, begun: most };
  };

  test('P7 is bounded for each network and for all, and what ends makes room: documents', async () => {
    const behind = await new Shop({ TRUST_PROXY: '127.0.0.1' }).start();
    /** A document of nearly 100 KB. */
    const payloadOf = (network: string) => (index: number) => ({
      query: `subscription S${index} { productChanged { pk } } # ${network}${'x'.repeat(95_000)}`,
    });
    try {
      const first = await fill(behind, '192.0.2.1', payloadOf('192.0.2.1'));
      expect(first.code).toBe('RATE_LIMITED');
      expect(first.begun).toBeGreaterThan(100);
      let last = first;
      for (let network = 2; last.code === 'RATE_LIMITED' && network < 10; network++) {
        last = await fill(behind, `192.0.2.${network}`, payloadOf(`192.0.2.${network}`));
      }
      expect(last.code).toBe('UNAVAILABLE');
      closeSockets();
      await until(async () => (await fill(behind, '192.0.2.1', payloadOf('192.0.2.1'), 1)).code === undefined, 'room');
    } finally {
      closeSockets();
      await behind.stop();
    }
  });

  test('P7 is what is kept: of a document, one copy, and no padding in extensions or in variables that are not declared', async () => {
    const nothing = { nothing: 'x'.repeat(90_000) };
    const query = `subscription { productChanged { pk } } # ${'x'.repeat(90_000)}`;
    expect(await fill(shop, '', (index) => ({ query: PRODUCTS, [index % 2 ? 'variables' : 'extensions']: nothing }), 400)).toMatchObject({
      code: undefined,
    });
    closeSockets();
    expect(await fill(shop, '', () => ({ query }), 400)).toMatchObject({ code: undefined });
  });
});
