import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { readConfig, type ConfigError } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { PUBLIC_URL, Shop, useShop } from '../support/shop.ts';

const shop = useShop();
const deprecating = new Shop({ V1_DEPRECATION: '2027-01-31/2027-12-31' });
beforeAll(() => deprecating.start());
afterAll(() => deprecating.stop());

const V1 = '/api/v1/shop/products';
const V2 = '/api/v2/shop/products';
const SUCCESSOR = `<${PUBLIC_URL}${V2}>; rel="successor-version"`;
const GRAPHQL = `<${PUBLIC_URL}/graphql>; rel="successor-version"`;
const V1_HEADERS = { deprecation: '@1801353600', sunset: 'Fri, 31 Dec 2027 00:00:00 GMT' };
const V2_HEADERS = { deprecation: '@1832889600', sunset: 'Sun, 31 Dec 2028 00:00:00 GMT' };

// The version is part of the path

test.each(['/api/v0/shop/products', '/api/V1/shop/products', '/shop/products'])(
  '9.1 the version is part of the path: there is no %s',
  async (path) => {
    const answer = await shop.rest('GET', path);
    expect(answer.status).toBe(404);
  },
);

test('9.1 no header chooses another version', async () => {
  const answer = await shop.rest('GET', V1, {
    headers: { Accept: 'application/json; version=v2', 'API-Version': '2' },
  });
  expect(answer.body).toEqual([]);
});

// What each version carries

test('9.2 the first version carries the catalogue without pagination: page, limit and offset are ignored', async () => {
  const made = await shop.makeProducts(12);
  const answer = await shop.rest('GET', `${V1}?page=2&limit=x&offset=-1`);
  expect(answer.status).toBe(200);
  expect(answer.body).toHaveLength(made.length);
  expect(answer.headers.get('link')).toBeNull();
});

// Deprecation

test('9.3 a superseded endpoint returns its deprecation date, its sunset date and its successor', async () => {
  const answer = await deprecating.rest('GET', V1);
  expect(answer.status).toBe(200);
  expect(versionHeaders(answer.headers)).toEqual({
    deprecation: '@1801353600',
    sunset: 'Fri, 31 Dec 2027 00:00:00 GMT',
    link: SUCCESSOR,
  });
});

test('9.3 a superseded endpoint works as before', async () => {
  await shop.makeProducts(3);
  const before = await shop.rest('GET', V1);
  const answer = await deprecating.rest('GET', V1);
  expect(answer.text).toBe(before.text);
});

test.each([`${V1}/`, `${V1}?x=1`])(
  '9.3 a superseded endpoint returns these headers at %s, too',
  async (path) => {
    const answer = await deprecating.rest('GET', path);
    expect(versionHeaders(answer.headers)).toMatchObject({
      deprecation: '@1801353600',
      link: SUCCESSOR,
    });
  },
);

test('9.3 the successor exists', async () => {
  const { headers } = await deprecating.rest('GET', V1);
  const [, url = ''] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
  expect(url.startsWith(PUBLIC_URL)).toBe(true);
  expect(await deprecating.rest('GET', url.slice(PUBLIC_URL.length))).toMatchObject({
    status: 200,
    body: { items: [], count: 0 },
  });
});

test('9.3 without a successor endpoint, the successor is the GraphQL API', async () => {
  const { pk } = await shop.makeProduct();
  const as = await shop.makeUser({ password: null, scopes: ['products:write'] });
  const answers = [
    await deprecating.rest('GET', `/api/v1/shop/product/${pk}`),
    await deprecating.rest('POST', '/api/v1/shop/product/', {
      as,
      json: { name: 'Tray', barcode: '4006381333931', price: 1 },
    }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 201]);
  for (const { headers } of answers)
    expect(versionHeaders(headers)).toEqual({ ...V1_HEADERS, link: GRAPHQL });
});

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

