import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import type { User } from '../../src/features/users/user.entity.ts';
import { recordStatements } from '../support/statements.ts';
import { Shop, type Answer, type RequestOptions } from '../support/shop.ts';
import { useStoppedClock } from '../support/clock.ts';

// Responses that are cached for some milliseconds stay cached until a test advances the clock.
useStoppedClock();

type Values = Record<string, unknown>;

const READ =
  'query Read($first: Int = 2) {\n  products(first: $first) {\n    totalCount\n    nodes {\n      pk\n      name\n    }\n  }\n}';
const READ_OTHERWISE =
  '# as someone else writes it\nquery Read ( $first : Int=2 ) { products(first:$first), { totalCount nodes{pk,name} } }\n';
const FIND = 'query Find {\n  products(filter: {search: "oak  lamp"}) {\n    totalCount\n  }\n}';
const ADD = 'mutation Add($itemId: String!) {\n  addItem(itemId: $itemId) {\n    itemId\n  }\n}';
const TWO = 'query First { product(pk: 1) { name } }\nquery Second { product(pk: 2) { name } }';
const EXPENSIVE =
  'query Dear($first: Int!) { users(first: 100) { nodes { items(first: $first) { nodes { itemId } } } } }';
const DEEP = `query Deep { me { ${'blog { nodes { creator { '.repeat(3)}username${' } } }'.repeat(3)} } }`;
const UNTRUSTED = '{ products(first: 1) { nodes { pk price } } }';
const UNTRUSTED_ADD = 'mutation { addItem(itemId: "lamp") { itemId } }';
const CUSTOM_ID = 'two-products.v1';
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };
/** Resolvers, compiled operation, compiled operation that fills the cache, and the cache. */
const TIMES = [1, 2, 3, 4];
const NOT_FOUND = 'PERSISTED_QUERY_NOT_FOUND';
const NOT_TRUSTED = 'DOCUMENT_NOT_TRUSTED';

const folder = mkdtempSync(join(tmpdir(), 'shopfront-documents-'));
const ofApollo = join(folder, 'apollo.json');
const ofCodegen = join(folder, 'codegen.json');
writeFileSync(
  ofApollo,
  JSON.stringify({
    format: 'apollo-persisted-query-manifest',
    version: 1,
    operations: [READ, FIND, ADD, EXPENSIVE, DEEP].map((body) => ({
      id: idOf(body),
      name: /\w+ (\w+)/.exec(body)?.[1],
      type: 'query',
      body,
    })),
  }),
);
writeFileSync(
  ofCodegen,
  JSON.stringify({ [CUSTOM_ID]: TWO, [createHash('sha1').update(READ).digest('hex')]: READ }),
);

const FILES = `${ofApollo}, ${ofCodegen}`;
const shops = {
  off: pair({}),
  enforce: pair({
    TRUSTED_DOCUMENTS: FILES,
    TRUSTED_DOCUMENTS_MODE: 'enforce',
    GRAPHQL_EXPLORER: 'false',
  }),
  explorer: pair({ TRUSTED_DOCUMENTS: FILES, TRUSTED_DOCUMENTS_MODE: 'enforce' }),
};
type Mode = keyof typeof shops;

const all = Object.values(shops).flatMap(({ quick, plain }) => [quick, plain]);
const made = shops.off.quick;
let user: User;

beforeAll(async () => {
  for (const shop of all) await shop.start();
});

beforeEach(async () => {
  for (const shop of all) {
    shop.database.statements.commits++;
  }
  await made.empty();
  await made.makeProduct({ name: 'Oak Lamp' });
  await made.makeProduct({ name: 'Oak Table' });
  user = await made.makeUser({ username: 'ada' });
  for (const shop of all) shop.database.statements.commits++;
});

afterAll(async () => {
  for (const shop of all) await shop.stop();
  rmSync(folder, { recursive: true });
});

