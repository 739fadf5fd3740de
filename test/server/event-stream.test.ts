import { ServerResponse } from 'node:http';
import { mock } from 'node:test';
import { afterEach, beforeEach, describe, expect, jest, test } from '../support/jest.ts';
import { createClient } from 'graphql-sse';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { closeStreams, listen, openStream, writtenUntil, type EventStreamOf } from '../support/events.ts';
import { insertingMany } from '../support/many-products.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const PRODUCTS =
  'subscription ($pks: [ID!], $kinds: [ProductChangeKind!], $after: String) { productChanged(pks: $pks, kinds: $kinds, after: $after) { kind pk cursor } }';
const NAMED = 'subscription { productChanged { kind pk count at product { id pk name barcode price createdAt updatedAt } } }';
const OWN_END = 'subscription { sessionEnded { sessionId reason at } }';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { id pk name barcode price createdAt updatedAt } }';

const shop = useShop();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});
afterEach(closeStreams);

const changed = async (stream: EventStreamOf) => {
  const { event, data } = (await stream.next()) ?? {};
  expect([event, data?.errors]).toEqual(['next', undefined]);
  return data.data.productChanged;
};
/** The errors of the one answer that a stream ends with. */
const refusalOf = async (stream: EventStreamOf) => {
  const last = await stream.next();
  expect(last?.event).toBe('next');
  expect(await stream.next()).toEqual({ event: 'complete', data: null });
  expect(await stream.next()).toBeUndefined();
  return last?.data.errors[0];
};
const login = async () => {
  const { body } = await shop.rest('POST', '/session/login', { json: { username: seller.username, password: PASSWORD } });
  return String(body.session_key);
};

describe('a subscription to products', () => {
  test('is told of one that is created, changed and deleted, as it then is', async () => {
    const stream = await listen(shop, NAMED);
    expect([stream.status, stream.headers.get('Content-Type'), stream.headers.get('Cache-Control')]).toEqual([
      200,
      'text/event-stream',
      'no-store',
    ]);
    const input = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
    const { body } = await shop.graphql(CREATE, { input }, { as: seller });
    const created = body.data.createProduct;
    expect(await changed(stream)).toEqual({ kind: 'CREATED', pk: created.pk, count: null, at: expect.any(String), product: created });
    await shop.graphql('mutation ($pk: ID!) { updateProduct(pk: $pk, input: {price: "0.10"}) { pk } }', { pk: created.pk }, { as: seller });
    expect(await changed(stream)).toMatchObject({ kind: 'CHANGED', pk: created.pk, product: { price: 0.1 } });
    await shop.graphql('mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }', { pk: created.pk }, { as: seller });
    expect(await changed(stream)).toMatchObject({ kind: 'DELETED', pk: created.pk, product: null });
  });

  test('is told of what REST, and what another instance does', async () => {
    const other = await new Shop().start();
    try {
      const stream = await listen(other, PRODUCTS);
      const json = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
      const { body } = await shop.rest('POST', '/api/v1/shop/product/', { as: seller, json });
      expect(await changed(stream)).toMatchObject({ kind: 'CREATED', pk: String(body.pk) });
      stream.close();
    } finally {
      await other.stop();
    }
  });

  test('is told of many at once in one word', async () => {
    await shop.sql(insertingMany(1_001));
    const stream = await listen(shop, NAMED);
    await shop.sql('update product set price = 2');
    expect(await changed(stream)).toMatchObject({ kind: 'MANY', pk: null, product: null, count: 1_001 });
  });

  test('chooses by primary key and by kind', async () => {
    const [one, two] = await shop.makeProducts(2);
    const stream = await listen(shop, PRODUCTS, { pks: [String(two?.pk)], kinds: ['CHANGED', 'DELETED'] });
    await shop.sql(`update product set price = 3 where pk = ${one?.pk}`);
    await shop.makeProduct();
    await shop.sql(`delete from product where pk = ${two?.pk}`);
    expect(await changed(stream)).toMatchObject({ kind: 'DELETED', pk: String(two?.pk) });
  });

  test('goes on after a cursor, which each event also has as its id, and which a browser sends again as Last-Event-ID', async () => {
    const stream = await listen(shop, PRODUCTS);
    const [, second] = await shop.makeProducts(2);
    const first = await stream.next();
    const after = first?.data.data.productChanged.cursor;
    expect(first?.id).toBe(after);
    stream.close();
    const headers = { 'Last-Event-ID': String(after) };
    for (const again of [await listen(shop, PRODUCTS, { after }), await listen(shop, PRODUCTS, {}, { headers })]) {
      expect(await changed(again)).toMatchObject({ pk: String(second?.pk) });
    }
  });

  test('after a cursor that is too old is told so', async () => {
    const stream = await listen(shop, PRODUCTS);
    await shop.makeProduct();
    const { cursor: after } = await changed(stream);
    await shop.sql('delete from change');
    expect(await refusalOf(await listen(shop, PRODUCTS, { after }))).toMatchObject({
      extensions: { code: 'CHANGES_LOST' },
      path: ['productChanged'],
    });
  });

  test.each([
    ['a cursor that is none', { after: 'nonsense' }],
    ['more than a hundred primary keys', { pks: Array.from({ length: 101 }, (_, index) => String(index)) }],
    ['a kind that there is not', { kinds: ['SOLD'] }],
  ])('with %s is refused', async (_name, variables) => {
    expect(await refusalOf(await listen(shop, PRODUCTS, variables))).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
  });

  test('by GET, as EventSource asks for it', async () => {
    const search = new URLSearchParams({ query: PRODUCTS, variables: '{"kinds":["CREATED"]}' });
    const stream = await openStream(`${shop.url}/graphql?${search.toString()}`, { headers: { Accept: 'text/event-stream' } });
    const { pk } = await shop.makeProduct();
    expect(await changed(stream)).toMatchObject({ pk: String(pk) });
  });

  test('is served to the client of the protocol', async () => {
    const client = createClient({ url: `${shop.url}/graphql`, retryAttempts: 0 });
    const told = Promise.withResolvers<unknown>();
    const stop = client.subscribe(
      { query: NAMED },
      { next: told.resolve, error: told.reject, complete: () => told.reject(new Error('complete')) },
    );
    expect(await writtenUntil(shop, told.promise)).toMatchObject({ data: { productChanged: { kind: 'CREATED' } } });
    stop();
    client.dispose();
  });
});

