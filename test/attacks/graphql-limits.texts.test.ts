import { describe, expect, test } from '../support/jest.ts';
import { median } from '../support/medians.ts';
import { counted } from '../support/statements.ts';
import { useShop, type Answer } from '../support/shop.ts';

// Documents that are large, deep or dear to read. Each is refused or answered about as quickly as a small one.

const shop = useShop({ LOG_LEVEL: 'silent' });

const ROUNDS = 9;
/** How many times as long as a small new query a hostile one may take. */
const AT_MOST = 20;
const UNPARSED = 'GRAPHQL_PARSE_FAILED';

let made = 0;
/** A name that no document had before, so that none is known already. */
const fresh = () => `x${made++}`;
const small = () => `{ ${fresh()}: products(first: 1) { nodes { pk name } } }`;
const nest = (open: string, close: string, depth: number, inner = '') => open.repeat(depth) + inner + close.repeat(depth);
const chain = (length: number, type: string, leaf: string) =>
  Array.from({ length }, (_, at) => `fragment F${at} on ${type} { ${at === length - 1 ? leaf : `...F${at + 1} ...F${at + 1}`} }`).join(
    '\n',
  );
const inNodes = (selection: string) => `{ ${fresh()}: products(first: 1) { nodes { ${selection} } } }`;

const CODES = new Set([UNPARSED, 'GRAPHQL_VALIDATION_FAILED', 'QUERY_TOO_COMPLEX', 'BAD_USER_INPUT']);

const hostile: [string, () => string][] = [
  ['D1 nine levels', () => `{ ${fresh()}: me { blog { nodes { creator { blog { nodes { creator { blog { totalCount } } } } } } } } }`],
  ['D3 fragments in circles', () => `{ ...F0 ${fresh()}: __typename } ${chain(60, 'Query', '...F0')}`],
  ['D4 101 aliases', () => inNodes(Array.from({ length: 101 }, () => `${fresh()}: pk`).join(' '))],
  ['D8 fragments that double 60 times', () => `${inNodes('...F0')} ${chain(60, 'Product', 'pk')}`],
  ['D8 fragments that double 60 times at the root', () => `{ ${fresh()}: __typename ...F0 } ${chain(60, 'Query', '__typename')}`],
  ['D8 fragments that double as often as is allowed', () => `${inNodes('...F0')} ${chain(12, 'Product', 'pk')}`],
  ['D8 fragments that double a little oftener', () => `${inNodes('...F0')} ${chain(13, 'Product', 'pk')}`],
  ['D9 10,000 directives', () => `{ ${fresh()}: __typename ${'@a '.repeat(10_000)} }`],
  ['D9 400 unknown directives', () => `{ ${fresh()}: __typename ${'@a '.repeat(400)} }`],
  ['D9 51 conditions', () => inNodes('pk @include(if: true) '.repeat(51))],
  ['D10 __typename 500 times', () => `{ ${fresh()}: __typename ${'__typename '.repeat(500)} }`],
  ['D10 __typename 500 times in a list', () => inNodes('__typename '.repeat(500))],
  ['D10 __typename 3,000 times', () => `{ ${fresh()}: __typename ${'__typename '.repeat(3_000)} }`],
  ['D10 one field 900 times', () => inNodes('name '.repeat(900))],
  ['D10 one field with arguments 90 times', () => inNodes('').replace('nodes {  }', 'nodes { pk } '.repeat(90))],
  ['D10 fields that are unknown, 900 times', () => inNodes('nope '.repeat(900))],
  ['D12 42 KB of selections in each other', () => `{ ${fresh()}: __typename ${nest('me{', '}', 10_000, 'id')} }`],
  ['D12 300 inline fragments in each other', () => `{ ${fresh()}: __typename ${nest('... {', '}', 300, '__typename')} }`],
  ['D12 90 KB of lists in each other', () => `{ ${fresh()}: products(filter: { barcodeIn: ${nest('[', ']', 45_000)} }) { totalCount } }`],
  ['D12 490 lists in each other', () => `{ ${fresh()}: products(filter: { barcodeIn: ${nest('[', ']', 490)} }) { totalCount } }`],
  ['D12 300 objects in each other', () => `{ ${fresh()}: products(filter: ${nest('{a:', '}', 300, '1')}) { totalCount } }`],
  ['D12 a type of 450 lists', () => `query ($a: ${nest('[', ']', 450, 'Int')}) { ${fresh()}: __typename }`],
  ['D14 90 KB of comment', () => `${small()} #${'x'.repeat(90_000)}`],
  ['D14 30,000 comments', () => `${'#\n'.repeat(30_000)} ${small()}`],
  ['D14 90 KB of spaces', () => `${' '.repeat(90_000)}${small()}`],
  ['D14 90 KB of commas', () => small().replace('pk', `pk${','.repeat(90_000)}`)],
  ['D14 45,000 lines', () => small().replace('pk', `pk${'\n'.repeat(45_000)}`)],
  ['D14 30,000 marks of the byte order', () => `${'\ufeff'.repeat(30_000)}${small()}`],
  ['D14 a name of 90 KB', () => `{ ${fresh()}${'x'.repeat(90_000)}: __typename }`],
  ['D14 a string of 90 KB', () => `{ ${fresh()}: products(after: "${'x'.repeat(90_000)}") { totalCount } }`],
  ['D14 a string of 15,000 escapes', () => `{ ${fresh()}: products(after: "${'\\u00e9'.repeat(12_000)}") { totalCount } }`],
  ['D14 a block of 40,000 lines', () => `{ ${fresh()}: products(after: """${'\n '.repeat(30_000)}""") { totalCount } }`],
  ['D14 a number of 90,000 digits', () => `{ ${fresh()}: products(first: 1${'0'.repeat(90_000)}) { totalCount } }`],
];

