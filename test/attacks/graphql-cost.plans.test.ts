import { expect, test } from '../support/jest.ts';
import { counted } from '../support/statements.ts';
import { useShop, type Answer, type RequestOptions } from '../support/shop.ts';

// What has been asked once is answered by a plan, or shared. A document that was learned while it was cheap is no cheaper for that.

// Each is asked as often as it says here, and no oftener.
const shop = useShop();

const PAGES = Array.from({ length: 10 }, (_, at) => `a${at}: products(first: $n) { nodes { pk } }`).join(' ');
/** By rows: 10 and ten times the size. */
const ROWS = `query ($n: Int = 1) { ${PAGES} }`;
/** By resolvers: 2 and ten times three and the size. */
const RESOLVED = `query ($n: Int = 1) { node(id: "x") { ... on User { blog(first: 10) { nodes { creator { blog(first: $n) { nodes { title } } } } } } } }`;

test.each([
  ['that is answered by rows', ROWS, 99, 100],
  ['that is answered by resolvers', RESOLVED, 96, 97],
])('D7 a document %s is looked at anew with each request', async (_how, query, most, more) => {
  await shop.makeProducts(3);
  const first = await ask({ query });
  // The first teaches, the second makes, and the third may be shared.
  for (let time = 0; time < 3; time++) {
    expect((await ask({ query })).text).toBe(first.text);
    expect((await ask({ query, variables: { n: most } })).status).toBe(200);
    for (const variables of [{ n: more }, { n: 100 }]) expect(await refusal({ query, variables }, 'QUERY_TOO_COMPLEX')).toBe(400);
    expect(await refusal({ query, variables: { n: 101 } }, 'BAD_USER_INPUT')).toBe(400);
  }
  expect((await ask({ query })).text).toBe(first.text);
});

test('D7 more variables than costs are remembered change nothing', async () => {
  const query = `query ($n: Int = 1, $pk: ID!) { product(pk: $pk) { pk } ${PAGES.replace(/a9.*$/, '')} }`;
  for (let pk = 1; pk <= 250; pk++) expect((await ask({ query, variables: { n: 1 + (pk % 90), pk } })).status).toBe(200);
  for (const pk of [1, 250, 251]) {
    expect((await ask({ query, variables: { n: 100, pk } })).status).toBe(200);
    expect(
      await refusal(
        { query: query.replace('{ product', '{ b: products(first: $n) { nodes { pk } } product'), variables: { n: 100, pk } },
        'QUERY_TOO_COMPLEX',
      ),
    ).toBe(400);
    expect(await refusal({ query, variables: { n: 101, pk } }, 'BAD_USER_INPUT')).toBe(400);
  }
});

test.each<[string, RequestOptions]>([
  ['with no header', {}],
  ['that takes JSON', { headers: { Accept: 'application/json' } }],
  ['that takes anything', { headers: { Accept: '*/*' } }],
  ['that takes the newer media type', { headers: { Accept: 'application/graphql-response+json' } }],
])('D7 what one caller has made cheap is as dear to another, %s', async (_how, request) => {
  const user = await shop.makeUser();
  for (let time = 0; time < 3; time++) {
    for (const as of [undefined, user]) {
      const by = { ...request, ...(as && { as }) };
      expect((await ask({ query: ROWS, variables: { n: 99 } }, by)).status).toBe(200);
      const dear = await ask({ query: ROWS, variables: { n: 100 } }, by);
      expect([dear.status, codes(dear), 'data' in dear.body]).toEqual([400, ['QUERY_TOO_COMPLEX'], false]);
    }
  }
});

test('D7 of two operations in one document, each has its own cost', async () => {
  const query = `query Small { products(first: 1) { nodes { pk } } } query Dear { ${PAGES.replaceAll('$n', '100')} }`;
  for (let time = 0; time < 3; time++) {
    expect((await ask({ query, operationName: 'Small' })).status).toBe(200);
    expect(await refusal({ query, operationName: 'Dear' }, 'QUERY_TOO_COMPLEX')).toBe(400);
    const unnamed = await counted(() => ask({ query }));
    expect([unnamed.answer.status, unnamed.statements]).toEqual([400, []]);
  }
});

test('D7 what a variable switches on costs, also where it was learned while it was off', async () => {
  const query = `query ($y: Boolean = false) { ... @include(if: $y) { ${PAGES.replaceAll('$n', '100')} } }`;
  for (let time = 0; time < 3; time++) {
    expect((await ask({ query })).status).toBe(200);
    expect((await ask({ query, variables: { y: false } })).status).toBe(200);
    expect(await refusal({ query, variables: { y: true } }, 'QUERY_TOO_COMPLEX')).toBe(400);
    const { answer, statements } = await counted(() => ask({ query, variables: { y: null } }));
    expect([answer.status, codes(answer), statements]).toEqual([400, ['BAD_USER_INPUT'], []]);
  }
});

test('D7 a list of ids that was short when it was learned costs what each id costs', async () => {
  const query = 'query ($ids: [ID!]!) { nodes(ids: $ids) { ... on User { blog(first: 18) { nodes { title } } } } }';
  const ids = (count: number) => Array.from({ length: count }, () => 'x');
  for (let time = 0; time < 3; time++) {
    for (const given of ['x', ids(1), ids(50)]) expect((await ask({ query, variables: { ids: given } })).status).toBe(200);
    expect(await refusal({ query, variables: { ids: ids(51) } }, 'QUERY_TOO_COMPLEX')).toBe(400);
  }
});

test.each([
  ['a filter', '$filter: ProductFilter', 'filter: $filter', (search: string | null) => ({ filter: { search } })],
  ['a text', '$search: String', 'filter: { search: $search }', (search: string | null) => ({ search })],
  [
    'a part of a name, in a filter',
    '$filter: ProductFilter',
    'filter: $filter',
    (nameContains: string | null) => ({ filter: { nameContains } }),
  ],
  ['a part of a name', '$text: String', 'filter: { nameContains: $text }', (text: string | null) => ({ text })],
])('a search costs fifty more, also where it was learned without one: given as %s', async (_how, variable, argument, given) => {
  const query = `query ($n: Int = 1, ${variable}) { ${PAGES.replaceAll('first: $n', `first: $n, ${argument}`)} }`;
  for (let time = 0; time < 3; time++) {
    for (const variables of [{ n: 99 }, { n: 99, ...given(null) }, { n: 49, ...given('lamp') }])
      expect((await ask({ query, variables })).status).toBe(200);
    expect(await refusal({ query, variables: { n: 50, ...given('lamp') } }, 'QUERY_TOO_COMPLEX')).toBe(400);
  }
});

async function refusal(json: object, code: string): Promise<number> {
  const { answer, statements } = await counted(() => ask(json));
  expect([answer.status, codes(answer).includes(code), 'data' in answer.body, statements]).toEqual([400, true, false, []]);
  return answer.status;
}

function ask(json: object, request: RequestOptions = {}): Promise<Answer> {
  return shop.rest('POST', '/graphql', { ...request, json });
}

function codes({ body }: Answer): string[] {
  return (body.errors ?? []).map(({ extensions }: { extensions: { code: string } }) => extensions.code);
}