describe('what is wrong with the operation is an event, for a browser tells nothing of a refused stream', () => {
  test.each([
    ['no GraphQL', '{', 'GRAPHQL_PARSE_FAILED'],
    ['what the schema has not', 'subscription { productSold { pk } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a query', '{ me { username } }', 'BAD_REQUEST'],
    ['a mutation', 'mutation { logout { ended } }', 'BAD_REQUEST'],
    ['what every type has', 'subscription { __typename }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a field that is skipped', 'subscription { productChanged @skip(if: true) { pk } }', 'GRAPHQL_VALIDATION_FAILED'],
    [
      'a field that may be left out, in a fragment',
      'subscription ($is: Boolean = false) { ...F } fragment F on Subscription { ... @include(if: $is) { productChanged { pk } } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    ['two fields', 'subscription { productChanged { pk } sessionEnded { at } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['too many tokens', `subscription { productChanged { ${'pk '.repeat(1_000)} } }`, 'GRAPHQL_PARSE_FAILED'],
    [
      'too many aliases',
      `subscription { productChanged { ${Array.from({ length: 16 }, (_, n) => `a${n}: pk`).join(' ')} } }`,
      'QUERY_TOO_COMPLEX',
    ],
    [
      'too many directives',
      `subscription { productChanged { ${Array.from({ length: 51 }, () => `... @include(if: true) { pk }`).join(' ')} } }`,
      'QUERY_TOO_COMPLEX',
    ],
  ])('%s', async (_name, query, code) => {
    const stream = await listen(shop, query);
    expect(stream.status).toBe(200);
    expect(await refusalOf(stream)).toMatchObject({ extensions: { code } });
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  test('one that has more levels, or costs more, than is allowed', async () => {
    const strict = await new Shop({ GRAPHQL_MAX_DEPTH: '2', GRAPHQL_MAX_COST: '1' }).start();
    try {
      for (const query of [
        'subscription { productChanged { product { pk } } }',
        'subscription { productChanged { product { __typename } } }',
      ]) {
        expect(await refusalOf(await listen(strict, query))).toMatchObject({ extensions: { code: 'QUERY_TOO_COMPLEX' } });
      }
    } finally {
      await strict.stop();
    }
  });

  test('one that asks for the schema where that is hidden, and gets no hints', async () => {
    const hidden = await new Shop({ GRAPHQL_EXPLORER: 'false' }).start();
    try {
      const asked = await refusalOf(await listen(hidden, '{ __schema { types { name } } }'));
      expect(asked.message).toBe('Introspection is disabled on this server (GRAPHQL_EXPLORER)');
      expect((await refusalOf(await listen(hidden, 'subscription { productChange { pk } }'))).message).not.toMatch(/mean/);
    } finally {
      await hidden.stop();
    }
  });
});

describe('what is wrong with the request is answered as to any other', () => {
  test('credentials that are none: 401', async () => {
    const stream = await listen(shop, PRODUCTS, {}, { token: 'nonsense' });
    expect([stream.status, stream.headers.get('WWW-Authenticate')]).toEqual([401, 'Bearer']);
    expect(await stream.next()).toMatchObject({ data: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] } });
  });

  test.each([
    ['no query', {}, 400],
    ['a list', [{ query: PRODUCTS }], 400],
    ['a query that is no text', { query: 1 }, 400],
    ['variables that are no object', { query: PRODUCTS, variables: [] }, 400],
    ['more than 100 KB', { query: PRODUCTS, variables: { after: 'x'.repeat(110_000) } }, 413],
  ])('%s', async (_name, json, status) => {
    expect((await listen(shop, '', {}, { json })).status).toBe(status);
  });

  test('a stream that is more than the address may have: 429, until another ends', async () => {
    const small = await new Shop({ MAX_LIVE_PER_ADDRESS: '2' }).start();
    try {
      const [first] = [await listen(small, PRODUCTS), await listen(small, PRODUCTS)];
      const refused = await listen(small, PRODUCTS);
      expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '5']);
      first?.close();
      while ((await listen(small, PRODUCTS)).status !== 200);
    } finally {
      closeStreams();
      await small.stop();
    }
  });

  test('a stream that is more than the process takes: 503', async () => {
    const none = await new Shop({ MAX_LIVE_CONNECTIONS: '0' }).start();
    try {
      expect((await listen(none, PRODUCTS)).status).toBe(503);
    } finally {
      await none.stop();
    }
  });
});

