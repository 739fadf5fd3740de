/**
 * Large, deep or expensive documents, for tests of their responses and of the time that these take.
 */

let made = 0;
/** A new name, so that no document is cached. */
const fresh = () => `x${made++}`;
/** A small query that is not cached. */
export const small = () => `{ ${fresh()}: products(first: 1) { nodes { pk name } } }`;
/** Nests these to the depth. */
export const nest = (open: string, close: string, depth: number, inner = '') =>
  open.repeat(depth) + inner + close.repeat(depth);
const chain = (length: number, type: string, leaf: string) =>
  Array.from(
    { length },
    (_, at) =>
      `fragment F${at} on ${type} { ${at === length - 1 ? leaf : `...F${at + 1} ...F${at + 1}`} }`,
  ).join('\n');
/** A query of this selection that is not cached. */
export const inNodes = (selection: string) =>
  `{ ${fresh()}: products(first: 1) { nodes { ${selection} } } }`;

/** Each title begins with the id of its attack. */
export const HOSTILE: readonly (readonly [string, () => string])[] = [
  [
    'D1 nine levels',
    () =>
      `{ ${fresh()}: me { blog { nodes { creator { blog { nodes { creator { blog { totalCount } } } } } } } } }`,
  ],
  [
    'D3 fragments in circles',
    () => `{ ...F0 ${fresh()}: __typename } ${chain(60, 'Query', '...F0')}`,
  ],
  ['D4 101 aliases', () => inNodes(Array.from({ length: 101 }, () => `${fresh()}: pk`).join(' '))],
  ['D8 fragments that double 60 times', () => `${inNodes('...F0')} ${chain(60, 'Product', 'pk')}`],
  [
    'D8 fragments that double 60 times at the root',
    () => `{ ${fresh()}: __typename ...F0 } ${chain(60, 'Query', '__typename')}`,
  ],
  [
    'D8 fragments that double as often as is allowed',
    () => `${inNodes('...F0')} ${chain(12, 'Product', 'pk')}`,
  ],
  [
    'D8 fragments that double a little oftener',
    () => `${inNodes('...F0')} ${chain(13, 'Product', 'pk')}`,
  ],
  ['D9 10,000 directives', () => `{ ${fresh()}: __typename ${'@a '.repeat(10_000)} }`],
  ['D9 400 unknown directives', () => `{ ${fresh()}: __typename ${'@a '.repeat(400)} }`],
  ['D9 51 conditions', () => inNodes('pk @include(if: true) '.repeat(51))],
  ['D10 __typename 500 times', () => `{ ${fresh()}: __typename ${'__typename '.repeat(500)} }`],
  ['D10 __typename 500 times in a list', () => inNodes('__typename '.repeat(500))],
  ['D10 __typename 3,000 times', () => `{ ${fresh()}: __typename ${'__typename '.repeat(3_000)} }`],
  ['D10 one field 900 times', () => inNodes('name '.repeat(900))],
  [
    'D10 one field with arguments 90 times',
    () => inNodes('').replace('nodes {  }', 'nodes { pk } '.repeat(90)),
  ],
  ['D10 fields that are unknown, 900 times', () => inNodes('nope '.repeat(900))],
  [
    'D12 42 KB of selections in each other',
    () => `{ ${fresh()}: __typename ${nest('me{', '}', 10_000, 'id')} }`,
  ],
  [
    'D12 300 inline fragments in each other',
    () => `{ ${fresh()}: __typename ${nest('... {', '}', 300, '__typename')} }`,
  ],
  [
    'D12 90 KB of lists in each other',
    () =>
      `{ ${fresh()}: products(filter: { barcodeIn: ${nest('[', ']', 45_000)} }) { totalCount } }`,
  ],
  [
    'D12 490 lists in each other',
    () => `{ ${fresh()}: products(filter: { barcodeIn: ${nest('[', ']', 490)} }) { totalCount } }`,
  ],
  [
    'D12 300 objects in each other',
    () => `{ ${fresh()}: products(filter: ${nest('{a:', '}', 300, '1')}) { totalCount } }`,
  ],
  [
    'D12 a type of 450 lists',
    () => `query ($a: ${nest('[', ']', 450, 'Int')}) { ${fresh()}: __typename }`,
  ],
  ['D14 90 KB of comment', () => `${small()} #${'x'.repeat(90_000)}`],
  ['D14 30,000 comments', () => `${'#\n'.repeat(30_000)} ${small()}`],
  ['D14 90 KB of spaces', () => `${' '.repeat(90_000)}${small()}`],
  ['D14 90 KB of commas', () => small().replace('pk', `pk${','.repeat(90_000)}`)],
  ['D14 45,000 lines', () => small().replace('pk', `pk${'\n'.repeat(45_000)}`)],
  ['D14 30,000 marks of the byte order', () => `${'\ufeff'.repeat(30_000)}${small()}`],
  ['D14 a name of 90 KB', () => `{ ${fresh()}${'x'.repeat(90_000)}: __typename }`],
  [
    'D14 a string of 90 KB',
    () => `{ ${fresh()}: products(after: "${'x'.repeat(90_000)}") { totalCount } }`,
  ],
  [
    'D14 a string of 15,000 escapes',
    () => `{ ${fresh()}: products(after: "${'\\u00e9'.repeat(12_000)}") { totalCount } }`,
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