describe.each<Mode>(['enforce', 'explorer'])('shop %s: a trusted document', (mode) => {
  test.each<[string, Values]>([
    ['its text', { query: READ }],
    ['its id by documentId', { documentId: idOf(READ) }],
    ['the SHA-256 of its text by documentId', { documentId: `sha256:${idOf(READ)}` }],
    ['its id in another manifest', { documentId: createHash('sha1').update(READ).digest('hex') }],
    ['its id by persistedQuery', { extensions: persisted(READ) }],
    ['its text, and an empty id', { query: READ, documentId: '' }],
    ['its id, and an empty text', { query: '', documentId: idOf(READ) }],
    ['its id by persistedQuery, and an empty text', { query: '', extensions: persisted(READ) }],
    ['its text and its id by persistedQuery', { query: READ, extensions: persisted(READ) }],
    [
      'its text, and null for an id',
      { query: READ, documentId: null, extensions: { persistedQuery: null } },
    ],
  ])(
    'is run by %s: by POST, by GET, and the same with and without fast paths',
    async (_how, request) => {
      const expected = (await post(shops.off.plain, { query: READ })).text;
      expect(JSON.parse(expected)).toEqual({
        data: {
          products: {
            totalCount: 2,
            nodes: [
              { pk: '1', name: 'Oak Lamp' },
              { pk: '2', name: 'Oak Table' },
            ],
          },
        },
      });
      expect(await answersOf(mode, request)).toEqual(TIMES.concat(5, 6).map(() => [200, expected]));
    },
  );

  test('is run with the variables of the request', async () => {
    const [[, text] = []] = await answersOf(mode, {
      documentId: idOf(READ),
      variables: { first: 1 },
    });
    expect(JSON.parse(String(text))).toMatchObject({
      data: { products: { nodes: [{ pk: '1' }] } },
    });
    const rejected = await post(shops[mode].quick, {
      documentId: idOf(READ),
      variables: { first: 'many' },
    });
    expect([rejected.status, codeOf(rejected)]).toEqual([400, 'BAD_USER_INPUT']);
  });

  test('keeps its other extensions when its id is taken out of them', async () => {
    const extensions = { ...persisted(READ), cost: true };
    for (const [status, text] of await answersOf(mode, { extensions })) {
      expect([status, JSON.parse(text)]).toMatchObject([
        200,
        { extensions: { cost: { requested: 8 } } },
      ]);
    }
  });

  test('is executed again when its data has changed', async () => {
    const { quick } = shops[mode];
    for (const _ of TIMES) await post(quick, { documentId: idOf(READ) });
    await quick.sql(`update product set name = 'Elm Lamp' where pk = 1`);
    expect((await post(quick, { documentId: idOf(READ) })).text).toContain('Elm Lamp');
  });

  test('that is requested repeatedly by its id takes no statements', async () => {
    const read = () => post(shops[mode].quick, { documentId: idOf(READ) });
    for (const _ of TIMES) await read();
    const { statements } = await recordStatements(async () => {
      for (let time = 0; time < 100; time++) await read();
    });
    expect(statements).toEqual([]);
  });

  test('that is a mutation is run by text and by id, but not by GET', async () => {
    const { quick } = shops[mode];
    const as = { token: quick.tokenOf(user) };
    expect((await post(quick, { query: ADD, variables: { itemId: 'a' } }, as)).body).toEqual({
      data: { addItem: { itemId: 'a' } },
    });
    expect(
      (await post(quick, { documentId: idOf(ADD), variables: { itemId: 'b' } }, as)).body.data,
    ).toEqual({ addItem: { itemId: 'b' } });
    const got = await get(quick, { documentId: idOf(ADD), variables: { itemId: 'c' } }, as);
    expect([got.status, got.headers.get('Allow')]).toEqual([405, 'POST']);
    expect(await items()).toEqual(['a', 'b']);
  });

  test('with two operations runs the one that is named', async () => {
    const { quick } = shops[mode];
    const second = { data: { product: { name: 'Oak Table' } } };
    expect((await post(quick, { documentId: CUSTOM_ID, operationName: 'Second' })).body).toEqual(
      second,
    );
    expect((await get(quick, { documentId: CUSTOM_ID, operationName: 'Second' })).body).toEqual(
      second,
    );
    expect((await post(quick, { query: TWO, operationName: 'Second' })).body).toEqual(second);
    for (const operationName of [undefined, 'Third']) {
      const rejected = await post(quick, { documentId: CUSTOM_ID, operationName });
      expect([rejected.status, codeOf(rejected)]).toEqual([400, 'OPERATION_RESOLUTION_FAILURE']);
    }
  });

  test('has the limits that every document has', async () => {
    for (const { quick, plain } of [shops[mode]]) {
      for (const at of [quick, plain]) {
        const deep = await post(at, { documentId: idOf(DEEP) });
        expect([deep.status, codeOf(deep)]).toEqual([400, 'QUERY_TOO_COMPLEX']);
        const as = { token: at.tokenOf(user) };
        expect(
          (await post(at, { documentId: idOf(EXPENSIVE), variables: { first: 1 } }, as)).status,
        ).toBe(200);
        for (const _ of TIMES) {
          const expensive = await post(
            at,
            { documentId: idOf(EXPENSIVE), variables: { first: 100 } },
            as,
          );
          expect([expensive.status, codeOf(expensive)]).toEqual([400, 'QUERY_TOO_COMPLEX']);
        }
      }
    }
  });

  test('is rejected for wrong credentials', async () => {
    for (const query of [{ documentId: idOf(READ) }, { query: READ }]) {
      for (const _ of TIMES)
        expect((await post(shops[mode].quick, query, { sessionKey: 'none' })).status).toBe(401);
    }
  });
});