/** Has the rows of every read of the shop wait until they are let go. */
const holdReads = (held: Shop) => {
  const { statements } = held.database;
  const read = statements.read.bind(statements);
  const { promise, resolve: letGo } = Promise.withResolvers<void>();
  const spy = jest.spyOn(statements, 'read').mockImplementation(async (...asked) => {
    const rows = await read(...asked);
    await promise;
    return rows;
  });
  const begun = until(() => spy.mock.calls.length > 0, 'a read');
  return { begun, letGo };
};

test('who leaves before it is known who it is takes up no place', async () => {
  const small = await new Shop({ MAX_LIVE_PER_ADDRESS: '1' }).start();
  try {
    const { begun, letGo } = holdReads(small);
    const left = listen(small, PRODUCTS, {}, { as: seller }).catch((error: Error) => error.name);
    await begun;
    closeStreams();
    expect(await left).toBe('AbortError');
    await until(() => small.logged.some((line) => line.includes('"end":"aborted"')), 'the end of the request');
    letGo();
    await small.rest('GET', '/livez');
    expect((await listen(small, PRODUCTS)).status).toBe(200);
  } finally {
    closeStreams();
    await small.stop();
  }
});

test('a sign of life that is due before the stream begins is left out', async () => {
  const held = await new Shop().start();
  mock.timers.enable({ apis: ['setInterval'] });
  try {
    const { begun, letGo } = holdReads(held);
    const opening = listen(held, PRODUCTS);
    await begun;
    mock.timers.tick(12_000);
    letGo();
    const { status, headers } = await opening;
    expect([status, headers.get('Content-Type')]).toEqual([200, 'text/event-stream']);
  } finally {
    mock.timers.reset();
    closeStreams();
    await held.stop();
  }
});

