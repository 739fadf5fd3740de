import { connect } from 'node:net';
import { beforeEach, describe, expect, test } from '../../support/jest.ts';
import type { User } from '../../../src/features/users/user.entity.ts';
import { openSubscription, writeUntil } from '../../support/events.ts';
import { openSession } from '../../support/logins.ts';
import { useShop, type RequestOptions } from '../../support/shop.ts';
import { closeSockets, connectSocket, startSubscription } from '../../support/sockets.ts';
import { until } from '../../support/until.ts';

type Line = Record<string, unknown>;

const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1', GRAPHQL_MAX_COST: '50' });
const quiet = useShop({ LOG_LEVEL: 'warn' });

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[\da-f]{4}-[\da-f]{12}$/;
const PAGE = 'query Page($first: Int) { products(first: $first) { nodes { name } } }';

let ada: User;

beforeEach(async () => {
  ada = await shop.makeUser({ username: 'ada' });
});

test('a request is one line, with its endpoint, user and outcome', async () => {
  const product = await shop.makeProduct();
  const { headers, text } = await shop.rest('GET', `/api/v1/shop/product/${product.pk}?secret=x`, {
    as: ada,
  });
  const id = headers.get('x-request-id');
  expect(id).toMatch(UUID);
  expect(await lineOf(id)).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    event: 'request',
    requestId: id,
    method: 'GET',
    api: 'rest',
    endpoint: 'GET /api/v1/shop/product/{pk}',
    status: 200,
    user: 'ada',
    ms: expect.any(Number),
    bytes: Buffer.byteLength(text),
    msg: 'Request completed',
  });
  expect(shop.logged.join('')).not.toContain('secret=x');
});

test.each([
  ['compiled', 0],
  ['from the response cache', 3],
])('the line names an operation that is served %s', async (_path, times) => {
  await shop.makeProducts(3);
  for (let time = 0; time < times; time++) await shop.graphql(PAGE, { first: 2 });
  const { headers, text } = await shop.graphql(PAGE, { first: 2 });
  expect(await lineOf(headers.get('x-request-id'))).toMatchObject({
    api: 'graphql',
    endpoint: 'POST /graphql',
    operation: 'Page',
    type: 'query',
    status: 200,
    user: null,
    bytes: Buffer.byteLength(text),
  });
});

describe('a rejected request is a line, too', () => {
  const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const long = { body: 'x'.repeat(20_000), headers: FORM };

  test.each<[string, RequestOptions, Line]>([
    ['GET /users/me/', {}, { status: 401, errors: ['NOT_AUTHENTICATED'], user: null }],
    ['GET /no/such', {}, { api: 'other', status: 404, errors: ['NOT_FOUND'] }],
    ['GET /api/v1/shop/product/7', {}, { endpoint: 'GET /api/v1/shop/product/{pk}', status: 404 }],
    ['DELETE /token', {}, { method: 'DELETE', endpoint: '/token', status: 405 }],
    ['POST /token', long, { status: 413, errors: ['PAYLOAD_TOO_LARGE'] }],
    ['OPTIONS /token', {}, { method: 'OPTIONS', endpoint: '/token', status: 200, bytes: 0 }],
  ])('%s, %j', async (target, request, expected) => {
    const [method = '', path = ''] = target.split(' ');
    const { headers } = await shop.rest(method, path, request);
    expect(await lineOf(headers.get('x-request-id'))).toMatchObject({
      event: 'request',
      ...expected,
    });
  });

  test.each([
    ['a syntax error', '{ products {', ['GRAPHQL_PARSE_FAILED'], 400],
    [
      'a query above the cost limit',
      '{ products(first: 100) { nodes { name } } }',
      ['QUERY_TOO_COMPLEX'],
      400,
    ],
    [
      'two fields without credentials',
      '{ users { nodes { username } } blog { nodes { title } } }',
      ['UNAUTHENTICATED'],
      200,
    ],
  ])('%s by GraphQL', async (_what, query, errors, status) => {
    const { headers } = await shop.graphql(query);
    expect(await lineOf(headers.get('x-request-id'))).toMatchObject({
      api: 'graphql',
      endpoint: 'POST /graphql',
      errors,
      status,
    });
  });
});

test('a client that disconnects before its response is a line without a status', async () => {
  const socket = connect(shop.port, '127.0.0.1', () => {
    // The request waits for a body that never arrives.
    socket.write(
      'POST /session/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{',
    );
  });
  await until(async () => (await shop.rest('GET', '/livez')).status === 200);
  socket.destroy();
  await until(() => lines().some(({ end }) => end === 'aborted'));
  const line = lines().find(({ end }) => end === 'aborted');
  expect(line).toMatchObject({
    endpoint: 'POST /session/login',
    user: null,
    bytes: 0,
    msg: 'Connection closed before the response was complete',
  });
  expect(line).not.toHaveProperty('status');
});