describe.each<Mode>(['enforce', 'explorer'])('shop %s: an id', (mode) => {
  test.each<[string, Values, string]>([
    [
      'that no document has',
      { documentId: idOf('nothing') },
      'Unknown document id: it is not in the manifest of the server',
    ],
    [
      'that no document has, by persistedQuery',
      { extensions: persisted('nothing') },
      'PersistedQueryNotFound',
    ],
  ])('%s is 400 in the error format of all rejections', async (_what, request, message) => {
    const expected = `{"errors":[{"message":"${message}","extensions":{"code":"${NOT_FOUND}"}}]}`;
    expect(await answersOf(mode, request)).toEqual(TIMES.concat(5, 6).map(() => [400, expected]));
  });

  test.each<[string, unknown, string]>([
    ['empty text', '', NOT_FOUND],
    ['ten thousand letters', 'a'.repeat(10_000), NOT_FOUND],
    ['__proto__', '__proto__', NOT_FOUND],
    ['constructor', 'constructor', NOT_FOUND],
    ['the id in capital letters', idOf(READ).toUpperCase(), NOT_FOUND],
    ['the id with a space', ` ${idOf(READ)}`, NOT_FOUND],
    ['half a surrogate pair', '\ud800', NOT_FOUND],
    ['a number', 5, 'BAD_REQUEST'],
    ['an object', { id: idOf(READ) }, 'BAD_REQUEST'],
    ['a list of one id', [idOf(READ)], 'BAD_REQUEST'],
    ['true', true, 'BAD_REQUEST'],
  ])('that is %s is 400, by either name', async (_what, id, code) => {
    for (const request of [
      { documentId: id },
      { extensions: { persistedQuery: { version: 1, sha256Hash: id } } },
    ]) {
      const answer = await post(shops[mode].quick, request);
      expect([answer.status, codeOf(answer), answer.body.data]).toEqual([400, code, undefined]);
    }
  });

  test.each<[string, unknown]>([
    ['of another version', { version: 2, sha256Hash: idOf(READ) }],
    ['without a version', { sha256Hash: idOf(READ) }],
    ['without a hash', { version: 1 }],
    ['that is text', idOf(READ)],
    ['that is a list', [idOf(READ)]],
  ])('by a persistedQuery %s is 400', async (_what, persistedQuery) => {
    for (const answer of [
      await post(shops[mode].quick, { extensions: { persistedQuery } }),
      await get(shops[mode].quick, { extensions: { persistedQuery } }),
    ]) {
      expect([answer.status, codeOf(answer)]).toEqual([400, 'BAD_REQUEST']);
    }
  });

  test.each<[string, Values]>([
    ['a text by query', { documentId: idOf(READ), query: READ }],
    ['another by persistedQuery', { documentId: idOf(READ), extensions: persisted(READ) }],
    ['a text that has another hash', { query: READ, extensions: persisted(FIND) }],
  ])('beside %s is 400, because it is ambiguous', async (_what, request) => {
    for (const answer of [
      await post(shops[mode].quick, request),
      await get(shops[mode].quick, request),
    ]) {
      expect([answer.status, codeOf(answer)]).toEqual([400, 'BAD_REQUEST']);
    }
  });

  test.each(['documentId', 'extensions', 'query'])(
    'in a URL that has %s twice is 400',
    async (name) => {
      const value =
        { documentId: idOf(READ), extensions: JSON.stringify(persisted(READ)), query: READ }[
          name
        ] ?? '';
      const parameters = new URLSearchParams([
        [name, value],
        [name, value],
      ]);
      expect(
        (
          await shops[mode].quick.rest('GET', `/graphql?${parameters.toString()}`, {
            headers: PREFLIGHTED,
          })
        ).status,
      ).toBe(400);
    },
  );

  test('is never learned from a request', async () => {
    await post(shops[mode].quick, { query: UNTRUSTED, extensions: persisted(UNTRUSTED) });
    for (const request of [{ documentId: idOf(UNTRUSTED) }, { extensions: persisted(UNTRUSTED) }]) {
      expect(codeOf(await post(shops[mode].quick, request))).toBe(NOT_FOUND);
    }
  });

  test('by GET needs no header', async () => {
    const answer = await shops[mode].quick.rest('GET', `/graphql?documentId=${idOf(READ)}`);
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('"data"')]);
  });
});