describe('a sign of life', () => {
  /** Has what is sent be taken only when the test says so. */
  const holdTaken = () => {
    const taken: (() => void)[] = [];
    const write: unknown = Reflect.get(ServerResponse.prototype, 'write');
    const spy = jest.spyOn(ServerResponse.prototype, 'write').mockImplementation(function (this: ServerResponse, piece: unknown, done) {
      if (typeof done === 'function') taken.push(() => (done as () => void)());
      return Reflect.apply(write as () => boolean, this, [piece]);
    });
    return { taken, letGo: () => spy.mockRestore() };
  };

  test('is waited for from who reads nothing, and from nobody who reads', async () => {
    const held = await new Shop().start();
    mock.timers.enable({ apis: ['setInterval'] });
    const { taken, letGo } = holdTaken();
    try {
      const stream = await listen(held, PRODUCTS);
      mock.timers.tick(12_000);
      for (let beat = 0; beat < 3; beat++) {
        await until(() => taken.length > 0, 'a write');
        taken.shift()?.();
        const { pk } = await held.makeProduct();
        expect(await changed(stream)).toMatchObject({ pk: String(pk) });
        mock.timers.tick(12_000);
      }
      mock.timers.tick(12_000);
      await expect(stream.next()).rejects.toThrow('terminated');
    } finally {
      letGo();
      mock.timers.reset();
      closeStreams();
      await held.stop();
    }
  });
});

test('what is logged of a stream names it as its answer does', async () => {
  const { headers } = await listen(shop, PRODUCTS, {}, { token: 'nonsense' });
  const id = String(headers.get('X-Request-Id'));
  expect(shop.logged.filter((line) => line.includes(id) && line.includes('"auth.'))).toHaveLength(1);
});

test('a parameter may have a name that every object has', async () => {
  const query = 'subscription { productChanged { pk } }';
  const search = new URLSearchParams({ query, constructor: '1', toString: '2' }).toString();
  const { status } = await openStream(`${shop.url}/graphql?${search}`, { headers: { Accept: 'text/event-stream' } });
  expect(status).toBe(200);
});

test('a subscription by an ordinary request is told how to ask', async () => {
  const { status, body } = await shop.graphql(PRODUCTS);
  expect([status, body.errors[0].message]).toEqual([400, expect.stringContaining('text/event-stream')]);
});

