import { withinLimit, type Bench, type Result } from './bench.ts';
import { responseTo } from './load.ts';

const SIZE = '10m';
/** Number of requests of each kind per round. */
const REQUESTS = 20;
const PAGE =
  'query ($filter: ProductFilter, $orderBy: ProductOrder) { products(filter: $filter, orderBy: $orderBy) { nodes { pk name } } }';
const COUNT = 'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }';
/** Default maximum time in ms. */
const MAX_MS = 50;
const LETTERS = Array.from('abcdefghijklmnopqrstuvwxyz');

/**
 * A search among ten million products with names such as `Product 123 Oak`, `… Steel`, `… Glass` or
 * `… Linen`.
 */
interface Kind {
  what: string;
  query?: string;
  variables: object;
  /** Maximum time in ms. */
  max?: number;
}

const kinds: readonly Kind[] = [
  { what: 'a word that begins every name', variables: { filter: { search: 'product' } } },
  { what: 'a word of every fourth name', variables: { filter: { search: 'steel' } } },
  { what: 'the beginning of a phrase', variables: { filter: { search: 'product 12345' } } },
  { what: 'several words, found once', variables: { filter: { search: 'glass 123458' } } },
  { what: 'one letter', variables: { filter: { search: 'o' } } },
  { what: 'a mistyped word of every name', variables: { filter: { search: 'prodcut' } } },
  { what: 'nothing found', variables: { filter: { search: 'zzzz' } } },
  { what: 'a barcode', variables: { filter: { search: '4000001234562' } } },
  {
    what: '255 characters of letters',
    variables: {
      filter: {
        search: [
          ...LETTERS,
          ...LETTERS.map((one) => `${one}q`),
          ...LETTERS.map((one) => `q${one}x`),
        ]
          .join(' ')
          .slice(0, 255),
      },
    },
  },
  {
    what: '26 mistyped words',
    variables: { filter: { search: LETTERS.map((one) => `prodc${one}`).join(' ') } },
  },
  {
    what: 'a word of every fourth name, by price',
    variables: { filter: { search: 'steel' }, orderBy: { field: 'PRICE' } },
  },
  {
    what: 'a word that is found once, by price',
    variables: { filter: { search: '123458' }, orderBy: { field: 'PRICE' } },
  },
  {
    what: 'two words, one of every name and one of every fourth, by price',
    variables: { filter: { search: 'product steel' }, orderBy: { field: 'PRICE' } },
  },
  {
    what: 'two words of every fourth name, which none has both, by price',
    variables: { filter: { search: 'oak steel' }, orderBy: { field: 'PRICE' } },
    max: 200,
  },
  {
    what: 'two letters inside of names, found nowhere',
    variables: { filter: { nameContains: 'zz' } },
  },
  {
    what: 'text inside of names, found once',
    variables: { filter: { nameContains: '23458 gla' } },
  },
  {
    what: 'prices, by name',
    variables: { filter: { priceMin: 100, priceMax: 101 }, orderBy: { field: 'NAME' } },
  },
  {
    what: 'the count of a word of every fourth name',
    query: COUNT,
    variables: { filter: { search: 'steel' } },
    // It is rejected after a second.
    max: 1_100,
  },
];

/** Measures searches and filters, with one client at a time. */
export async function measureSearches(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = [];
  const { port } = await bench.ours(SIZE);
  for (const [index, { what, query = PAGE, variables, max = MAX_MS }] of kinds.entries()) {
    const search = {
      method: 'POST',
      path: '/graphql',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    } as const;
    const ask = async () => (await responseTo(port, search)).text();
    const first = await ask();
    const isRejected = first.includes('"QUERY_TOO_COMPLEX"');
    if (first.includes('"errors"') && !isRejected) throw new Error(first);
    const times: number[] = [];
    const requests = bench.pace.rounds * (isRejected ? 1 : REQUESTS);
    for (let time = 0; time < requests; time++) {
      const began = performance.now();
      await ask();
      times.push(performance.now() - began);
    }
    const result = withinLimit(
      `search-${index + 1}`,
      isRejected ? `${what}: rejected as too complex` : what,
      max,
      times,
    );
    results.push(result);
    print(result);
  }
  await bench.clear();
  return results;
}