describe('mode enforce: an untrusted document', () => {
  const rejection =
    '{"errors":[{"message":"This document is not trusted. Add it to the manifest of the server, or send a trusted ' +
    `document by its text or id","extensions":{"code":"${NOT_TRUSTED}"}}]}`;

  test.each<[string, Values]>([
    ['of fields of trusted documents', { query: UNTRUSTED }],
    ['that differs in blanks', { query: READ_OTHERWISE }],
    ['that differs in a name', { query: READ.replace('Read', 'Reads') }],
    ['that differs in a default', { query: READ.replace('= 2', '= 3') }],
    ['that differs in a space within text', { query: FIND.replace('oak  lamp', 'oak lamp') }],
    [
      'that contains a trusted one',
      { query: `${READ} query Other { users { totalCount } }`, operationName: 'Read' },
    ],
    ['that is one of two operations', { query: 'query First { product(pk: 1) { name } }' }],
    ['that has a syntax error', { query: '{ products {' }],
    ['that has a lexical error', { query: '{ "' }],
    ['with its own hash', { query: UNTRUSTED, extensions: persisted(UNTRUSTED) }],
    ['that is empty', { query: ' ' }],
    ['of a hundred thousand spaces', { query: `{${' '.repeat(90_000)}products{totalCount}}` }],
    ['of the schema', { query: getIntrospectionQuery() }],
    ['of __typename alone', { query: '{ __typename }' }],
  ])('%s is rejected with 400, however often it is sent', async (_what, request) => {
    const isLong = JSON.stringify(request).length > 5_000;
    expect(await answersOf('enforce', request, isLong)).toEqual(
      TIMES.concat(isLong ? [] : [5, 6]).map(() => [400, rejection]),
    );
  });

  test('is rejected with 400 for every media type', async () => {
    for (const Accept of [
      'application/json',
      'application/graphql-response+json',
      '*/*',
      'text/html',
    ]) {
      const answer = await post(shops.enforce.quick, { query: UNTRUSTED }, { headers: { Accept } });
      expect([answer.status, answer.text]).toEqual([400, rejection]);
      const type = Accept.includes('response') ? Accept : 'application/json';
      expect(answer.headers.get('Content-Type')).toBe(`${type}; charset=utf-8`);
    }
  });

  test('that is a mutation does nothing, however it is sent', async () => {
    const { quick } = shops.enforce;
    const as = { token: quick.tokenOf(user) };
    const answers = [
      await post(quick, { query: UNTRUSTED_ADD }, as),
      await post(
        quick,
        { query: UNTRUSTED_ADD, operationName: null, variables: null, extensions: null },
        as,
      ),
      await post(quick, [{ query: UNTRUSTED_ADD }], as),
      await get(quick, { query: UNTRUSTED_ADD }, as),
      await quick.rest('HEAD', `/graphql?query=${encodeURIComponent(UNTRUSTED_ADD)}`, {
        ...as,
        headers: PREFLIGHTED,
      }),
      await quick.rest('POST', `/graphql?query=${encodeURIComponent(UNTRUSTED_ADD)}`, {
        ...as,
        json: { query: READ },
      }),
      await quick.rest('POST', `/graphql?documentId=${idOf(ADD)}`, {
        ...as,
        json: { query: UNTRUSTED_ADD },
      }),
      await quick.rest('POST', '/graphql', {
        ...as,
        body: `{"query":${JSON.stringify(READ)},"query":${JSON.stringify(UNTRUSTED_ADD)}}`,
        headers: { 'Content-Type': 'application/json' },
      }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 200, 400, 400]);
    expect(await items()).toEqual([]);
  });

  test('is rejected before authentication', async () => {
    expect(
      codeOf(await post(shops.enforce.quick, { query: UNTRUSTED }, { sessionKey: 'none' })),
    ).toBe(NOT_TRUSTED);
  });

  test('REST is not affected', async () => {
    expect((await shops.enforce.quick.rest('GET', '/api/v1/shop/product/1')).body).toMatchObject({
      name: 'Oak Lamp',
    });
  });
});