describe('a subscription is a line at its end, with its name, user and errors', () => {
  const WATCH = 'subscription Watch($pks: [ID!]) { productChanged(pks: $pks) { pk } }';
  const subscription = async () => {
    await until(() => lines().some(({ type }) => type === 'subscription'));
    return lines().filter(({ type }) => type === 'subscription');
  };
  const common = {
    api: 'graphql',
    operation: 'Watch',
    type: 'subscription',
    user: 'ada',
    msg: 'Request completed',
  };

  test('on a WebSocket', async () => {
    const socket = await connectSocket(shop, { Authorization: `Bearer ${shop.tokenOf(ada)}` });
    socket.send({ id: 'a', type: 'subscribe', payload: { query: WATCH } });
    const { pk } = await writeUntil(shop, socket.next()).then(
      ({ payload }) => payload.data.productChanged,
    );
    expect(pk).toEqual(expect.any(String));
    socket.send({ id: 'a', type: 'complete' });
    const [line, ...others] = await subscription();
    expect(others).toEqual([]);
    expect(line).toMatchObject({
      ...common,
      method: 'GET',
      endpoint: 'GET /graphql',
      status: 101,
      requestId: expect.stringMatching(UUID),
    });
    expect(line).not.toHaveProperty('errors');
    expect(line?.['ms']).toBeGreaterThan(0);
    closeSockets();
  });

  test('with the codes of its errors', async () => {
    const errors = ['GRAPHQL_PARSE_FAILED'];
    const stream = await openSubscription(shop, '{');
    while (await stream.next());
    expect(await subscription()).toMatchObject([{ errors, endpoint: 'POST /graphql' }]);
    const socket = await connectSocket(shop);
    socket.send({ id: 'a', type: 'subscribe', payload: { query: '{' } });
    await socket.next();
    await until(() => lines().filter(({ type }) => type === 'subscription').length === 2);
    expect(lines().at(-1)).toMatchObject({ errors, endpoint: 'GET /graphql' });
    closeSockets();
  });

  test('with the code of the error that ended it', async () => {
    const { key: sessionKey } = await openSession(shop, ada);
    const stream = await openSubscription(shop, WATCH, {}, { sessionKey });
    const socket = await connectSocket(shop, { 'X-SESSION-ID': sessionKey });
    await startSubscription(socket, 'a', { query: WATCH });
    await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
    while (await stream.next());
    await socket.closed;
    await until(() => lines().filter(({ type }) => type === 'subscription').length === 2);
    for (const line of await subscription())
      expect(line).toMatchObject({ ...common, errors: ['UNAUTHENTICATED'] });
  });
});

describe('the id of a request', () => {
  const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
  const GIVEN = '0f8fad5b-d9cb-469f-a165-70867728950e';

  test.each([
    ['X-Request-Id as a UUID', { 'X-Request-Id': GIVEN }, GIVEN],
    [
      'X-Request-Id as nginx makes it',
      { 'X-Request-Id': TRACE.toUpperCase() },
      TRACE.toUpperCase(),
    ],
    [
      'X-Request-Id before the trace',
      { 'X-Request-Id': GIVEN, traceparent: `00-${TRACE}-00f067aa0ba902b7-01` },
      GIVEN,
    ],
  ])('is taken from %s', async (_what, headers, id) => {
    const answer = await shop.rest('GET', '/api/v2/shop/products', { headers });
    expect(answer.headers.get('x-request-id')).toBe(id);
    expect(await lineOf(id)).toMatchObject({ requestId: id });
  });

  test.each([
    ['another text', { 'X-Request-Id': 'password=x' }],
    ['two ids', { 'X-Request-Id': `${GIVEN}, ${GIVEN}` }],
    ['a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-00f067aa0ba902b7-01` }],
  ])('is generated where the client sends %s', async (_what, headers) => {
    const answer = await shop.rest('GET', '/api/v2/shop/products', { headers });
    const id = answer.headers.get('x-request-id');
    expect(id).toMatch(UUID);
    expect(await lineOf(id)).toMatchObject({ status: 200 });
    const texts = Object.values(headers).filter((text) => text !== '');
    expect(texts.filter((text) => shop.logged.some((line) => line.includes(text)))).toEqual([]);
  });
});

test('LOG_LEVEL=warn leaves only the lines of warnings and errors', async () => {
  await quiet.rest('GET', '/users/me/', { token: 'none' });
  expect(quiet.logged).toEqual([]);
  quiet.workerContext().log.warn({ event: 'of-a-test' }, 'A warning');
  expect(quiet.logged.map((line) => (JSON.parse(line) as Line)['event'])).toEqual(['of-a-test']);
});

function lines(): Line[] {
  return shop.logged
    .map((line) => JSON.parse(line) as Line)
    .filter(({ event }) => event === 'request');
}

// The line is written after the response, slightly later than the client receives it.
async function lineOf(id: string | null): Promise<Line | undefined> {
  await until(() => lines().some(({ requestId }) => requestId === id));
  const found = lines().filter(({ requestId }) => requestId === id);
  expect(found).toHaveLength(1);
  return found[0];
}
