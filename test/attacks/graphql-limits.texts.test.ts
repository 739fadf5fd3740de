import { describe, expect, test } from '../support/jest.ts';
import { HOSTILE, inNodes, nest } from '../support/hostile-documents.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop } from '../support/shop.ts';

// Documents that are large, deep or expensive to parse. Their time is measured in
// graphql-limits.timing.test.ts.

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
    ['comments', `${'#\n'.repeat(30_000)}${query}`],
    ['spaces', query.replaceAll(' ', ' '.repeat(9_000))],
    ['commas', query.replaceAll(' ', ','.repeat(9_000))],
    ['lines', query.replaceAll(' ', '\r\n'.repeat(2_000))],
    ['tabs', query.replaceAll(' ', '\t'.repeat(4_000))],
    ['byte order marks', query.replaceAll(' ', '\ufeff'.repeat(2_000))],
    ['a comment that looks like a query', `#{ me { id } }\r${query}#{`],
    ['a comment in other scripts', `# ${'\u202e\u0639\u{1f600}'.repeat(5_000)}\n${query}`],
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

  test('D14 padding beyond 100 KB is 413', async () => {
    for (const pad of ['#', ' ', ',', '\n'])
      expect((await shop.graphql(`${query} ${pad.repeat(102_400)}`)).status).toBe(413);
  });

  test.each([
    ['a letter of another script', '{ pr\u043educts { totalCount } }'],
    ['a letter with an accent', '{ pr\u00f6ducts { totalCount } }'],
    ['a full-width letter', '{ \uff50roducts { totalCount } }'],
    ['a zero-width space', '{ pro\u200bducts { totalCount } }'],
    ['a no-break space', '{\u00a0products { totalCount } }'],
    ['a line separator', '{\u2028products { totalCount } }'],
    ['NUL', '{ products\u0000 { totalCount } }'],
    ['half a surrogate pair', '{ products\ud800 { totalCount } }'],
    ['half a surrogate pair in a string', '{ products(after: "\\ud800") { totalCount } }'],
    ['a code point out of range', '{ products(after: "\\u{110000}") { totalCount } }'],
    ['an unterminated string', '{ products(after: "x) { totalCount } }'],
    ['an unterminated block string', '{ products(after: """x) { totalCount } }'],
    ['nothing', ''],
    ['a comment alone', '# { __typename }'],
    ['spaces alone', ' \n,'],
    ['an escaped name', '{ \\u0070roducts { totalCount } }'],
  ])('D14 an invalid document is 400 without a database query: %s', async (_what, text) => {
    const { answer, statements } = await recordStatements(() => shop.graphql(text));
    expect([answer.status, 'data' in answer.body, statements]).toEqual([400, false, []]);
    expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
    expect((await shop.graphql(query)).status).toBe(200);
  });
});
