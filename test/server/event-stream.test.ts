import { ServerResponse } from 'node:http';
import { onAbort } from '../../src/core/abort.ts';
import { afterEach, beforeEach, describe, expect, jest, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import {
  closeStreams,
  openSubscription,
  openStream,
  type OpenEventStream,
} from '../support/events.ts';
import { insertingMany } from '../support/many-products.ts';
import { openSession } from '../support/logins.ts';
import { Shop, useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const PRODUCTS =
  'subscription ($pks: [ID!], $kinds: [ProductChangeKind!], $after: String) { productChanged(pks: $pks, kinds: $kinds, after: $after) { kind pk cursor } }';
const NAMED =
  'subscription { productChanged { kind pk count at product { id pk name barcode price createdAt updatedAt } } }';
const CREATE =
  'mutation ($input: ProductInput!) { createProduct(input: $input) { id pk name barcode price createdAt updatedAt } }';

const shop = useShop();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});
afterEach(closeStreams);

const changed = async (stream: OpenEventStream) => {
  const { event, data } = (await stream.next()) ?? {};
  expect([event, data?.errors]).toEqual(['next', undefined]);
  return data.data.productChanged;
};
/** The first error of the only event of a stream. */
const errorOf = async (stream: OpenEventStream) => {
  const last = await stream.next();
  expect(last?.event).toBe('next');
  expect(await stream.next()).toEqual({ event: 'complete', data: null });
  expect(await stream.next()).toBeUndefined();
  return last?.data.errors[0];
};
const login = async () => (await openSession(shop, seller)).key;

describe('a subscription to products', () => {
  test('receives a product that is created, changed and deleted, in its state at the time', async () => {
    const stream = await openSubscription(shop, NAMED);
    expect([
      stream.status,
      stream.headers.get('Content-Type'),
      stream.headers.get('Cache-Control'),
    ]).toEqual([200, 'text/event-stream', 'no-store']);
    const input = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
    const { body } = await shop.graphql(CREATE, { input }, { as: seller });
    const created = body.data.createProduct;
    expect(await changed(stream)).toEqual({
      kind: 'CREATED',
      pk: created.pk,
      count: null,
      at: expect.any(String),
      product: created,
    });
    await shop.graphql(
      'mutation ($pk: ID!) { updateProduct(pk: $pk, input: {price: "0.10"}) { pk } }',
      { pk: created.pk },
      { as: seller },
    );
    expect(await changed(stream)).toMatchObject({
      kind: 'CHANGED',
      pk: created.pk,
      product: { price: 0.1 },
    });
    await shop.graphql(
      'mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }',
      { pk: created.pk },
      { as: seller },
    );
    expect(await changed(stream)).toMatchObject({ kind: 'DELETED', pk: created.pk, product: null });
  });

  test('receives a bulk change as one event', async () => {
    await shop.sql(insertingMany(1_001));
    const stream = await openSubscription(shop, NAMED);
    await shop.sql('update product set price = 2');
    expect(await changed(stream)).toMatchObject({
      kind: 'BULK',
      pk: null,
      product: null,
      count: 1_001,
    });
  });

  test('filters by primary key and by kind', async () => {
    const [one, two] = await shop.makeProducts(2);
    const stream = await openSubscription(shop, PRODUCTS, {
      pks: [String(two?.pk)],
      kinds: ['CHANGED', 'DELETED'],
    });
    await shop.sql(`update product set price = 3 where pk = ${one?.pk}`);
    await shop.makeProduct();
    await shop.sql(`delete from product where pk = ${two?.pk}`);
    expect(await changed(stream)).toMatchObject({ kind: 'DELETED', pk: String(two?.pk) });
  });

  test('resumes after a cursor, which each event also has as its id, and which a browser sends as Last-Event-ID', async () => {
    const stream = await openSubscription(shop, PRODUCTS);
    const [, second] = await shop.makeProducts(2);
    const first = await stream.next();
    const after = first?.data.data.productChanged.cursor;
    expect(first?.id).toBe(after);
    stream.close();
    const headers = { 'Last-Event-ID': String(after) };
    for (const again of [
      await openSubscription(shop, PRODUCTS, { after }),
      await openSubscription(shop, PRODUCTS, {}, { headers }),
    ]) {
      expect(await changed(again)).toMatchObject({ pk: String(second?.pk) });
    }
  });

  test('after an old cursor gets CURSOR_EXPIRED', async () => {
    const stream = await openSubscription(shop, PRODUCTS);
    await shop.makeProduct();
    const { cursor: after } = await changed(stream);
    await shop.sql('delete from change');
    expect(await errorOf(await openSubscription(shop, PRODUCTS, { after }))).toMatchObject({
      extensions: { code: 'CURSOR_EXPIRED' },
      path: ['productChanged'],
    });
  });

  test.each([
    ['an invalid cursor', { after: 'nonsense' }],
    [
      'more than a hundred primary keys',
      { pks: Array.from({ length: 101 }, (_, index) => String(index)) },
    ],
    ['an unknown kind', { kinds: ['SOLD'] }],
  ])('with %s is rejected', async (_name, variables) => {
    expect(await errorOf(await openSubscription(shop, PRODUCTS, variables))).toMatchObject({
      extensions: { code: 'BAD_USER_INPUT' },
    });
  });

  test('is served by GET, as EventSource requests it', async () => {
    const search = new URLSearchParams({ query: PRODUCTS, variables: '{"kinds":["CREATED"]}' });
    const stream = await openStream(`${shop.url}/graphql?${search.toString()}`, {
      headers: { Accept: 'text/event-stream' },
    });
    const { pk } = await shop.makeProduct();
    expect(await changed(stream)).toMatchObject({ pk: String(pk) });
  });

  test('is served by GET with a question mark in its query (RFC 3986, 3.4)', async () => {
    const query = `?operationName=S&variables={"after":"a?b"}&query=${encodeURIComponent(PRODUCTS.replace(' (', ' S ('))}`;
    const headers = { Accept: 'text/event-stream' };
    const stream = await openStream(`${shop.url}/graphql${query}`, { headers });
    expect(await errorOf(stream)).toMatchObject({ path: ['productChanged'] });
  });
});

