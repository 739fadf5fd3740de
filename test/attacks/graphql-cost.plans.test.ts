import { expect, test } from '../support/jest.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

// A repeated document runs as a compiled operation or is served by the response cache.
// Its cost with large variables must not be that of the small ones it was compiled with.

const shop = useShop();

const PAGES = Array.from(
  { length: 10 },
  (_, at) => `a${at}: products(first: $n) { nodes { pk } }`,
).join(' ');
const THREE = PAGES.replace(/a3.*$/, '');
/** Served from database rows: cost 10 plus ten times the size. */
const ROWS = `query ($n: Int = 1) { ${PAGES} }`;
/** Served by resolvers: cost 2 plus ten times the sum of three and the size. */
const RESOLVED = `query ($n: Int = 1) { node(id: "x") { ... on User { blog(first: 10) { nodes { creator { blog(first: $n) { nodes { title } } } } } } } }`;

test.each([
  ['served from database rows', ROWS, 99, 100],
  ['served by resolvers', RESOLVED, 96, 97],
])('D7 the cost of a document %s is checked for each request', async (_how, query, most, more) => {
  await shop.makeProducts(3);
  const first = await send({ query });
  // The second request may compile the operation, and the third may use the response cache.
  for (let time = 0; time < 3; time++) {
    expect((await send({ query })).text).toBe(first.text);
    expect((await send({ query, variables: { n: most } })).status).toBe(200);
    for (const variables of [{ n: more }, { n: 100 }])
      expect(await rejection({ query, variables }, 'QUERY_TOO_COMPLEX')).toBe(400);
    expect(await rejection({ query, variables: { n: 101 } }, 'BAD_USER_INPUT')).toBe(400);
  }
  expect((await send({ query })).text).toBe(first.text);
});

test('D7 a field included by a variable costs, even if the document was compiled without it', async () => {
  const query = `query ($y: Boolean = false) { ... @include(if: $y) { ${PAGES.replaceAll('$n', '100')} } }`;
  for (let time = 0; time < 3; time++) {
    expect((await send({ query })).status).toBe(200);
    expect((await send({ query, variables: { y: false } })).status).toBe(200);
    expect(await rejection({ query, variables: { y: true } }, 'QUERY_TOO_COMPLEX')).toBe(400);
    const { answer, statements } = await recordStatements(() =>
      send({ query, variables: { y: null } }),
    );
    expect([answer.status, codes(answer), statements]).toEqual([400, ['BAD_USER_INPUT'], []]);
  }
});

test('D7 a list of ids costs the sum of its ids, even if it was compiled with a short list', async () => {
  const query =
    'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { blog(first: 18) { nodes { title } } } } }';
  const ids = (count: number) => Array.from({ length: count }, () => 'x');
  for (let time = 0; time < 3; time++) {
    for (const given of ['x', ids(1), ids(50)])
      expect((await send({ query, variables: { ids: given } })).status).toBe(200);
    expect(await rejection({ query, variables: { ids: ids(51) } }, 'QUERY_TOO_COMPLEX')).toBe(400);
  }
});

test.each([
  [
    'a filter',
    '$filter: ProductFilter',
    'filter: $filter',
    (search: string | null) => ({ filter: { search } }),
  ],

  [
    'a part of a name',
    '$text: String',
    'filter: { nameContains: $text }',
    (text: string | null) => ({ text }),
  ],
])(
  'D7 a search costs 300 more, even if the document was compiled without one: given as %s',
  async (_how, variable, argument, given) => {
    const query = `query ($n: Int = 1, ${variable}) { ${THREE.replaceAll('first: $n', `first: $n, ${argument}`)} }`;
    for (let time = 0; time < 3; time++) {
      for (const variables of [{ n: 99 }, { n: 99, ...given(null) }, { n: 32, ...given('lamp') }])
        expect((await send({ query, variables })).status).toBe(200);
      expect(
        await rejection({ query, variables: { n: 33, ...given('lamp') } }, 'QUERY_TOO_COMPLEX'),
      ).toBe(400);
    }
  },
);

test('D7 the count of a search costs 450 more, even if the document was compiled without it', async () => {
  const query = `query ($y: Boolean = false) { ${THREE.replace(/a2.*$/, '').replaceAll('first: $n) {', 'filter: { search: "lamp" }) { totalCount @include(if: $y)')} }`;
  for (let time = 0; time < 3; time++) {
    expect((await send({ query })).status).toBe(200);
    expect(await rejection({ query, variables: { y: true } }, 'QUERY_TOO_COMPLEX')).toBe(400);
  }
});

async function rejection(json: object, code: string): Promise<number> {
  const { answer, statements } = await recordStatements(() => send(json));
  expect([answer.status, codes(answer).includes(code), 'data' in answer.body, statements]).toEqual([
    400,
    true,
    false,
    [],
  ]);
  return answer.status;
}

function send(json: object, request: RequestOptions = {}): Promise<Answer> {
  return shop.rest('POST', '/graphql', { ...request, json });
}
