import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import type { User } from '../../src/features/users/user.entity.ts';
import { closeStreams, openStream, openSubscription } from '../support/events.ts';
import { codeOf, Shop, type Answer, type RequestOptions } from '../support/shop.ts';
import { closeSockets, connectSocket, startSubscription } from '../support/sockets.ts';
import { useStoppedClock } from '../support/clock.ts';
import { settled } from '../support/settled.ts';

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
const SUBSCRIBE = 'subscription Changes {\n  productChanged {\n    pk\n  }\n}';
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
    operations: [READ, FIND, ADD, EXPENSIVE, DEEP, SUBSCRIBE].map((body) => ({
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
const off = pair({});
const { quick, plain } = pair({
  TRUSTED_DOCUMENTS: FILES,
  TRUSTED_DOCUMENTS_MODE: 'enforce',
  GRAPHQL_EXPLORER: 'false',
});
const all = [off.quick, off.plain, quick, plain];
let user: User;

beforeAll(async () => {
  for (const shop of all) await shop.start();
});

beforeEach(async () => {
  await quick.empty();
  await quick.makeProduct({ name: 'Oak Lamp' });
  await quick.makeProduct({ name: 'Oak Table' });
  user = await quick.makeUser({ username: 'ada' });
});

afterEach(() => {
  closeStreams();
  closeSockets();
});

afterAll(async () => {
  for (const shop of all) await shop.stop();
  rmSync(folder, { recursive: true });
});

describe('mode enforce: a trusted document', () => {
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
      const expected = (await post(off.plain, { query: READ })).text;
      const nodes = [
        { pk: '1', name: 'Oak Lamp' },
        { pk: '2', name: 'Oak Table' },
      ];
      expect(JSON.parse(expected)).toEqual({ data: { products: { totalCount: 2, nodes } } });
      expect(await answersOf(request)).toEqual(TIMES.concat(5, 6).map(() => [200, expected]));
    },
  );

  test('that is a mutation is run by text and by id, but not by GET', async () => {
    const as = { token: quick.tokenOf(user) };
    const byText = await post(quick, { query: ADD, variables: { itemId: 'a' } }, as);
    const byId = await post(quick, { documentId: idOf(ADD), variables: { itemId: 'b' } }, as);
    expect([byText, byId].map(({ body }) => body.data)).toEqual([
      { addItem: { itemId: 'a' } },
      { addItem: { itemId: 'b' } },
    ]);
    const got = await get(quick, { documentId: idOf(ADD), variables: { itemId: 'c' } }, as);
    expect([got.status, got.headers.get('Allow')]).toEqual([405, 'POST']);
    expect(await items()).toEqual(['a', 'b']);
  });

  test('has the limits that every document has', async () => {
    for (const at of [quick, plain]) {
      const as = { token: at.tokenOf(user) };
      const statusOf = async (document: string, first?: number) => {
        const answer = await post(at, { documentId: idOf(document), variables: { first } }, as);
        return [answer.status, codeOf(answer)];
      };
      expect(await statusOf(DEEP)).toEqual([400, 'QUERY_TOO_COMPLEX']);
      expect(await statusOf(EXPENSIVE, 1)).toEqual([200, undefined]);
      for (const _ of TIMES)
        expect(await statusOf(EXPENSIVE, 100)).toEqual([400, 'QUERY_TOO_COMPLEX']);
    }
  });
});

describe('mode enforce: an id', () => {
  test.each<[string, Values]>([
    ['that no document has', { documentId: idOf('nothing') }],
    ['that no document has, by persistedQuery', { extensions: persisted('nothing') }],
  ])('%s is 400 in the error format of all rejections', async (_what, request) => {
    const expected = `{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"${NOT_FOUND}"}}]}`;
    expect(await answersOf(request)).toEqual(TIMES.concat(5, 6).map(() => [400, expected]));
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
      const answer = await post(quick, request);
      expect([answer.status, codeOf(answer), answer.body.data]).toEqual([400, code, undefined]);
    }
  });

  test('by a persistedQuery without a hash is 400', async () => {
    const request = { extensions: { persistedQuery: { version: 1 } } };
    for (const answer of [await post(quick, request), await get(quick, request)])
      expect([answer.status, codeOf(answer)]).toEqual([400, 'BAD_REQUEST']);
  });

  test('is never learned from a request', async () => {
    await post(quick, { query: UNTRUSTED, extensions: persisted(UNTRUSTED) });
    for (const request of [{ documentId: idOf(UNTRUSTED) }, { extensions: persisted(UNTRUSTED) }])
      expect(codeOf(await post(quick, request))).toBe(NOT_FOUND);
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
    expect(await answersOf(request, isLong)).toEqual(
      TIMES.concat(isLong ? [] : [5, 6]).map(() => [400, rejection]),
    );
  });

  test('that is a mutation does nothing, however it is sent', async () => {
    const as = { token: quick.tokenOf(user) };
    const headers = { 'Content-Type': 'application/json' };
    const inUrl = `/graphql?query=${encodeURIComponent(UNTRUSTED_ADD)}`;
    const twice = `{"query":${JSON.stringify(READ)},"query":${JSON.stringify(UNTRUSTED_ADD)}}`;
    const empty = { operationName: null, variables: null, extensions: null };
    const answers = [
      await post(quick, { query: UNTRUSTED_ADD }, as),
      await post(quick, { query: UNTRUSTED_ADD, ...empty }, as),
      await post(quick, [{ query: UNTRUSTED_ADD }], as),
      await get(quick, { query: UNTRUSTED_ADD }, as),
      await quick.rest('HEAD', inUrl, { ...as, headers: PREFLIGHTED }),
      await quick.rest('POST', inUrl, { ...as, json: { query: READ } }),
      await quick.rest('POST', `/graphql?documentId=${idOf(ADD)}`, {
        ...as,
        json: { query: UNTRUSTED_ADD },
      }),
      await quick.rest('POST', '/graphql', { ...as, body: twice, headers }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 400, 400, 200, 400, 400]);
    expect(await items()).toEqual([]);
  });

  test('is rejected before authentication', async () => {
    const answer = await post(quick, { query: UNTRUSTED }, { sessionKey: 'none' });
    expect(codeOf(answer)).toBe(NOT_TRUSTED);
  });
});

