import { connect } from 'node:net';
import { describe, expect, test } from '../support/jest.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const JSON_TYPE = 'application/json; charset=utf-8';
const GRAPHQL_TYPE = 'application/graphql-response+json; charset=utf-8';
const TYPENAME = { query: '{ __typename }' };

/** Requests that fail before execution, and the code of their error. */
const NOT_EXECUTED: [what: string, code: string, request: { query: string; variables?: object }][] =
  [
    ['parsing', 'GRAPHQL_PARSE_FAILED', { query: '{' }],

    [
      'coercion',
      'BAD_USER_INPUT',
      { query: 'query ($pk: ID!) { product(pk: $pk) { name } }', variables: { pk: { x: 1 } } },
    ],
  ];

/** Accept, the media type of the response, and the status of failures before execution. */
const ACCEPTED: [accept: string | undefined, type: string, status: number][] = [
  [undefined, JSON_TYPE, 400],
  ['*/*', JSON_TYPE, 400],

  ['application/json', JSON_TYPE, 200],

  // With */*, the default of most HTTP libraries, failures have an error status.
  ['application/json, */*;q=0.1', JSON_TYPE, 400],

  ['application/graphql-response+json', GRAPHQL_TYPE, 400],

  ['application/json;q=0.5, application/graphql-response+json', GRAPHQL_TYPE, 400],
];

describe('Accept', () => {
  test.each(
    ACCEPTED.flatMap(([accept, type, status]) =>
      NOT_EXECUTED.map((unrun) => ({ accept, type, status, what: unrun[0], unrun })),
    ),
  )(
    'G9 with Accept: $accept a failure of $what is $status as $type, an executed query 200',
    async ({ accept, type, status, unrun: [, code, request] }) => {
      const answer = await send(request, accept);
      expect([answer.status, answer.headers.get('Content-Type'), codes(answer)]).toEqual([
        status,
        type,
        [code],
      ]);
      expect(answer.body).not.toHaveProperty('data');
      const executed = await send(TYPENAME, accept);
      expect([executed.status, executed.headers.get('Content-Type'), executed.body]).toEqual([
        200,
        type,
        { data: { __typename: 'Query' } },
      ]);
    },
  );

  test.each([
    'multipart/mixed; deferSpec=20220824',

    'text/event-stream, application/graphql-response+json',
    'image/png',

    'application/json;q=0',

    'text/event-stream;q=0',

    `image/png, ${'x/y;q=0.1,'.repeat(500)}image/gif`,
  ])('G10 with Accept: %s the response is 406 or complete JSON', async (accept) => {
    for (const request of [
      TYPENAME,
      { query: '{' },
      { query: 'query { ... @defer { __typename } }' },
      { query: 'mutation { logout { ended } }' },
    ]) {
      const answer = await send(request, accept);
      expect([200, 400, 406]).toContain(answer.status);
      expect(answer.headers.get('Content-Type')).toMatch(
        /^application\/(graphql-response\+)?json; charset=utf-8$/,
      );
      expect(answer.headers.get('Content-Length')).toBe(String(Buffer.byteLength(answer.text)));
      expect(answer.body).toHaveProperty(answer.status === 200 ? 'data' : 'errors');
    }
    expect((await send(TYPENAME, undefined)).status).toBe(200);
  });

  test('G10 the directive @defer is unknown: the query is rejected, not sent in parts', async () => {
    const accept =
      'multipart/mixed; deferSpec=20220824, text/event-stream, application/graphql-response+json';
    const answer = await send({ query: '{ products { nodes @defer { name } } }' }, accept);
    expect([answer.status, codes(answer)]).toEqual([400, ['GRAPHQL_VALIDATION_FAILED']]);
  });

  test('G10 Accept: image/png by HEAD is 406', async () => {
    const headers = { Accept: 'image/png', 'apollo-require-preflight': 'true' };
    const answer = await shop.rest('HEAD', '/graphql?query={__typename}', { headers });
    expect(answer.status).toBe(406);
  });
});

describe('selection of the operation', () => {
  const TWO = 'query A { a: __typename } query B { b: __typename }';

  test.each<[string, object]>([
    ['two and no name', { query: TWO }],

    ['two and a name that neither has', { query: TWO, operationName: 'C' }],

    ['one without a name, and a name', { query: '{ __typename }', operationName: 'A' }],

    ['a fragment alone', { query: 'fragment F on Query { __typename }' }],

    ['an empty query', { query: '' }],
  ])('G11 %s: 400 without data', async (_what, json) => {
    const answer = await shop.rest('POST', '/graphql', { json });
    expect(answer.status).toBe(400);
    expect(Object.keys(answer.body)).toEqual(['errors']);
    for (const error of answer.body.errors)
      expect(error).toMatchObject({
        message: expect.any(String),
        extensions: { code: expect.any(String) },
      });
    expect(answer.text).not.toMatch(/\bat |\.[jt]s\b/);
    expect((await send(TYPENAME, undefined)).status).toBe(200);
  });

  test('G11 only the named operation of two is executed', async () => {
    const answer = await shop.rest('POST', '/graphql', {
      json: { query: TWO, operationName: 'B' },
    });
    expect([answer.status, answer.body]).toEqual([200, { data: { b: 'Query' } }]);
  });

  test('G11 a mutation beside a query is not executed without its name', async () => {
    const as = await shop.makeUser();
    const query = 'query A { a: __typename } mutation B { addItem(itemId: "lamp") { itemId } }';
    const answer = await shop.rest('POST', '/graphql', { as, json: { query, operationName: 'A' } });
    expect(answer.body).toEqual({ data: { a: 'Query' } });
    expect((await shop.rest('POST', '/graphql', { as, json: { query } })).status).toBe(400);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('G11 a subscription by GET is rejected', async () => {
    const path = `/graphql?query=${encodeURIComponent('subscription { __typename }')}`;
    const answer = await shop.rest('GET', path, {
      headers: { 'apollo-require-preflight': 'true' },
    });
    expect([400, 405]).toContain(answer.status);
    expect(answer.body).not.toHaveProperty('data');
  });

  test('G11 a WebSocket of another protocol, graphql-ws, is closed at once', async () => {
    const socket = connect(shop.port, '127.0.0.1');
    socket.write(
      'GET /graphql HTTP/1.1\r\nHost: shop\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
        `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: graphql-ws\r\n\r\n`,
    );
    let answer = '';
    // The server waits for the close frame of the client before it closes the connection.
    for await (const piece of socket) {
      answer += String(piece);
      if (answer.endsWith('Subprotocol not acceptable')) break;
    }
    expect(answer).toMatch(/Subprotocol not acceptable$/);
  });
});

/** Sends a POST request. Without `accept` it is raw, because fetch would add an Accept header. */
async function send(json: object, accept: string | undefined): Promise<Answer> {
  if (accept !== undefined)
    return shop.rest('POST', '/graphql', { json, headers: { Accept: accept } });
  const text = JSON.stringify(json);
  const length = Buffer.byteLength(text);
  const raw = await shop.raw(
    `POST /graphql HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${text}`,
  );
  const [head = '', body = ''] = raw.split('\r\n\r\n');
  const [line = '', ...fields] = head.split('\r\n');
  const headers = new Headers(
    fields.map((field): [string, string] => [
      field.slice(0, field.indexOf(':')),
      field.slice(field.indexOf(':') + 1),
    ]),
  );
  return { status: Number(line.split(' ')[1]), headers, text: body, body: JSON.parse(body) };
}