describe('credentials are looked at for as long as the stream is open', () => {
  const codeOf = async (stream: EventStreamOf) => (await refusalOf(stream)).extensions.code;

  test('a session that is ended ends all its streams, and the one that waits for it is told first', async () => {
    const sessionKey = await login();
    const [end, products, others] = [
      await listen(shop, OWN_END, {}, { sessionKey }),
      await listen(shop, PRODUCTS, {}, { sessionKey }),
      await listen(shop, PRODUCTS),
    ];
    const { body } = await shop.graphql('{ me { sessions { nodes { id } } } }', {}, { sessionKey });
    await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
    const [{ id }] = body.data.me.sessions.nodes;
    expect((await end?.next())?.data).toEqual({ data: { sessionEnded: { sessionId: id, reason: 'ENDED', at: expect.any(String) } } });
    for (const stream of [end, products]) expect(await codeOf(stream)).toBe('UNAUTHENTICATED');
    await shop.makeProduct();
    expect(await changed(others)).toMatchObject({ kind: 'CREATED' });
  });

  /** A stream that goes on after a cursor, as far as the reads of this statement, which wait until they are given up. */
  const resuming = async (statement: string, sessionKey: string) => {
    const first = await listen(shop, PRODUCTS);
    await shop.makeProducts(1);
    const { cursor: after } = await changed(first);
    await shop.makeProducts(1);
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    const given = Promise.withResolvers<void>();
    const spy = jest.spyOn(statements, 'read').mockImplementation(async (...asked) => {
      const [{ text }, , request] = asked;
      if (!request || !text.includes(statement)) return read(...asked);
      given.resolve();
      return new Promise((_done, fail) => request.onGiveUp(() => fail(Object.assign(new Error('aborted'), { name: 'AbortError' }))));
    });
    const opening = listen(shop, PRODUCTS, { after }, { sessionKey });
    opening.catch(() => undefined);
    await given.promise;
    return { opening, letGo: () => spy.mockRestore() };
  };
  const READS = [
    ['looks for its cursor', 'select 1 from change'],
    ['reads what it has missed', 'as horizon'],
  ] as const;

  test.each(READS)('a session that is ended while its stream %s is told so, not that it took too long', async (_what, statement) => {
    const sessionKey = await login();
    const { opening, letGo } = await resuming(statement, sessionKey);
    try {
      await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
      expect(await codeOf(await opening)).toBe('UNAUTHENTICATED');
    } finally {
      letGo();
    }
  });

  test.each(READS)('who leaves while the stream %s is no fault of ours', async (_what, statement) => {
    const { letGo } = await resuming(statement, await login());
    try {
      closeStreams();
      const isEnd = (line: string) => line.includes('"type":"subscription"') && line.includes(`"user":"${seller.username}"`);
      await until(() => shop.logged.some(isEnd), 'the end of the stream');
      await shop.rest('GET', '/livez');
      expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
    } finally {
      letGo();
    }
  });

  test('so does one that has expired', async () => {
    const sessionKey = await login();
    const stream = await listen(shop, OWN_END, {}, { sessionKey });
    shop.pass(15 * 86_400_000);
    expect((await stream.next())?.data.data.sessionEnded.reason).toBe('EXPIRED');
    expect(await codeOf(stream)).toBe('UNAUTHENTICATED');
  });

  test('so does a user who is disabled, or is no more', async () => {
    const sessionKey = await login();
    const [session, token] = [await listen(shop, OWN_END, {}, { sessionKey }), await listen(shop, PRODUCTS, {}, { as: seller })];
    await accounts.disable(shop.context(), seller.username);
    expect((await session?.next())?.data.data.sessionEnded.reason).toBe('DISABLED');
    for (const stream of [session, token]) expect(await codeOf(stream)).toBe('INACTIVE_USER');
    const gone = await listen(shop, PRODUCTS, {}, { as: await shop.makeUser({ username: 'gone' }) });
    await shop.sql(`delete from "user" where username = 'gone'`);
    expect(await codeOf(gone)).toBe('UNAUTHENTICATED');
  });

  test('so does a token that has expired', async () => {
    const stream = await listen(shop, PRODUCTS, {}, { token: shop.tokenOf(seller, 60) });
    shop.pass(60_000);
    expect(await codeOf(stream)).toBe('UNAUTHENTICATED');
  });

  test.each<[string, (pk: number) => Promise<unknown>]>([
    ['was revoked', (pk) => apiKeys.revokeOf(shop.context(), pk)],
    ['has expired', async () => shop.pass(2 * 3_600_000)],
  ])('so does an API key that %s, and no other', async (_what, lapse) => {
    const expiresAt = new Date(shop.now().getTime() + 3_600_000);
    const { key } = await apiKeys.createFor(shop.context(), seller, { name: 'till', scopes: [], expiresAt });
    const other = await shop.makeUser({ username: 'other' });
    const { key: good } = await apiKeys.createFor(shop.context(), other, { name: 'till', scopes: [] });
    const [stream, others] = [await listen(shop, PRODUCTS, {}, { token: key }), await listen(shop, PRODUCTS, {}, { token: good })];
    await lapse(seller.pk);
    expect(await codeOf(stream)).toBe('UNAUTHENTICATED');
    expect(shop.logged.filter((line) => line.includes('auth.lapsed')).map((line) => JSON.parse(line))).toMatchObject([
      { reason: 'API_KEY' },
    ]);
    await shop.makeProduct();
    expect(await changed(others)).toMatchObject({ kind: 'CREATED' });
  });

  test('credentials without a session have no end to wait for, and so has nobody', async () => {
    expect(await codeOf(await listen(shop, OWN_END, {}, { as: seller }))).toBe('UNAUTHENTICATED');
    expect(await codeOf(await listen(shop, OWN_END))).toBe('UNAUTHENTICATED');
  });
});