describe('with dates for both versions', () => {
  const leaving = new Shop({
    V1_DEPRECATION: '2027-01-31/2027-12-31',
    V2_DEPRECATION: '2028-01-31/2028-12-31',
  });
  beforeAll(() => leaving.start());
  afterAll(() => leaving.stop());

  test('9.3 every endpoint of a version returns the dates of that version', async () => {
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
            new RegExp(`^<${PUBLIC_URL}${successor}>; rel="successor-version"`),
          ),
        },
      ]);
    }
  });

  test('9.3 a page links to its successor and its neighbours, on every request', async () => {
    await shop.makeProducts(5);
    const link = (offset: number, rel: string) =>
      `<${PUBLIC_URL}${V2}?limit=2&offset=${offset}>; rel="${rel}"`;
    for (let time = 0; time < 3; time++) {
      const { headers } = await leaving.rest('GET', `${V2}?limit=2&offset=2`);
      expect(versionHeaders(headers)).toEqual({
        ...V2_HEADERS,
        link: [GRAPHQL, link(4, 'next'), link(0, 'prev')].join(', '),
      });
    }
  });

  test('9.3 a cached response returns the headers each time', async () => {
    const { pk } = await shop.makeProduct();
    for (let time = 0; time < 3; time++) {
      const { status, headers } = await leaving.rest('GET', `/api/v1/shop/product/${pk}`);
      expect([status, versionHeaders(headers)]).toEqual([200, { ...V1_HEADERS, link: GRAPHQL }]);
    }
  });

  test.each([
    ['GET', '/api/v1/shop/product/0', {}, 404, V1_HEADERS],
    ['POST', '/api/v1/shop/product/', { json: {} }, 401, V1_HEADERS],
    ['GET', '/api/v1/shop/product/1', { token: 'none' }, 401, V1_HEADERS],
    ['GET', `${V2}?page=0`, {}, 422, V2_HEADERS],
    [
      'POST',
      '/api/v2/auth/login',
      { body: '{', headers: { 'Content-Type': 'application/json' } },
      400,
      V2_HEADERS,
    ],
    ['HEAD', '/api/v1/shop/product/0', {}, 404, V1_HEADERS],
    ['HEAD', V2, {}, 200, V2_HEADERS],
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

describe('the dates', () => {
  const read = (env: Record<string, string>) =>
    readConfig({ SIGNING_SECRET: TEST_SECRET, ...env }, () => undefined);
  const problemsOf = (env: Record<string, string>): readonly string[] => {
    try {
      read(env);
      return [];
    } catch (error) {
      return (error as ConfigError).problems;
    }
  };

  test('a removal before the deprecation is a configuration error, reported with all others', () => {
    expect(
      problemsOf({
        V1_DEPRECATION: '2027-01-31/2027-01-30',
        V2_DEPRECATION: '2027-01-31/2026-01-31',
        LOG_LEVEL: 'x',
        PORT: 'x',
      }),
    ).toEqual([
      'PORT must be a whole number',
      'V1_DEPRECATION must not have the removal before the deprecation',
      'V2_DEPRECATION must not have the removal before the deprecation',
      'LOG_LEVEL must be a level of the log',
    ]);
  });

  test('an invalid date is a configuration error', () => {
    expect(problemsOf({ V2_DEPRECATION: '2027-02-30' })).toEqual([
      'V2_DEPRECATION must be a date such as 2027-01-31, or an interval such as 2027-01-31/2027-07-31',
    ]);
  });

  test.each([
    [{ V1_DEPRECATION: '2027-01-31/2027-01-31' }],
    [{ V1_DEPRECATION: '2026-01-31/2026-07-31', V2_DEPRECATION: '2027-01-31' }],
  ])('%j is valid', (env) => {
    expect(problemsOf(env)).toEqual([]);
  });
});

describe('with a date of deprecation only, under BASE_PATH', () => {
  const based = new Shop({ V1_DEPRECATION: '2027-01-31', BASE_PATH: '/shop' });
  beforeAll(() => based.start());
  afterAll(() => based.stop());

  test('9.3 a superseded endpoint without a sunset returns its deprecation date and its successor under {base_url}', async () => {
    const { headers } = await based.rest('GET', V1);
    expect(versionHeaders(headers)).toEqual({
      deprecation: '@1801353600',
      sunset: null,
      link: `<${PUBLIC_URL}/shop${V2}>; rel="successor-version"`,
    });
    const product = await based.rest('GET', '/api/v1/shop/product/1');
    expect(versionHeaders(product.headers)).toMatchObject({
      link: `<${PUBLIC_URL}/shop/graphql>; rel="successor-version"`,
    });
  });
});

function versionHeaders(headers: Headers): Record<string, string | null> {
  return {
    deprecation: headers.get('deprecation'),
    sunset: headers.get('sunset'),
    link: headers.get('link'),
  };
}
