import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();
const withMaxAge = new Shop({ PUBLIC_MAX_AGE_SECONDS: '60' });
beforeAll(() => withMaxAge.start());
afterAll(() => withMaxAge.stop());

const PREFLIGHTED = { 'apollo-require-preflight': 'true' };
const DOCUMENT = encodeURIComponent('{ products(first: 2) { nodes { pk name } } me { username } }');
const CREDENTIALS = 'Authorization, X-SESSION-ID, X-SESSIONID';

interface Read {
  name: string;
  path: string;
  headers?: Record<string, string>;
  vary?: string;
}

const READS: Read[] = [
  { name: 'a page', path: '/api/v2/shop/products?page=1' },
  { name: 'a product', path: '/api/v1/shop/product/1' },
  {
    name: 'a GraphQL query by GET',
    path: `/graphql?query=${DOCUMENT}`,
    headers: PREFLIGHTED,
    vary: `Accept, ${CREDENTIALS}`,
  },
];

describe.each(READS)(
  'caching of public reads: $name',
  ({ path, headers = {}, vary = CREDENTIALS }) => {
    const read = (request: RequestOptions = {}, method = 'GET') =>
      shop.rest(method, path, { ...request, headers: { ...headers, ...request.headers } });
    const known = async (): Promise<string> => {
      await shop.makeProducts(2);
      return String((await read()).headers.get('etag'));
    };

    test('the response has an ETag and is revalidated each time', async () => {
      await shop.makeProducts(2);
      const answer = await read();
      expect(answer.status).toBe(200);
      expect(cachedAs(answer)).toEqual({
        etag: expect.stringMatching(/^(W\/)?"[^"]+"$/),
        control: 'public, no-cache',
        vary,
      });
    });

    test.each(['GET', 'HEAD'])(
      'its ETag gets 304 to %s, with the same headers and no body',
      async (method) => {
        const tag = await known();
        const full = await read();
        const answer = await read({ headers: { 'If-None-Match': tag } }, method);
        expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([
          304,
          '',
          null,
        ]);
        expect(cachedAs(answer)).toEqual(cachedAs(full));
        expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      },
    );

    test.each([
      (tag: string) => `"other", ${tag}`,
      (tag: string) => `W/${tag.replace('W/', '')}`,
      () => '*',
    ])('ETags are compared weakly, in a list too, and * matches any: %p', async (written) => {
      const tag = await known();
      expect((await read({ headers: { 'If-None-Match': written(tag) } })).status).toBe(304);
    });

    test('a write changes the ETag, and the old one gets the new response', async () => {
      const tag = await known();
      const writer = await shop.makeUser({ password: null, scopes: ['products:write'] });
      const rename = 'mutation { updateProduct(pk: 1, input: { name: "Renamed" }) { pk } }';
      expect((await shop.graphql(rename, {}, { as: writer })).body.errors).toBeUndefined();
      const answer = await read({ headers: { 'If-None-Match': tag } });
      expect(answer.status).toBe(200);
      expect(answer.text).toContain('Renamed');
      expect(answer.headers.get('etag')).not.toBe(tag);
    });

    test('a response to credentials is no-store, and If-None-Match is ignored', async () => {
      const tag = await known();
      const answer = await read({
        as: await shop.makeUser({ password: null }),
        headers: { 'If-None-Match': tag },
      });
      expect(answer.status).toBe(200);
      expect([answer.headers.get('etag'), answer.headers.get('cache-control')]).toEqual([
        null,
        'no-store',
      ]);
    });

    test('PUBLIC_MAX_AGE_SECONDS is its max-age', async () => {
      await shop.makeProducts(2);
      const answer = await withMaxAge.rest('GET', path, { headers });
      expect(cachedAs(answer)).toMatchObject({ control: 'public, max-age=60', vary });
    });
  },
);

test.each<[string, () => Promise<Answer>]>([
  ['an unknown product', () => shop.rest('GET', '/api/v1/shop/product/7')],
  ['an unsupported method', () => shop.rest('DELETE', '/api/v2/shop/products')],
  ['a GraphQL query by POST', () => shop.graphql('{ products { totalCount } }')],
  [
    'a GraphQL query by GET that fails',
    () => shop.rest('GET', '/graphql?query={users{totalCount}}', { headers: PREFLIGHTED }),
  ],
  ['/readyz', () => shop.rest('GET', '/readyz')],
])('caching: %s is no-store, without an ETag', async (_what, read) => {
  const { headers } = await read();
  expect(headers.get('etag')).toBeNull();
  expect(headers.get('cache-control')).toBe('no-store');
});

function cachedAs({ headers }: Answer) {
  return {
    etag: headers.get('etag'),
    control: headers.get('cache-control'),
    vary: headers.get('vary'),
  };
}
