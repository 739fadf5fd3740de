import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { PUBLIC_URL, useShop } from '../support/shop.ts';

const shop = useShop();
const deprecating = useShop({ V1_DEPRECATION: '2027-01-31/2027-12-31' });

const V1 = '/api/v1/shop/products';
const V2 = '/api/v2/shop/products';
const GRAPHQL = `<${PUBLIC_URL}/shop/graphql>; rel="successor-version"`;
const V1_HEADERS = { deprecation: '@1801353600', sunset: 'Fri, 31 Dec 2027 00:00:00 GMT' };
const V2_HEADERS = { deprecation: '@1832889600', sunset: null };

// Deprecation

test('9.3 a version without dates and paths without a version return no deprecation headers', async () => {
  const as = await shop.makeUser({ password: null });
  const answers = [
    await deprecating.rest('GET', V2),
    await deprecating.rest('GET', '/users/me/', { as }),
    await deprecating.rest('GET', '/api/users', { as }),
    await deprecating.rest('POST', '/token', {
      form: { username: as.username, password: 'wrong' },
    }),
    await deprecating.graphql('{ products { totalCount } }'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 401, 200]);
  for (const { headers } of answers)
    expect(versionHeaders(headers)).toMatchObject({ deprecation: null, sunset: null });
  for (const { headers } of answers)
    expect(headers.get('link') ?? '').not.toContain('successor-version');
});

test('9.3 without configured dates, no deprecation headers are returned', async () => {
  const { headers } = await shop.rest('GET', V1);
  expect(versionHeaders(headers)).toEqual({ deprecation: null, sunset: null, link: null });
});

describe('with dates for both versions, one without a sunset, under BASE_PATH', () => {
  const leaving = useShop({
    V1_DEPRECATION: '2027-01-31/2027-12-31',
    V2_DEPRECATION: '2028-01-31',
    BASE_PATH: '/shop',
  });

  test('9.3 every endpoint of a version returns the dates of that version, and its successor', async () => {
    const endpoints = features
      .flatMap(({ routes }) => routes?.(leaving.config) ?? [])
      .filter(({ path }) => path.startsWith('/api/v'));
    expect(endpoints.length).toBeGreaterThan(5);
    for (const { method, path, successor = '/graphql' } of endpoints) {
      const { headers } = await leaving.rest(method, path.replace('{pk}', '1'));
      expect([path, versionHeaders(headers)]).toEqual([
        path,
        {
          ...(path.startsWith('/api/v1/') ? V1_HEADERS : V2_HEADERS),
          link: expect.stringMatching(
            new RegExp(`^<${PUBLIC_URL}/shop${successor}>; rel="successor-version"`),
          ),
        },
      ]);
    }
  });

  test.each([
    ['GET', '/api/v1/shop/product/0', {}, 404, V1_HEADERS],
    ['POST', '/api/v1/shop/product/', { json: {} }, 401, V1_HEADERS],
    [
      'POST',
      '/api/v2/auth/login',
      { body: '{', headers: { 'Content-Type': 'application/json' } },
      400,
      V2_HEADERS,
    ],
  ])(
    '9.3 %s %s with %j, which is %s, returns the headers, too',
    async (method, path, request, status, expected) => {
      const answer = await leaving.rest(method, path, request);
      expect([answer.status, versionHeaders(answer.headers)]).toEqual([
        status,
        { ...expected, link: GRAPHQL },
      ]);
    },
  );

  test.each([
    ['OPTIONS', V1, 200],
    ['PUT', V1, 405],
    ['GET', '/api/v1/shop/nothing', 404],
  ])(
    '9.3 %s %s, which is no endpoint, returns no deprecation headers',
    async (method, path, status) => {
      const answer = await leaving.rest(method, path);
      expect([answer.status, versionHeaders(answer.headers)]).toEqual([
        status,
        { deprecation: null, sunset: null, link: null },
      ]);
    },
  );
});

function versionHeaders(headers: Headers): Record<string, string | null> {
  return {
    deprecation: headers.get('deprecation'),
    sunset: headers.get('sunset'),
    link: headers.get('link'),
  };
}