describe('mode enforce: a subscription', () => {
  test.each([
    ['its text', { query: SUBSCRIBE }],
    ['its id', { documentId: idOf(SUBSCRIBE) }],
    ['its hash', { extensions: persisted(SUBSCRIBE) }],
  ])('by %s is served over both transports', async (_name, json) => {
    // Later changes only.
    await settled(quick);
    const stream = await openSubscription(quick, '', {}, { json });
    const socket = await connectSocket(quick);
    await startSubscription(socket, '1', { query: '', ...json });
    const { pk } = await quick.makeProduct();
    const data = { productChanged: { pk: String(pk) } };
    expect((await stream.next())?.data).toEqual({ data });
    expect(await socket.next()).toEqual({ id: '1', type: 'next', payload: { data } });
  });

  test.each([
    ['that is not in the manifest', { query: `${SUBSCRIBE} ` }, NOT_TRUSTED],
    ['by an unknown id', { documentId: 'nothing' }, NOT_FOUND],
    ['by an id that is not a string', { documentId: 1 }, 'BAD_REQUEST'],
  ])('%s is rejected over both transports', async (_name, json, code) => {
    const error = { extensions: { code } };
    const stream = await openSubscription(quick, '', {}, { json });
    expect(stream.status).toBe(400);
    expect((await stream.next())?.data).toMatchObject({ errors: [error] });
    const socket = await connectSocket(quick);
    socket.send({ id: '1', type: 'subscribe', payload: { query: '', ...json } });
    expect(await socket.next()).toMatchObject({ id: '1', type: 'error', payload: [error] });
  });

  test('by GET is checked, too', async () => {
    const headers = { Accept: 'text/event-stream' };
    const open = (search: Record<string, string>) =>
      openStream(`${quick.url}/graphql?${new URLSearchParams(search).toString()}`, { headers });
    expect((await open({ documentId: idOf(SUBSCRIBE) })).status).toBe(200);
    expect((await open({ query: `${SUBSCRIBE} ` })).status).toBe(400);
  });
});

describe('mode off', () => {
  test('every document is run', async () => {
    expect((await post(off.quick, { query: UNTRUSTED })).status).toBe(200);
  });

  test('an id alone is rejected', async () => {
    const byId = await post(off.quick, { documentId: idOf(READ) });
    expect([byId.status, byId.body.data]).toEqual([400, undefined]);
    expect(codeOf(await post(off.quick, { extensions: persisted(READ) }))).toBe(
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
async function answersOf(request: Values, isLong = false): Promise<[number, string][]> {
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

async function items(): Promise<unknown[]> {
  return (await quick.sql('select item_id from item order by item_id')).map(
    ({ item_id: id }) => id,
  );
}

function idOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function persisted(text: string): Values {
  return { persistedQuery: { version: 1, sha256Hash: idOf(text) } };
}
