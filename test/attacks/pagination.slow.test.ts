import { beforeEach, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PUBLIC_URL, useShop } from '../support/shop.ts';

const shop = useShop();

const CREATE = '/api/v1/shop/product/';
const PAGES = '/api/v2/shop/products';
const BY_CURSOR = `query ($first: Int, $after: String, $last: Int, $before: String, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy) {
    nodes { pk }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;
const AT_START = 400;
const INSERTS = 1_000;
const WRITERS = 4;

/** A walk through all pages: the primary keys on each. */
type Walk = () => Promise<number[][]>;

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ password: null, scopes: ['products:write'] });
  const barcodes = Array.from({ length: AT_START }, () => `'${shop.newBarcode()}'`).join();
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Tray', barcode, 1, now(), now() from unnest(array[${barcodes}]) as barcode`);
});

/** Products added during a walk may shift pages; existing products keep their positions. */
const BY_POSITION: Walk[] = [
  () => walkLinks('page=1'),
  () => walkLinks('limit=100'),
  () => walkLinks('limit=7&offset=0'),
];
const BY_CURSORS: Walk[] = [
  () => walkForward({}),
  () => walkForward({ orderBy: { field: 'PRICE', direction: 'ASC' } }),
  walkBackward,
];

test('Q8 by number and by offset while 1,000 are added, existing products come once each, by pk', async () => {
  for (const pages of await walksWhileAdding(BY_POSITION)) {
    for (const page of pages) expect(page).toEqual(page.toSorted((a, b) => a - b));
    expect(pages.flat().filter((pk) => pk <= AT_START)).toEqual(upTo(AT_START));
  }
});

test('Q8 by cursors while 1,000 are added, none comes twice, and existing products come by pk', async () => {
  for (const pages of await walksWhileAdding(BY_CURSORS)) {
    const pks = pages.flat();
    expect(new Set(pks).size).toBe(pks.length);
    expect(pks).toEqual(pks.toSorted((a, b) => a - b));
    expect(pks.filter((pk) => pk <= AT_START)).toEqual(upTo(AT_START));
  }
});

/** Walks in each way repeatedly while several writers add 1,000 products, and once at the end. */
async function walksWhileAdding(ways: readonly Walk[]): Promise<number[][][]> {
  const turns = upTo(INSERTS).values();
  const state = { isAdding: true };
  const adding = Promise.all(
    Array.from({ length: WRITERS }, async () => {
      // Each takes the next turn.
      for (const turn of turns) expect([turn, await add()]).toEqual([turn, 201]);
    }),
  ).finally(() => (state.isAdding = false));
  // The await below throws any error.
  adding.catch(() => undefined);
  const walks: number[][][] = [];
  while (state.isAdding) for (const walk of ways) walks.push(await walk());
  await adding;
  for (const walk of ways) {
    const last = await walk();
    expect(last.flat()).toEqual(upTo(AT_START + INSERTS));
    walks.push(last);
  }
  return walks;
}

async function add(): Promise<number> {
  return (
    await shop.rest('POST', CREATE, {
      as: writer,
      json: { name: 'Pen', barcode: shop.newBarcode(), price: 1 },
    })
  ).status;
}

async function walkLinks(query: string): Promise<number[][]> {
  const pages: number[][] = [];
  for (let url: string | null = `${PUBLIC_URL}${PAGES}?${query}`; url !== null;) {
    const { status, body } = await shop.rest('GET', url.slice(PUBLIC_URL.length));
    expect(status).toBe(200);
    pages.push((body.items as { pk: number }[]).map(({ pk }) => pk));
    url = body.next as string | null;
  }
  return pages;
}

async function walkForward(order: object): Promise<number[][]> {
  const pages: number[][] = [];
  for (let after: string | null = null, isMore = true; isMore;) {
    const { nodes, pageInfo } = await pageBy({ ...order, first: 100, after });
    pages.push(nodes);
    after = pageInfo.endCursor;
    isMore = pageInfo.hasNextPage;
  }
  return pages;
}

async function walkBackward(): Promise<number[][]> {
  const pages: number[][] = [];
  for (let before: string | null = null, isMore = true; isMore;) {
    const { nodes, pageInfo } = await pageBy({ last: 100, before });
    pages.unshift(nodes);
    before = pageInfo.startCursor;
    isMore = pageInfo.hasPreviousPage;
  }
  return pages;
}

interface PageInfo {
  hasNextPage: boolean;
  hasPreviousPage: boolean;
  startCursor: string;
  endCursor: string;
}

async function pageBy(
  variables: Record<string, unknown>,
): Promise<{ nodes: number[]; pageInfo: PageInfo }> {
  const { body } = await shop.graphql(BY_CURSOR, variables);
  const { nodes, pageInfo } = body.data.products as { nodes: { pk: string }[]; pageInfo: PageInfo };
  return { nodes: nodes.map(({ pk }) => Number(pk)), pageInfo };
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}
