import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { useStoppedClock } from '../support/clock.ts';
import { Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { sized } from '../support/sized.ts';
import { recordStatements } from '../support/statements.ts';

// Not shared with other files, whose requests its cache would remember.
const shop = useShop({ LOG_LEVEL: 'debug' });
// Another instance on the same database, with its own pool and without a link to the first.
const other = new Shop();

beforeAll(() => other.start());
afterAll(() => other.stop());

// Responses are cached for some milliseconds. They pass when a test advances the clock.
const clock = useStoppedClock();
/** Maximum staleness after a commit of another instance, in ms. */
const STALE_MS = 50;
/** Number of reads until a response is cached and has been served from the cache once. */
const OFTEN = 5;
const COMMITS = sized(60, 10);
const COUNT = 5;
const FIELDS = 'pk name barcode price createdAt updatedAt';
const PAGE = `{ products(first: 100) { nodes { ${FIELDS} } } }`;
const COUNTED =
  '{ products(first: 100) { totalCount pageInfo { hasNextPage endCursor } nodes { pk name } } }';
const ONE = '{ product(pk: 1) { pk name price } }';
const REST_PAGE = '/api/v2/shop/products?limit=100';
const REST_ONE = '/api/v1/shop/product/1';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const UPDATE =
  'mutation ($pk: ID!, $input: ProductPatch!) { updateProduct(pk: $pk, input: $input) { pk } }';
const DELETE = 'mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }';

/** One product in a response; its pk is a string in GraphQL and a number in REST. */
interface Shown {
  pk: string | number;
  name: string;
  price: number;
}

/** The reads whose responses are cached. */
const READS: Record<string, (at: Shop, request?: RequestOptions) => Promise<Answer>> = {
  'a page by GraphQL': (at, request) => at.graphql(PAGE, {}, request),
  'a counted page by GraphQL': (at, request) => at.graphql(COUNTED, {}, request),
  'a product by GraphQL': (at, request) => at.graphql(ONE, {}, request),
  'a page by REST': (at, request) => at.rest('GET', REST_PAGE, request),
  'a product by REST': (at, request) => at.rest('GET', REST_ONE, request),
};

function shownIn({ body }: Answer): Shown[] {
  const { data } = body;
  const found = data ? (data.products?.nodes ?? [data.product]) : (body.items ?? [body]);
  return found.map((product: Shown) => ({ ...product, pk: String(product.pk) }));
}

/** Reads until the response comes from the cache. */
async function fillCache(read: () => Promise<Answer>): Promise<Answer> {
  let answer = await read();
  for (let time = 1; time < OFTEN; time++) answer = await read();
  return answer;
}

test.each(Object.entries(READS))(
  '%s that is requested repeatedly takes no statements',
  async (_what, read) => {
    await shop.makeProducts(COUNT);
    await fillCache(() => read(shop));
    const { statements } = await recordStatements(async () => {
      for (let time = 0; time < 100; time++) await read(shop);
    });
    expect(statements).toEqual([]);
  },
);

describe('never older than the last commit of this process', () => {
  test('many changes by either API, each read at once by both', async () => {
    const writer = await shop.makeUser({ scopes: ['products:write'] });
    const expected = new Map<string, { name: string; price: number }>();
    const pks = () => [...expected.keys()];
    const create = async (api: 'rest' | 'graphql', at: number): Promise<void> => {
      const input = { name: `Product ${at}`, barcode: shop.newBarcode(), price: at };
      const { body } =
        api === 'rest'
          ? await shop.rest('POST', '/api/v1/shop/product/', { as: writer, json: input })
          : await shop.graphql(CREATE, { input }, { as: writer });
      expected.set(String(body.pk ?? body.data.createProduct.pk), { name: input.name, price: at });
    };
    const update = async (at: number): Promise<void> => {
      const pk = pks()[at % expected.size] ?? '';
      await shop.graphql(UPDATE, { pk, input: { price: at } }, { as: writer });
      expected.set(pk, { name: expected.get(pk)?.name ?? '', price: at });
    };
    const remove = async (): Promise<void> => {
      const pk = pks().at(-1) ?? '';
      await shop.graphql(DELETE, { pk }, { as: writer });
      expected.delete(pk);
    };
    await create('rest', 0);

    for (let at = 1; at <= sized(200, 20); at++) {
      if (at % 4 === 0 && expected.size > 1) await remove();
      else if (at % 4 === 1) await create('rest', at);
      else if (at % 4 === 2) await update(at);
      else await create('graphql', at);
      const [page, countedPage, one, restPage, restOne] = await Promise.all(
        Object.values(READS).map((read) => read(shop)),
      );
      const all = [...expected].map(([pk, { name, price }]) => ({ pk, name, price }));
      expect([
        at,
        page?.body.data.products.nodes.map(({ pk, name, price }: Shown) => ({ pk, name, price })),
      ]).toEqual([at, all]);
      expect([
        at,
        countedPage?.body.data.products.totalCount,
        countedPage?.body.data.products.nodes,
      ]).toEqual([at, all.length, all.map(({ pk, name }) => ({ pk, name }))]);
      expect([at, one?.body.data.product]).toEqual([at, all[0]]);
      expect([
        at,
        restPage?.body.count,
        restPage?.body.items.map(({ pk }: Shown) => String(pk)),
      ]).toEqual([at, all.length, pks()]);
      expect([at, restOne?.body.price]).toEqual([at, all[0]?.price]);
    }
  });

  test.each(Object.entries(READS))(
    'fifty concurrent reads after a change: %s',
    async (_what, read) => {
      const writer = await shop.makeUser({ scopes: ['products:write'] });
      await shop.makeProducts(COUNT);
      for (let at = 1; at <= 10; at++) {
        await fillCache(() => read(shop));
        await shop.graphql(UPDATE, { pk: '1', input: { name: `Name ${at}` } }, { as: writer });
        const answers = await Promise.all(Array.from({ length: 50 }, () => read(shop)));
        expect(answers.map((answer) => shownIn(answer)[0]?.name)).toEqual(
          Array(50).fill(`Name ${at}`),
        );
      }
    },
  );

  test.each([
    ['a changed pk', `update product set pk = 9 where pk = 1`, [2, 3, 4, 5, 9]],
    [
      'a deleted product and a changed pk at once',
      'with gone as (delete from product where pk = 1) update product set pk = 8 where pk = 2',
      [3, 4, 5, 8],
    ],
    ['a truncate with cascade', 'truncate product restart identity cascade', []],
  ])('%s invalidates the cache', async (_what, statement, expected) => {
    await shop.makeProducts(COUNT);
    for (const read of Object.values(READS)) await fillCache(() => read(shop));
    await shop.sql(statement);
    const [page, countedPage, one, restPage, restOne] = await Promise.all(
      Object.values(READS).map((read) => read(shop)),
    );
    const pks = expected.map(String);
    expect(page?.body.data.products.nodes.map(({ pk }: Shown) => pk)).toEqual(pks);
    expect([
      countedPage?.body.data.products.totalCount,
      countedPage?.body.data.products.nodes.map(({ pk }: Shown) => pk),
    ]).toEqual([pks.length, pks]);
    expect(one?.body).toEqual({ data: { product: null } });
    expect([restPage?.body.count, restPage?.body.items.map(({ pk }: Shown) => pk)]).toEqual([
      expected.length,
      expected,
    ]);
    expect(restOne?.status).toBe(404);
  });
});

test('a caller with a write scope sees the counts of a commit of another instance at once', async () => {
  const writer = await shop.makeUser({ scopes: ['products:write'] });
  await shop.makeProducts(COUNT);
  const read = async (as?: typeof writer): Promise<unknown[]> => {
    const request = as ? { as } : {};
    const [rest, graphql] = [
      await shop.rest('GET', '/api/v2/shop/products?limit=3&offset=4', request),
      await shop.graphql(COUNTED, {}, request),
    ];
    return [rest.body.count, rest.body.items.length, graphql.body.data.products.totalCount];
  };
  expect(await read()).toEqual([COUNT, 1, COUNT]);
  const input = { name: 'New', barcode: shop.newBarcode(), price: 1 };
  await other.graphql(CREATE, { input }, { as: writer });
  expect(await read(writer)).toEqual([COUNT + 1, 2, COUNT + 1]);
  clock.advance(STALE_MS);
  expect(await read()).toEqual([COUNT + 1, 2, COUNT + 1]);
});

describe("requests 50 ms after another instance's acknowledged commit see it, and no response mixes both states", () => {
  test('cached responses are out of date until then, and no longer', async () => {
    const writer = await shop.makeUser({ scopes: ['products:write'] });
    await shop.makeProducts(COUNT);
    await shop.sql('update product set price = 0');
    const reads = Object.entries(READS).filter(([what]) => what !== 'a counted page by GraphQL');
    const prices = () =>
      Promise.all(reads.map(async ([, read]) => shownIn(await read(shop))[0]?.price));
    for (let price = 1; price <= COMMITS; price++) {
      for (const [, read] of reads) await fillCache(() => read(shop));
      await other.graphql(UPDATE, { pk: '1', input: { price } }, { as: writer });
      // Otherwise nothing was cached, and nothing is tested.
      expect(await prices()).toEqual(reads.map(() => price - 1));
      clock.advance(STALE_MS);
      expect(await prices()).toEqual(reads.map(() => price));
    }
  });

  test('a page whose rows one commit changes shows all of them as before or all as after', async () => {
    await shop.makeProducts(COUNT);
    await shop.sql('update product set price = 0');
    for (let price = 1; price <= COMMITS; price++) {
      let isDone = false;
      const commit = async (): Promise<void> => {
        await other.sql(`update product set price = ${price}`).finally(() => (isDone = true));
      };
      const poll = async (): Promise<void> => {
        for (let after = 0; after < 3; after += isDone ? 1 : 0) {
          clock.advance(STALE_MS / 5);
          const answers = await Promise.all([shop.graphql(PAGE), shop.rest('GET', REST_PAGE)]);
          for (const answer of answers) {
            const prices = new Set(shownIn(answer).map((product) => product.price));
            expect([price, [...prices]]).toEqual([
              price,
              prices.has(price) ? [price] : [price - 1],
            ]);
          }
        }
      };
      await Promise.all([commit(), poll()]);
      clock.advance(STALE_MS);
    }
  });
});

describe('cached responses are for callers without credentials, and never replace the check of credentials', () => {
  test.each(Object.entries(READS))('%s', async (_what, read) => {
    const user = await shop.makeUser();
    const disabled = await shop.makeUser({ disabled: true });
    await shop.makeProducts(COUNT);
    const cached = await fillCache(() => read(shop));
    const requests: [RequestOptions, number][] = [
      [{ token: 'bad' }, 401],
      [{ as: disabled }, 400],
      [{ sessionKey: 'bad' }, 401],
      [{ as: user }, 200],
      [{ headers: { Authorization: 'Basic YTpi' } }, 200],
      [{}, 200],
    ];
    for (let round = 0; round < OFTEN; round++) {
      const answers: Answer[] = [];
      for (const [request] of requests) answers.push(await read(shop, request));
      expect(answers.map(({ status }) => status)).toEqual(requests.map(([, status]) => status));
      expect(answers.slice(-3).map(({ text }) => text)).toEqual([
        cached.text,
        cached.text,
        cached.text,
      ]);
      expect(answers.slice(0, -3).filter(({ text }) => text.includes('Product'))).toEqual([]);
    }
  });

  test('the response to one caller is served to no other', async () => {
    const ann = await shop.makeUser({ username: 'ann' });
    const ben = await shop.makeUser({ username: 'ben' });
    await shop.makeProducts(COUNT);
    const query = '{ me { username } product(pk: 1) { pk } }';
    for (let round = 0; round < OFTEN; round++) {
      const requests: RequestOptions[] = [{ as: ann }, {}, { as: ben }, {}, { as: ann }];
      const answers = await Promise.all(
        requests.map((request) => shop.graphql(query, {}, request)),
      );
      expect(answers.map(({ body }) => body.data.me?.username)).toEqual([
        'ann',
        undefined,
        'ben',
        undefined,
        'ann',
      ]);
    }
  });
});

describe('a cached REST response has the headers of the first one, with its own X-Request-Id', () => {
  /** Returns the lines of the head, sorted, without the time. */
  const headOf = async (path: string, header: string): Promise<string[]> => {
    const answer = await shop.raw(
      `GET ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${header}\r\n\r\n`,
    );
    const [head = ''] = answer.split('\r\n\r\n', 1);
    return head
      .split('\r\n')
      .filter((line) => !line.startsWith('Date: '))
      .toSorted();
  };

  test.each([
    ['a page', REST_PAGE, 'Accept: */*'],
    ['a page with links, compressed', '/api/v2/shop/products?limit=20', 'Accept-Encoding: gzip'],
    ['a product', REST_ONE, 'Accept: */*'],
  ])('%s', async (_what, path, header) => {
    await shop.makeProducts(30);
    const idOf = (time: number) => `X-Request-Id: ${String(time).repeat(32)}`;
    const heads: string[][] = [];
    for (let time = 0; time < OFTEN; time++)
      heads.push(await headOf(path, `${header}\r\n${idOf(time)}`));
    const [first = []] = heads;
    expect(first).toEqual(expect.arrayContaining(['HTTP/1.1 200 OK', idOf(0)]));
    const expected = (time: number) => first.map((line) => (line === idOf(0) ? idOf(time) : line));
    expect(heads).toEqual(heads.map((_head, time) => expected(time)));
  });

  test('a second Host is rejected, as without the cache (RFC 9112, 3.2)', async () => {
    await shop.makeProducts(COUNT);
    await fillCache(() => shop.rest('GET', REST_ONE));
    const lines = await headOf(REST_ONE, 'Host: other');
    expect(lines).toContain('HTTP/1.1 400 Bad Request');
    expect(lines).toContain('X-Content-Type-Options: nosniff');
  });

  test('a client that has it gets 304, with the same caching headers (RFC 9110, 15.4.5)', async () => {
    await shop.makeProducts(COUNT);
    const { headers } = await fillCache(() => shop.rest('GET', REST_ONE));
    const again = await shop.rest('GET', REST_ONE, {
      headers: { 'If-None-Match': headers.get('ETag') ?? '' },
    });
    expect(again.status).toBe(304);
    for (const name of ['ETag', 'Cache-Control', 'Vary'])
      expect(again.headers.get(name)).toBe(headers.get(name));
  });
});

describe('a response with an error is not cached', () => {
  test.each([
    ['GraphQL', () => shop.graphql('{ products(first: 99) { nodes { pk } } }')],
    ['REST, one product', () => shop.rest('GET', '/api/v1/shop/product/2')],
  ])('a read that fails in the database is repeated: %s', async (_api, read) => {
    await shop.makeProducts(COUNT);
    const good = await read();
    expect(good.status).toBe(200);
    // The table is renamed but its row counts are unchanged, so they do not reveal the failure.
    await shop.sql('alter table product rename to product_gone');
    try {
      for (let time = 0; time < OFTEN; time++)
        expect((await read()).text).toContain('Internal server error');
    } finally {
      await shop.sql('alter table product_gone rename to product');
    }
    expect((await read()).text).toBe(good.text);
  });
});
