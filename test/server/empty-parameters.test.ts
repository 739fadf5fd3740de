import { afterEach, describe, expect, test } from '../support/jest.ts';
import { closeStreams, openStream, openSubscription } from '../support/events.ts';
import { codes, useShop } from '../support/shop.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';
import { until } from '../support/until.ts';

const shop = useShop();

const TYPENAME = '{ __typename }';
const TWO = 'query A { __typename } query B { __typename }';
const SUBSCRIPTION = 'subscription Changes { productChanged { kind pk } }';
const FOUND = { data: { __typename: 'Query' } };

afterEach(() => {
  closeSockets();
  closeStreams();
});

describe('GraphQL over HTTP: an empty or null optional parameter is absent', () => {
  test.each([
    'operationName=',
    'operationName',
    'variables=',
    'extensions=',
    'variables=null',
    'extensions=%20null',
    'operationName=&variables=&extensions=',
  ])('GET, %s', async (parameters) => {
    for (const query of [TYPENAME, 'query A { __typename }'])
      for (const search of [
        `query=${encodeURIComponent(query)}&${parameters}`,
        `${parameters}&query=${encodeURIComponent(query)}`,
      ]) {
        const answer = await shop.rest('GET', `/graphql?${search}`);
        expect([answer.status, answer.body]).toEqual([200, FOUND]);
      }
  });

  test.each<object>([
    { operationName: '' },
    { operationName: null },
    { variables: '' },
    { variables: null },
    { extensions: '' },
    { extensions: null },
    { operationName: '', variables: '', extensions: '' },
  ])('POST, %j', async (parameters) => {
    // The second time, the operation is compiled.
    for (let time = 0; time < 2; time++)
      for (const query of [TYPENAME, 'query A { products { totalCount } }']) {
        const answer = await shop.rest('POST', '/graphql', { json: { query, ...parameters } });
        expect([answer.status, codes(answer)]).toEqual([200, []]);
      }
  });

  test('of two operations, none is chosen', async () => {
    const path = `/graphql?query=${encodeURIComponent(TWO)}&operationName=`;
    const json = { query: TWO, operationName: '' };
    for (const answer of [
      await shop.rest('GET', path),
      await shop.rest('POST', '/graphql', { json }),
    ])
      expect([answer.status, codes(answer)]).toEqual([400, ['OPERATION_RESOLUTION_FAILURE']]);
  });

  test.each([
    'operationName=&operationName=',
    'operationName=&operationName=A',
    'variables={}&variables=',
    'extensions=&extensions={}',
  ])('a parameter given twice is 400: %s', async (parameters) => {
    const answer = await shop.rest('GET', `/graphql?query={__typename}&${parameters}`);
    expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
  });

  test('an empty query is no query', async () => {
    const message = /non-empty `query`/;
    for (const answer of [
      await shop.rest('GET', '/graphql?query='),
      await shop.rest('POST', '/graphql', { json: { query: '' } }),
    ]) {
      expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
      expect(answer.body.errors[0].message).toMatch(message);
    }
  });
});

describe('so do subscriptions', () => {
  const nextEvent = async (source: { next(): Promise<unknown> }) => {
    let event: unknown;
    void source.next().then((found) => (event = found));
    await until(async () => {
      await shop.makeProduct();
      return event !== undefined;
    }, 'an event');
    return event;
  };

  test.each(['operationName=', 'variables=&extensions=', 'variables=null&operationName'])(
    'by GET as server-sent events, %s',
    async (parameters) => {
      const url = `${shop.url}/graphql?query=${encodeURIComponent(SUBSCRIPTION)}&${parameters}`;
      const stream = await openStream(url, { headers: { Accept: 'text/event-stream' } });
      expect(stream.status).toBe(200);
      expect(await nextEvent(stream)).toMatchObject({
        event: 'next',
        data: { data: { productChanged: { kind: 'CREATED' } } },
      });
    },
  );

  test.each<object>([{ operationName: '' }, { variables: '', extensions: '' }])(
    'by POST as server-sent events, %j',
    async (parameters) => {
      const json = { query: SUBSCRIPTION, ...parameters };
      const stream = await openSubscription(shop, SUBSCRIPTION, {}, { json });
      expect(stream.status).toBe(200);
      expect(await nextEvent(stream)).toMatchObject({
        event: 'next',
        data: { data: { productChanged: { kind: 'CREATED' } } },
      });
    },
  );

  test.each<object>([{ operationName: '' }, { operationName: null, variables: null }])(
    'on a WebSocket, %j',
    async (parameters) => {
      const socket = await connectSocket(shop);
      const payload = { query: SUBSCRIPTION, ...parameters };
      socket.send({ id: '1', type: 'subscribe', payload });
      expect(await nextEvent(socket)).toMatchObject({
        id: '1',
        type: 'next',
        payload: { data: { productChanged: { kind: 'CREATED' } } },
      });
    },
  );
});

describe('a REST parameter', () => {
  test.each(['page', 'limit', 'offset'])('an empty %s is no integer', async (name) => {
    const answer = await shop.rest('GET', `/api/v2/shop/products?${name}=`);
    expect([answer.status, answer.body.detail]).toEqual([
      422,
      [{ type: 'int_parsing', loc: ['query', name], msg: 'Input should be a valid integer' }],
    ]);
  });

  test.each([
    ['page', 'page=1&page=2'],
    ['page', 'page=&p%61ge='],
    ['limit', 'limit=1&limit=1&offset=0'],
    ['offset', 'offset=1&limit=1&offset=2&offset=3'],
  ])('%s that is repeated is given twice: %s', async (name, query) => {
    for (const path of ['/api/v2/shop/products', '/api/users']) {
      const as = await shop.makeUser();
      const answer = await shop.rest('GET', `${path}?${query}`, { as });
      expect([answer.status, answer.body.detail]).toEqual([
        422,
        [{ type: 'string_type', loc: ['query', name], msg: 'Parameter given twice' }],
      ]);
    }
  });

  test('so is a field of a form, and a username in the query of a login', async () => {
    const twice = [
      { type: 'string_type', loc: ['body', 'username'], msg: 'Parameter given twice' },
    ];
    const form = await shop.rest('POST', '/token', {
      body: 'username=a&username=b&password=x',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    });
    expect([form.status, form.body.detail]).toEqual([422, twice]);
    const query = await shop.rest('GET', '/api/v2/auth/login?username=a&username=b&password=x');
    expect([query.status, query.body.detail[0].msg]).toEqual([422, 'Parameter given twice']);
  });

  test('a list in JSON is not a repeated parameter', async () => {
    const json = { username: ['a', 'b'], password: 'x' };
    const answer = await shop.rest('POST', '/session/login', { json });
    expect([answer.status, answer.body.detail[0].msg]).toEqual([
      422,
      'Input should be a valid string',
    ]);
  });
});
