import { describe, expect, test } from '../support/jest.ts';
import { heapUsed } from '../support/heap.ts';
import { useShop } from '../support/shop.ts';

// Parsed documents are cached. Clients that send many different ones must not exhaust the memory.

const shop = useShop({ LOG_LEVEL: 'silent' });
const MEBIBYTE = 1024 * 1024;
/** Number of concurrent requests. */
const AT_ONCE = 20;

/** Returns the memory added by `count` different requests, in bytes. */
async function growth(count: number, request: (index: number) => object): Promise<number> {
  let sent = 0;
  const statuses = new Set<number>();
  const sendTo = async (end: number) => {
    const one = async () => {
      while (sent < end)
        statuses.add((await shop.rest('POST', '/graphql', { json: request(sent++) })).status);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, one));
  };
  await sendTo(AT_ONCE);
  const before = heapUsed();
  await sendTo(count);
  expect(statuses.size).toBe(1);
  expect((await shop.graphql('{ __typename }')).status).toBe(200);
  return heapUsed() - before;
}

describe('many different documents', () => {
  const query = (index: number, padding: string) =>
    `{ products(first: 1) { nodes { a${index}: pk } } ${padding} }`;

  test.each<[string, number, (index: number) => object]>([
    ['small ones', 10_000, (index) => ({ query: query(index, '') })],
    [
      'small ones that are rejected',
      5_000,
      (index) => ({ query: `{ products(first: 1) { a${index} } }` }),
    ],
    [
      'small ones, with names for their operations',
      5_000,
      (index) => ({ query: `query A${index} ${query(0, '')}`, operationName: `A${index}` }),
    ],
    // The size of a document is that of its text, including comments.
    ['a comment of 90 KB', 1_000, (index) => ({ query: query(index, `#${'x'.repeat(90_000)}\n`) })],
    ['thousands of comments', 200, (index) => ({ query: query(index, '#\n'.repeat(30_000)) })],
    [
      'thousands of comments, compiled',
      600,
      (index) => ({ query: query(index, '#\n'.repeat(4_500)) }),
    ],
    ['90 KB of spaces', 1_000, (index) => ({ query: query(index, ' '.repeat(90_000)) })],
    [
      'as many fields as are allowed',
      1_000,
      (index) => ({
        query: `{ products(first: 1) { nodes { a${index}: pk ${'name '.repeat(800)} } } }`,
      }),
    ],
  ])('D17 cached documents stay within 96 MiB: %s', async (_what, count, request) => {
    expect(await growth(count, request)).toBeLessThan(96 * MEBIBYTE);
  });

  test('D17 hashes are not stored', async () => {
    const hash = (index: number) => ({
      extensions: {
        persistedQuery: { version: 1, sha256Hash: index.toString(16).padStart(64, '0') },
      },
      query: query(index, ''),
    });
    expect(await growth(10_000, hash)).toBeLessThan(16 * MEBIBYTE);
  });

  test('D17 variables of a document are not stored', async () => {
    const ids = (index: number) => Array.from({ length: 50 }, (_, at) => index * 1_000 + at);
    const request = (index: number) => ({
      query: 'query ($ids: [ID!]!, $pk: ID!) { nodes(ids: $ids) { id } product(pk: $pk) { pk } }',
      variables: { ids: ids(index), pk: index },
    });
    expect(await growth(3_000, request)).toBeLessThan(32 * MEBIBYTE);
  });
});
