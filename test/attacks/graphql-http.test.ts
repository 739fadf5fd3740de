import { createRequire } from 'node:module';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const PREFLIGHTED = { 'apollo-require-preflight': 'true' };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const ADD = 'mutation Add { addItem(itemId: "lamp") { itemId } }';

let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ username: 'ada' });
});

describe('GET', () => {
  test.each<[string, Record<string, string>, Record<string, string>]>([
    ['alone', { query: ADD }, {}],
    ['without a name', { query: ADD.replace(' Add', '') }, {}],
    ['behind a comment', { query: `# query Read\n${ADD}` }, {}],
    ['named among two', { query: `query Read { __typename } ${ADD}`, operationName: 'Add' }, {}],
    [
      'behind a fragment',
      { query: 'fragment F on Item { itemId } mutation { addItem(itemId: "lamp") { ...F } }' },
      {},
    ],
    [
      'with variables',
      {
        query: 'mutation ($id: String!) { addItem(itemId: $id) { itemId } }',
        variables: '{"id":"lamp"}',
      },
      {},
    ],
    ['with Accept: application/json', { query: ADD }, { Accept: 'application/json' }],
    [
      'with the GraphQL media type in Accept',
      { query: ADD },
      { Accept: 'application/graphql-response+json' },
    ],
    [
      'with a method override',
      { query: ADD },
      { 'X-HTTP-Method-Override': 'POST', 'X-HTTP-Method': 'POST', 'X-Method-Override': 'POST' },
    ],
  ])(
    'G2 a mutation by GET, %s, is 405 with Allow: POST, and is not executed',
    async (_how, parameters, headers) => {
      const path = `/graphql?${new URLSearchParams(parameters).toString()}`;
      const answer = await shop.rest('GET', path, {
        as: user,
        headers: { ...PREFLIGHTED, ...headers },
      });
      expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'POST']);
      expect(await items()).toEqual([]);
      expect(await postAdds()).toBe(200);
    },
  );

  test('G2 a link with a mutation opens the explorer, which does not execute it', async () => {
    const headers = {
      Accept: 'text/html,application/json;q=0.5',
      Authorization: `Bearer ${shop.tokenOf(user)}`,
    };
    // By fetch, because each page has another nonce.
    const answer = await fetch(`${shop.url}/graphql?query=${encodeURIComponent(ADD)}`, { headers });
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(await answer.text()).not.toContain('addItem');
    expect(await items()).toEqual([]);
  });

  test('G2 a mutation by HEAD is not executed', async () => {
    const answer = await shop.rest('HEAD', `/graphql?query=${encodeURIComponent(ADD)}`, {
      as: user,
      headers: PREFLIGHTED,
    });
    expect([answer.status, answer.headers.get('Allow'), answer.text]).toEqual([405, 'POST', '']);
    expect(await items()).toEqual([]);
  });

  test('G2 a mutation in the body of a GET is ignored', async () => {
    const text = JSON.stringify({ query: ADD });
    const answer = await shop.raw(
      `GET /graphql?query=%7B__typename%7D HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${shop.tokenOf(user)}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\n\{"data":\{"__typename":"Query"\}\}\n?$/s);
    expect(await items()).toEqual([]);
  });

  test('G2 a POST takes its query from the body, not from the URL', async () => {
    const answer = await shop.rest('POST', `/graphql?query=${encodeURIComponent(ADD)}`, {
      as: user,
      json: { query: '{ __typename }' },
    });
    expect(answer.body).toEqual({ data: { __typename: 'Query' } });
    const bare = await shop.rest('POST', `/graphql?query=${encodeURIComponent(ADD)}`, { as: user });
    expect(bare.status).toBe(400);
    expect(await items()).toEqual([]);
  });

  test.each<[string, Record<string, string>]>([
    ['no header', {}],
    ['an empty apollo-require-preflight header', { 'apollo-require-preflight': '' }],
    [
      'headers that need no preflight',
      { Accept: 'application/json', 'Accept-Language': 'de', 'Content-Language': 'de' },
    ],
    ['a session key in a cookie', { Cookie: 'X-SESSION-ID=abc; session_key=abc' }],
  ])(
    'G3 a cross-site query by GET, with %s, is answered as anonymous, and a mutation is 405',
    async (_what, headers) => {
      const path = `${shop.url}/graphql?query=`;
      const answer = await fetch(
        path + encodeURIComponent('{ products { totalCount } me { username } }'),
        { headers },
      );
      expect([answer.status, await answer.json()]).toMatchObject([
        200,
        { data: { products: { totalCount: 0 }, me: null } },
      ]);
      const { answer: rejected, statements } = await recordStatements(() =>
        fetch(path + encodeURIComponent(ADD), { headers }),
      );
      expect([rejected.status, statements]).toEqual([405, []]);
      expect(await items()).toEqual([]);
    },
  );

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'Text/PLAIN; charset=utf-8; a="application/json"',
    'text/plain, application/json',
    'application/json, text/plain',
    'application/xml',
    'json',
  ])(
    'G3 a query by GET with another content type than JSON is 415 without a database query: "%s"',
    async (type) => {
      const path = `${shop.url}/graphql?query=${encodeURIComponent('{ products { totalCount } }')}`;
      const { answer, statements } = await recordStatements(() =>
        fetch(path, { headers: { 'Content-Type': type } }),
      );
      expect([answer.status, statements]).toEqual([415, []]);
    },
  );

  test.each([
    { 'apollo-require-preflight': 'true' },
    { 'x-apollo-operation-name': 'Read' },
    { 'Content-Type': 'application/json' },
  ])('G3 a query by GET with a preflighted header is answered: %p', async (headers) => {
    const answer = await shop.rest('GET', '/graphql?query={__typename}', { headers: headers });
    expect([answer.status, answer.body]).toEqual([200, { data: { __typename: 'Query' } }]);
  });

  test.each(['query={me{id}}', 'variables={}', 'operationName=A', 'extensions={}'])(
    'G3 a duplicate parameter is 400, because a proxy could read another one than the server: %s',
    async (second) => {
      const path = `/graphql?query={__typename}&operationName=A&variables={}&extensions={}&${second}`;
      const answer = await shop.rest('GET', path, { headers: PREFLIGHTED });
      expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
    },
  );

  test.each([
    'variables=x',
    'variables=[1]',
    'variables="a"',
    'variables=1',
    'extensions=x',
    'extensions=[1]',
    'variables=%zz',
  ])('G3 a parameter that is not a JSON object is 400: %s', async (parameter) => {
    const answer = await shop.rest('GET', `/graphql?query={__typename}&${parameter}`, {
      headers: PREFLIGHTED,
    });
    expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
  });
});

describe('the content type of a body', () => {
  const boundary = 'multipart/form-data; boundary=x';
  const parts = (fields: Record<string, string>) =>
    `${Object.entries(fields)
      .map(
        ([name, value]) =>
          `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      )
      .join('')}--x--\r\n`;
  const json = JSON.stringify({ query: ADD });

  test.each<[string, string | undefined, string]>([
    ['no content type', undefined, json],
    ['an empty one', '', json],
    ['plain text', 'text/plain', json],
    ['plain text that names JSON', 'text/plain; x=application/json', json],
    ['plain text, and JSON', 'text/plain, application/json', json],
    ['JSON, and plain text', 'application/json, text/plain', json],
    ['text/json', 'text/json', json],
    ['GraphQL', 'application/graphql', ADD],
    ['GraphQL with JSON', 'application/graphql+json', json],
    ['the media type of responses', 'application/graphql-response+json', json],
    ['a form', 'application/x-www-form-urlencoded', `query=${encodeURIComponent(ADD)}`],
    ['a form whose only field is JSON', 'application/x-www-form-urlencoded', `${json}=`],
    ['a multipart form', boundary, parts({ query: ADD })],
    ['XML', 'application/xml', '<query/>'],
    ['any', '*/*', json],
    ['JSON, and nothing', 'application/json, ', json],
  ])(
    'G4 a body with the content type "%s" is 415, and no operation is executed',
    async (_what, type, body) => {
      expect((await post(body, type)).status).toBe(415);
      expect(await items()).toEqual([]);
      expect(await postAdds()).toBe(200);
    },
  );

  test.each([
    'utf-7',
    'UTF-7',
    'utf-16',
    'utf-16le',
    'UTF-16BE',
    'utf-32',
    'ucs-2',
    'iso-8859-2',
    'utf-8-',
    'x-user-defined',
    'ebcdic-cp-us',
    'ibm037',
    'gb18030',
    'shift_jis',
    'hz-gb-2312',
    'base64',
    'hex',
    "'utf-7'",
  ])('G6 JSON in the charset %s is 415, and no operation is executed', async (charset) => {
    expect((await post(json, `application/json; charset=${charset}`)).status).toBe(415);
    expect(await items()).toEqual([]);
  });

  test.each(['utf-8, utf-7', '"utf-7"', 'utf-7; charset=utf-8'])(
    'G6 a charset that hides another is 415: %s',
    async (charset) => {
      const body = json.replaceAll('{', '+AHs-').replaceAll('}', '+AH0-');
      expect((await post(body, `application/json; charset=${charset}`)).status).toBe(415);
      expect(await items()).toEqual([]);
    },
  );

  test.each([
    ['undeclared UTF-16', Buffer.from(json, 'utf16le')],
    ['UTF-16 with a byte order mark', Buffer.from(`\ufeff${json}`, 'utf16le')],
    ['latin1 that is not UTF-8', Buffer.from(json.replace('lamp', 'l\u00e4mp'), 'latin1')],
    [
      'an overlong quotation mark',
      Buffer.concat([Buffer.from('{"query":'), Buffer.from([0xc0, 0xa2]), Buffer.from('{}"}')]),
    ],
    [
      'a truncated character',
      Buffer.concat([Buffer.from(json.slice(0, -1)), Buffer.from([0xf0, 0x9f])]),
    ],
    [
      'a surrogate as UTF-8',
      Buffer.concat([
        Buffer.from('{"query":"'),
        Buffer.from([0xed, 0xa0, 0x80]),
        Buffer.from('"}'),
      ]),
    ],
  ])('G6 invalid UTF-8 is 400: %s', async (_what, bytes) => {
    expect((await post(new Uint8Array(bytes), 'application/json')).status).toBe(400);
    expect(await items()).toEqual([]);
  });

  test.each(['utf-8', 'UTF-8', 'Utf-8', '"utf-8"', '"UTF-8"', 'utf8', '"utf8"', 'us-ascii'])(
    'G6 JSON in %s is accepted',
    async (charset) => {
      const answer = await post(json, `application/json; charset=${charset}`);
      expect([answer.status, answer.body]).toEqual([
        200,
        { data: { addItem: { itemId: 'lamp' } } },
      ]);
    },
  );

  test.each([
    'application/json',
    'Application/JSON',
    'application/json;profile=x',
    ' application/json ; charset=utf-8 ',
  ])('G6 "%s" is JSON', async (type) => {
    expect((await post(json, type)).status).toBe(200);
  });

  test.each<[string, Record<string, string>]>([
    [
      'as in the specification',
      {
        operations: JSON.stringify({ query: ADD, variables: { file: null } }),
        map: '{"0":["variables.file"]}',
        '0': 'x',
      },
    ],
    [
      'of several operations',
      { operations: JSON.stringify([{ query: ADD }, { query: ADD }]), map: '{}' },
    ],
    [
      'whose map sets a prototype',
      { operations: JSON.stringify({ query: ADD }), map: '{"0":["__proto__.polluted"]}', '0': 'x' },
    ],
  ])('G12 an upload %s is 415, and no operation is executed', async (_how, fields) => {
    for (const headers of [{}, PREFLIGHTED]) {
      const answer = await shop.rest('POST', '/graphql', {
        as: user,
        body: parts(fields),
        headers: { ...headers, 'Content-Type': boundary },
      });
      expect(answer.status).toBe(415);
    }
    expect(await items()).toEqual([]);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test('G12 no library for uploads is installed', () => {
    const { resolve } = createRequire(import.meta.url);
    for (const name of [
      'graphql-upload',
      'graphql-upload-minimal',
      'multer',
      'busboy',
      'formidable',
    ])
      expect(() => resolve(name)).toThrow(name);
    expect(() => resolve('graphql')).not.toThrow();
  });

  function post(body: string | Uint8Array<ArrayBuffer>, type: string | undefined): Promise<Answer> {
    // As bytes, because fetch adds a content type to text.
    const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
    return shop.rest('POST', '/graphql', {
      as: user,
      body: bytes,
      ...(type !== undefined && { headers: { 'Content-Type': type } }),
    });
  }
});

describe('methods', () => {
  test.each(['PUT', 'DELETE', 'PATCH', 'PROPFIND', 'QUERY'])(
    'G8 %s is 405 with Allow, and no operation is executed',
    async (method) => {
      for (const path of ['/graphql', '/graphql/', `/graphql?query=${encodeURIComponent(ADD)}`]) {
        const answer = await shop.rest(method, path, {
          as: user,
          json: { query: ADD },
          headers: PREFLIGHTED,
        });
        expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'GET, POST, OPTIONS']);
        expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
        expect(answer.body.errors).toEqual([
          {
            message: `Method "${method}" not allowed.`,
            extensions: { code: 'METHOD_NOT_ALLOWED' },
          },
        ]);
      }
      expect(await items()).toEqual([]);
      expect(await postAdds()).toBe(200);
    },
  );

  test('G8 TRACE is 405 with Allow, and does not echo the request', async () => {
    const answer = await shop.raw(
      'TRACE /graphql HTTP/1.1\r\nHost: shop\r\nX-Secret: echo-me\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).toContain('\r\nAllow: GET, POST, OPTIONS\r\n');
    expect(answer).not.toContain('echo-me');
  });

  test.each<RequestOptions>([
    { headers: { 'X-HTTP-Method-Override': 'GET' } },
    { headers: { 'X-HTTP-Method': 'POST' } },
  ])('G8 a header does not override the method: %p', async (request) => {
    expect(
      (await shop.rest('PUT', '/graphql', { as: user, json: { query: ADD }, ...request })).status,
    ).toBe(405);
    expect(await items()).toEqual([]);
  });
});

function items(): Promise<unknown[]> {
  return shop.sql('select item_id from item');
}

/** Expects a valid POST with the mutation to succeed. Returns its status. */
async function postAdds(): Promise<number> {
  const { status } = await shop.rest('POST', '/graphql', {
    as: user,
    body: JSON.stringify({ query: ADD }),
    headers: JSON_TYPE,
  });
  expect(await items()).toEqual([{ item_id: 'lamp' }]);
  return status;
}