test('at shutdown, a stream whose reader is slow ends without completion, so that its client reconnects', async () => {
  const leaving = await new Shop().start();
  const stream = await openSubscription(leaving, PRODUCTS);
  const held: (() => void)[] = [];
  const write = Reflect.get(ServerResponse.prototype, 'write') as (chunk: string) => boolean;
  const hold = function (this: ServerResponse, chunk: string, done: () => void) {
    held.push(done);
    return write.call(this, chunk);
  };
  jest.spyOn(ServerResponse.prototype, 'write').mockImplementation(hold as typeof write);
  try {
    await leaving.makeProduct();
    await until(() => held.length > 0, 'an event');
    leaving.closeSubscriptions();
    // Meanwhile graphql-sse completes the subscription.
    await leaving.rest('GET', '/livez');
    for (const done of held) done();
    expect((await stream.next())?.event).toBe('next');
    expect(await stream.next()).toBeUndefined();
  } finally {
    jest.restoreAllMocks();
    await leaving.stop();
  }
});

describe('an error of the operation is an event, because a browser hides a rejected stream', () => {
  test.each([
    ['a query', '{ me { username } }', 'BAD_REQUEST'],
    ['a mutation', 'mutation { logout { ended } }', 'BAD_REQUEST'],
    ['__typename alone', 'subscription { __typename }', 'GRAPHQL_VALIDATION_FAILED'],
    [
      'a field that is skipped',
      'subscription { productChanged @skip(if: true) { pk } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    [
      'a conditional field in a fragment',
      'subscription ($is: Boolean = false) { ...F } fragment F on Subscription { ... @include(if: $is) { productChanged { pk } } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
    [
      'two fields',
      'subscription { productChanged { pk } again: productChanged { pk } }',
      'GRAPHQL_VALIDATION_FAILED',
    ],
  ])('%s', async (_name, query, code) => {
    const stream = await openSubscription(shop, query);
    expect(stream.status).toBe(200);
    expect(await errorOf(stream)).toMatchObject({ extensions: { code } });
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  test('variables that nest so deeply that they cannot be written', async () => {
    const deep = `${'['.repeat(6_000)}${']'.repeat(6_000)}`;
    const stream = await openStream(`${shop.url}/graphql`, {
      method: 'POST',
      headers: { Accept: 'text/event-stream', 'Content-Type': 'application/json' },
      body: `{"query":"${PRODUCTS}","variables":{"deep":${deep}}}`,
    });
    expect(await errorOf(stream)).toMatchObject({ extensions: { code: 'BAD_USER_INPUT' } });
  });

  test('an introspection where the schema is hidden, and without hints', async () => {
    const hidden = await new Shop({ GRAPHQL_EXPLORER: 'false' }).start();
    try {
      const error = await errorOf(
        await openSubscription(hidden, '{ __schema { types { name } } }'),
      );
      expect(error.message).toMatch(/^Only subscriptions/);
      expect(
        (await errorOf(await openSubscription(hidden, 'subscription { productChange { pk } }')))
          .message,
      ).not.toMatch(/mean/);
    } finally {
      await hidden.stop();
    }
  });
});

describe('an error of the request has the same response as any other', () => {
  test.each([
    ['no query', {}, 400],
    ['a list', [{ query: PRODUCTS }], 400],
    ['a query that is not a string', { query: 1 }, 400],
    ['variables that are not an object', { query: PRODUCTS, variables: [] }, 400],
  ])('%s', async (_name, json, status) => {
    expect((await openSubscription(shop, '', {}, { json })).status).toBe(status);
  });

  test('a stream above the maximum of the address: 429, until another ends', async () => {
    const small = await new Shop({ MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: '2' }).start();
    try {
      const [first] = [
        await openSubscription(small, PRODUCTS),
        await openSubscription(small, PRODUCTS),
      ];
      const rejected = await openSubscription(small, PRODUCTS);
      expect([rejected.status, rejected.headers.get('Retry-After')]).toEqual([429, '5']);
      first?.close();
      while ((await openSubscription(small, PRODUCTS)).status !== 200);
    } finally {
      closeStreams();
      await small.stop();
    }
  });
});

/** Delays the rows of all reads of the shop until they are released. */
const delayReads = (target: Shop) => {
  const { statements } = target.database;
  const read = statements.read.bind(statements);
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const spy = jest.spyOn(statements, 'read').mockImplementation(async (...args) => {
    const rows = await read(...args);
    await promise;
    return rows;
  });
  const begun = until(() => spy.mock.calls.length > 0, 'a read');
  return { begun, release };
};

test('a client that disconnects during authentication takes no place', async () => {
  const small = await new Shop({ MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: '1' }).start();
  try {
    const { begun, release } = delayReads(small);
    const left = openSubscription(small, PRODUCTS, {}, { as: seller }).catch(
      (error: Error) => error.name,
    );
    await begun;
    closeStreams();
    expect(await left).toBe('AbortError');
    await until(
      () => small.logged.some((line) => line.includes('"end":"aborted"')),
      'the end of the request',
    );
    release();
    await small.rest('GET', '/livez');
    expect((await openSubscription(small, PRODUCTS)).status).toBe(200);
  } finally {
    closeStreams();
    await small.stop();
  }
});

test('a subscription by an ordinary request is rejected with a hint at text/event-stream', async () => {
  const { status, body } = await shop.graphql(PRODUCTS);
  expect([status, body.errors[0].message]).toEqual([
    400,
    expect.stringContaining('text/event-stream'),
  ]);
});

describe('credentials are checked as long as the stream is open', () => {
  /** A stream that resumes after a cursor. Its reads of the statement wait until cancelled. */
  const resuming = async (statement: string, sessionKey: string) => {
    const first = await openSubscription(shop, PRODUCTS);
    await shop.makeProducts(1);
    const { cursor: after } = await changed(first);
    await shop.makeProducts(1);
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    const reached = Promise.withResolvers<void>();
    const spy = jest.spyOn(statements, 'read').mockImplementation(async (...args) => {
      const [{ text }, , request] = args;
      if (!request || !text.includes(statement)) return read(...args);
      reached.resolve();
      return new Promise((_done, fail) =>
        onAbort(request.signal, () => fail(request.signal.reason)),
      );
    });
    const opening = openSubscription(shop, PRODUCTS, { after }, { sessionKey });
    opening.catch(() => undefined);
    await reached.promise;
    return { opening, release: () => spy.mockRestore() };
  };
  const READS = [
    ['checks its cursor', 'select 1 from change'],
    ['reads missed changes', 'as cutoff'],
  ] as const;

  test.each(READS)(
    'a session that is ended while its stream %s gets UNAUTHENTICATED, not a timeout',
    async (_what, statement) => {
      const sessionKey = await login();
      const { opening, release } = await resuming(statement, sessionKey);
      try {
        await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
        expect((await errorOf(await opening)).extensions.code).toBe('UNAUTHENTICATED');
      } finally {
        release();
      }
    },
  );

  test.each(READS)(
    'a disconnect while the stream %s is no server error',
    async (_what, statement) => {
      const { release } = await resuming(statement, await login());
      try {
        closeStreams();
        const isEnd = (line: string) =>
          line.includes('"type":"subscription"') && line.includes(`"user":"${seller.username}"`);
        await until(() => shop.logged.some(isEnd), 'the end of the stream');
        await shop.rest('GET', '/livez');
        expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
      } finally {
        release();
      }
    },
  );
});