test.each(hostile)(`%s: refused or answered within ${AT_MOST} times what a small query takes`, async (_what, query) => {
  const times = { small: [] as number[], hostile: [] as number[] };
  const timed = async (kind: 'small' | 'hostile', text: string) => {
    const start = performance.now();
    const answer = await shop.graphql(text);
    times[kind].push(performance.now() - start);
    return answer;
  };
  for (let round = 0; round < ROUNDS; round++) {
    expect((await timed('small', small())).status).toBe(200);
    const answer = await timed('hostile', query());
    expect([200, 400]).toContain(answer.status);
    expect(codes(answer).filter((code) => !CODES.has(code))).toEqual([]);
    expect(answer.text).not.toMatch(/call stack|RangeError|node_modules|\.[jt]s\b/i);
  }
  expect(median(times.hostile) / median(times.small)).toBeLessThanOrEqual(AT_MOST);
});

describe('what is read', () => {
  test.each([
    ['__typename 500 times in a list', inNodes('__typename '.repeat(500))],
    ['inline fragments in each other', `{ ${nest('... {', '}', 300, '__typename')} }`],
  ])('D10 what is long and asks for little is answered: %s', async (_what, query) => {
    expect((await shop.graphql(query)).status).toBe(200);
  });

  test('D12 a document has a thousand tokens, and one more is refused before it is understood', async () => {
    // Thirteen tokens around so many fields.
    const document = (tokens: number) => `{ products(first: 1) { nodes { ${'pk '.repeat(tokens - 13)} } } }`;
    expect((await shop.graphql(document(600))).status).toBe(200);
    for (const tokens of [1_001, 2_000, 20_000]) {
      const { answer, statements } = await counted(() => shop.graphql(document(tokens)));
      expect([answer.status, codes(answer), 'data' in answer.body, statements]).toEqual([400, [UNPARSED], false, []]);
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
    ['marks of the byte order', query.replaceAll(' ', '\ufeff'.repeat(2_000))],
    ['a comment that looks like a query', `#{ me { id } }\r${query}#{`],
    ['a comment in other scripts', `# ${'\u202e\u0639\u{1f600}'.repeat(5_000)}\n${query}`],
  ])('D14 padding changes nothing, neither the answer nor the limits: %s', async (_what, padded) => {
    await shop.makeProduct({ name: 'Lamp' });
    for (let time = 0; time < 3; time++)
      expect((await shop.graphql(padded)).body).toEqual({ data: { products: { nodes: [{ name: 'Lamp' }] } } });
    const dear = padded.replace('name', Array.from({ length: 16 }, (_, at) => `a${at}: name`).join(' '));
    const answer = await shop.graphql(dear);
    expect([answer.status, codes(answer)]).toEqual([400, ['QUERY_TOO_COMPLEX']]);
  });

  test('D14 padding beyond 100 KB is 413', async () => {
    for (const pad of ['#', ' ', ',', '\n']) expect((await shop.graphql(`${query} ${pad.repeat(102_400)}`)).status).toBe(413);
  });

  test.each([
    ['a letter of another script', '{ pr\u043educts { totalCount } }'],
    ['a letter with an accent', '{ pr\u00f6ducts { totalCount } }'],
    ['a full-width letter', '{ \uff50roducts { totalCount } }'],
    ['a space of no width', '{ pro\u200bducts { totalCount } }'],
    ['a space that is none', '{\u00a0products { totalCount } }'],
    ['a separator of lines', '{\u2028products { totalCount } }'],
    ['NUL', '{ products\u0000 { totalCount } }'],
    ['half a character', '{ products\ud800 { totalCount } }'],
    ['half a character in a string', '{ products(after: "\\ud800") { totalCount } }'],
    ['a character beyond all', '{ products(after: "\\u{110000}") { totalCount } }'],
    ['a string without its end', '{ products(after: "x) { totalCount } }'],
    ['a block without its end', '{ products(after: """x) { totalCount } }'],
    ['nothing', ''],
    ['a comment alone', '# { __typename }'],
    ['spaces alone', ' \n,'],
    ['a name that is escaped', '{ \\u0070roducts { totalCount } }'],
  ])('D14 a document that is none is 400, and asks for nothing: %s', async (_what, text) => {
    const { answer, statements } = await counted(() => shop.graphql(text));
    expect([answer.status, 'data' in answer.body, statements]).toEqual([400, false, []]);
    expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
    expect((await shop.graphql(query)).status).toBe(200);
  });
});

function codes({ body }: Answer): string[] {
  return (body.errors ?? []).map(({ extensions }: { extensions: { code: string } }) => extensions.code);
}