describe('mode enforce with the explorer', () => {
  test.each([
    getIntrospectionQuery(),
    getIntrospectionQuery({
      descriptions: false,
      specifiedByUrl: true,
      schemaDescription: true,
      inputValueDeprecation: true,
    }),
    '{ __typename }',
    'query ($name: String!) { __type(name: $name) { name } }',
  ])('a query of the schema alone is run: %#', async (query) => {
    const answer = await post(shops.explorer.quick, { query, variables: { name: 'Product' } });
    expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  });

  test.each([
    UNTRUSTED,
    '{ __schema { queryType { name } } products { totalCount } }',
    '{ __schema { queryType { name } } ...F } fragment F on Query { products { totalCount } }',
    '{ __schema { queryType { name } } ... { products { totalCount } } }',
    '{ __typename: me { id } }',
    '{ __typename: products { totalCount } }',
    'query A { __typename } query B { products { totalCount } }',
    'mutation { __typename }',
    UNTRUSTED_ADD,
  ])('a query of anything else is rejected: %s', async (query) => {
    const answer = await post(shops.explorer.quick, {
      query,
      operationName: query.includes('query B') ? 'B' : undefined,
    });
    expect([answer.status, codeOf(answer)]).toEqual([400, NOT_TRUSTED]);
  });

  test('its page is served', async () => {
    const answer = await fetch(`${shops.explorer.quick.url}/graphql`, {
      headers: { Accept: 'text/html' },
    });
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
  });
});

describe('mode off', () => {
  test('every document is run', async () => {
    expect((await post(shops.off.quick, { query: UNTRUSTED })).status).toBe(200);
  });

  test('an id alone is rejected', async () => {
    const byId = await post(shops.off.quick, { documentId: idOf(READ) });
    expect([byId.status, byId.body.data]).toEqual([400, undefined]);
    expect(codeOf(await post(shops.off.quick, { extensions: persisted(READ) }))).toBe(
      'PERSISTED_QUERY_NOT_SUPPORTED',
    );
  });
});

function pair(env: Record<string, string>): { quick: Shop; plain: Shop } {
  return {
    quick: new Shop(env),
    plain: new Shop(env, { compiledOperations: false }),
  };
}

/** Status and text of repeated POSTs with fast paths, then of one without, and of a GET. */
async function answersOf(mode: Mode, request: Values, isLong = false): Promise<[number, string][]> {
  const { quick, plain } = shops[mode];
  const answers: Answer[] = [];
  for (const _ of TIMES) answers.push(await post(quick, request));
  // A long request would exceed the maximum length of a URL.
  if (!isLong) answers.push(await post(plain, request), await get(quick, request));
  return answers.map(({ status, text }) => [status, text]);
}

function post(at: Shop, json: unknown, options: RequestOptions = {}): Promise<Answer> {
  return at.rest('POST', '/graphql', { ...options, json });
}

function get(at: Shop, request: Values, options: RequestOptions = {}): Promise<Answer> {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(request)) {
    if (value != null)
      parameters.set(name, typeof value === 'string' ? value : JSON.stringify(value));
  }
  return at.rest('GET', `/graphql?${parameters.toString()}`, {
    ...options,
    headers: { ...PREFLIGHTED, ...options.headers },
  });
}

function codeOf({ body }: Answer): unknown {
  return body.errors?.[0].extensions.code;
}

async function items(): Promise<unknown[]> {
  return (await made.sql('select item_id from item order by item_id')).map(({ item_id: id }) => id);
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function persisted(text: string): Values {
  return { persistedQuery: { version: 1, sha256Hash: idOf(text) } };
}
