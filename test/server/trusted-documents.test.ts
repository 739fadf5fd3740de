import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import type { User } from '../../src/features/users/user.entity.ts';
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

describe.each<Mode>(['enforce'])('shop %s: a trusted document', (mode) => {
  test.each<[string, Values]>([
    ['its text', { query: READ }],
    ['its id by documentId', { documentId: idOf(READ) }],
    ['its id in another manifest', { documentId: createHash('sha1').update(READ).digest('hex') }],
    ['its id by persistedQuery', { extensions: persisted(READ) }],
    ['its id, and an empty text', { query: '', documentId: idOf(READ) }],
    ['its text and its id by persistedQuery', { query: READ, extensions: persisted(READ) }],
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
});

describe.each<Mode>(['enforce'])('shop %s: an id', (mode) => {
  test.each<[string, Values, string]>([
    ['that no document has', { documentId: idOf('nothing') }, 'PersistedQueryNotFound'],
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
    ['__proto__', '__proto__', NOT_FOUND],
    ['the id in capital letters', idOf(READ).toUpperCase(), NOT_FOUND],
    ['a number', 5, 'BAD_REQUEST'],
    ['a list of one id', [idOf(READ)], 'BAD_REQUEST'],
  ])('that is %s is 400, by either name', async (_what, id, code) => {
    for (const request of [
      { documentId: id },
      { extensions: { persistedQuery: { version: 1, sha256Hash: id } } },
    ]) {
      const answer = await post(shops[mode].quick, request);
      expect([answer.status, codeOf(answer), answer.body.data]).toEqual([400, code, undefined]);
    }
  });

  test.each<[string, unknown]>([['without a hash', { version: 1 }]])(
    'by a persistedQuery %s is 400',
    async (_what, persistedQuery) => {
      for (const answer of [
        await post(shops[mode].quick, { extensions: { persistedQuery } }),
        await get(shops[mode].quick, { extensions: { persistedQuery } }),
      ]) {
        expect([answer.status, codeOf(answer)]).toEqual([400, 'BAD_REQUEST']);
      }
    },
  );

  test('is never learned from a request', async () => {
    await post(shops[mode].quick, { query: UNTRUSTED, extensions: persisted(UNTRUSTED) });
    for (const request of [{ documentId: idOf(UNTRUSTED) }, { extensions: persisted(UNTRUSTED) }]) {
      expect(codeOf(await post(shops[mode].quick, request))).toBe(NOT_FOUND);
    }
  });
});

describe('mode enforce: an untrusted document', () => {
  const rejection =
    '{"errors":[{"message":"This document is not trusted. Add it to the manifest of the server, or send a trusted ' +
    `document by its text or id","extensions":{"code":"${NOT_TRUSTED}"}}]}`;

  test.each<[string, Values]>([
    ['of fields of trusted documents', { query: UNTRUSTED }],
    ['that differs in blanks', { query: READ_OTHERWISE }],
    ['that differs in a space within text', { query: FIND.replace('oak  lamp', 'oak lamp') }],
    [
      'that contains a trusted one',
      { query: `${READ} query Other { users { totalCount } }`, operationName: 'Read' },
    ],
    ['that has a syntax error', { query: '{ products {' }],
    ['with its own hash', { query: UNTRUSTED, extensions: persisted(UNTRUSTED) }],
    ['of the schema', { query: getIntrospectionQuery() }],
  ])('%s is rejected with 400, however often it is sent', async (_what, request) => {
    const isLong = JSON.stringify(request).length > 5_000;
    expect(await answersOf('enforce', request, isLong)).toEqual(
      TIMES.concat(isLong ? [] : [5, 6]).map(() => [400, rejection]),
    );
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
