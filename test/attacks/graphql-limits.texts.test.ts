import { describe, expect, test } from '../support/jest.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop } from '../support/shop.ts';

// Documents that are large, deep or expensive to parse.

let made = 0;
/** A new name, so that no document is cached. */
const fresh = () => `x${made++}`;
/** A small query that is not cached. */
const small = () => `{ ${fresh()}: products(first: 1) { nodes { pk name } } }`;
/** Nests these to the depth. */
const nest = (open: string, close: string, depth: number, inner = '') =>
  open.repeat(depth) + inner + close.repeat(depth);
/** A query of this selection that is not cached. */
const inNodes = (selection: string) =>
  `{ ${fresh()}: products(first: 1) { nodes { ${selection} } } }`;

/** Each title begins with the id of its attack. */
const HOSTILE: readonly (readonly [string, () => string])[] = [
  ['D10 __typename 3,000 times', () => `{ ${fresh()}: __typename ${'__typename '.repeat(3_000)} }`],
  ['D10 fields that are unknown, 900 times', () => inNodes('nope '.repeat(900))],
  [
    'D12 42 KB of selections in each other',
    () => `{ ${fresh()}: __typename ${nest('me{', '}', 10_000, 'id')} }`,
  ],
  [
    'D12 90 KB of lists in each other',
    () =>
      `{ ${fresh()}: products(filter: { barcodeIn: ${nest('[', ']', 45_000)} }) { totalCount } }`,
  ],
  [
    'D12 a type of 450 lists',
    () => `query ($a: ${nest('[', ']', 450, 'Int')}) { ${fresh()}: __typename }`,
  ],
  ['D14 30,000 comments', () => `${'#\n'.repeat(30_000)} ${small()}`],
  ['D14 a name of 90 KB', () => `{ ${fresh()}${'x'.repeat(90_000)}: __typename }`],
  [
    'D14 a string of 90 KB',
    () => `{ ${fresh()}: products(after: "${'x'.repeat(90_000)}") { totalCount } }`,
  ],
  [
    'D14 a block of 40,000 lines',
    () => `{ ${fresh()}: products(after: """${'\n '.repeat(30_000)}""") { totalCount } }`,
  ],
  [
    'D14 a number of 90,000 digits',
    () => `{ ${fresh()}: products(first: 1${'0'.repeat(90_000)}) { totalCount } }`,
  ],
];

const shop = useShop({ LOG_LEVEL: 'silent' });

const UNPARSED = 'GRAPHQL_PARSE_FAILED';

const CODES = new Set([
  UNPARSED,
  'GRAPHQL_VALIDATION_FAILED',
  'QUERY_TOO_COMPLEX',
  'BAD_USER_INPUT',
]);

test.each(HOSTILE)('%s: rejected or answered, without an internal error', async (_what, query) => {
  const answer = await shop.graphql(query());
  expect([200, 400]).toContain(answer.status);
  expect(codes(answer).filter((code) => !CODES.has(code))).toEqual([]);
  expect(answer.text).not.toMatch(/call stack|RangeError|node_modules|\.[jt]s\b/i);
});

describe('parsing', () => {
  test.each([
    ['__typename 500 times in a list', inNodes('__typename '.repeat(500))],
    ['inline fragments in each other', `{ ${nest('... {', '}', 300, '__typename')} }`],
  ])('D10 a long document with a small response is answered: %s', async (_what, query) => {
    expect((await shop.graphql(query)).status).toBe(200);
  });

  test('D12 a document has at most 1,000 tokens, and is otherwise rejected while parsing', async () => {
    // Thirteen tokens surround the fields.
    const document = (tokens: number) =>
      `{ products(first: 1) { nodes { ${'pk '.repeat(tokens - 13)} } } }`;
    expect((await shop.graphql(document(600))).status).toBe(200);
    for (const tokens of [1_001, 2_000, 20_000]) {
      const { answer, statements } = await recordStatements(() => shop.graphql(document(tokens)));
      expect([answer.status, codes(answer), 'data' in answer.body, statements]).toEqual([
        400,
        [UNPARSED],
        false,
        [],
      ]);
    }
    expect(codes(await shop.graphql(document(1_000)))).not.toContain(UNPARSED);
  });

  const query = '{ products(first: 1) { nodes { name } } }';

  test.each([
    ['a comment', `#${'x'.repeat(95_000)}\n${query}`],
    ['spaces', query.replaceAll(' ', ' '.repeat(9_000))],
    ['a comment that looks like a query', `#{ me { id } }\r${query}#{`],
  ])('D14 padding changes neither the response nor the limits: %s', async (_what, padded) => {
    await shop.makeProduct({ name: 'Lamp' });
    for (let time = 0; time < 3; time++)
      expect((await shop.graphql(padded)).body).toEqual({
        data: { products: { nodes: [{ name: 'Lamp' }] } },
      });
    const complex = padded.replace(
      'name',
      Array.from({ length: 16 }, (_, at) => `a${at}: name`).join(' '),
    );
    const answer = await shop.graphql(complex);
    expect([answer.status, codes(answer)]).toEqual([400, ['QUERY_TOO_COMPLEX']]);
  });

  test.each([
    ['a letter of another script', '{ pr\u043educts { totalCount } }'],
    ['a zero-width space', '{ pro\u200bducts { totalCount } }'],
    ['NUL', '{ products\u0000 { totalCount } }'],
    ['half a surrogate pair in a string', '{ products(after: "\\ud800") { totalCount } }'],
    ['an unterminated string', '{ products(after: "x) { totalCount } }'],
    ['nothing', ''],
  ])('D14 an invalid document is 400 without a database query: %s', async (_what, text) => {
    const { answer, statements } = await recordStatements(() => shop.graphql(text));
    expect([answer.status, 'data' in answer.body, statements]).toEqual([400, false, []]);
    expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
    expect((await shop.graphql(query)).status).toBe(200);
  });
});
