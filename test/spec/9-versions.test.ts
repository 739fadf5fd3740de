import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { PASSWORD, PUBLIC_URL, Shop, useShop } from '../support/shop.ts';

const shop = useShop();
const deprecating = new Shop({ V1_DEPRECATED_ON: '2027-01-31', V1_SUNSET_ON: '2027-12-31' });
beforeAll(() => deprecating.start());
afterAll(() => deprecating.stop());

const V1 = '/api/v1/shop/products';
const V2 = '/api/v2/shop/products';
const SUCCESSOR = `<${PUBLIC_URL}${V2}>; rel="successor-version"`;

// The version is part of the path

test.each(['/api/shop/products', '/api/v0/shop/products', '/api/v3/shop/products', '/api/V1/shop/products', '/shop/products'])(
  '9.1 the version is part of the path: there is no %s',
  async (path) => {
    const answer = await shop.rest('GET', path);
    expect(answer.status).toBe(404);
  },
);

test('9.1 no header chooses another version', async () => {
  const answer = await shop.rest('GET', V1, { headers: { Accept: 'application/json; version=v2', 'API-Version': '2' } });
  expect(answer.body).toEqual([]);
});

// What each version carries

test('9.2 the first version carries the catalogue without pagination: page, limit and offset are not read', async () => {
  const made = await shop.makeProducts(12);
  const answer = await shop.rest('GET', `${V1}?page=2&limit=x&offset=-1`);
  expect(answer.status).toBe(200);
  expect(answer.body).toHaveLength(made.length);
  expect(answer.headers.get('link')).toBeNull();
});

test('9.2 the second version carries the paginated listing', async () => {
  await shop.makeProducts(12);
  const { body } = await shop.rest('GET', V2);
  expect(body.items).toHaveLength(10);
});

test('9.2 the second version carries the session login, the first does not', async () => {
  const { username } = await shop.makeUser();
  const query = `username=${username}&password=${encodeURIComponent(PASSWORD)}`;
  const first = await shop.rest('GET', `/api/v1/auth/login?${query}`);
  const second = await shop.rest('GET', `/api/v2/auth/login?${query}`);
  expect([first.status, second.status]).toEqual([404, 200]);
  expect(second.body).toEqual({ session_key: expect.any(String) });
});

// Deprecation

test('9.3 a superseded endpoint says since when, until when, and what took over', async () => {
  const answer = await deprecating.rest('GET', V1);
  expect(answer.status).toBe(200);
  expect(saidBy(answer.headers)).toEqual({ deprecation: '@1801353600', sunset: 'Fri, 31 Dec 2027 00:00:00 GMT', link: SUCCESSOR });
});

test('9.3 a superseded endpoint works on as it did', async () => {
  await shop.makeProducts(3);
  const before = await shop.rest('GET', V1);
  const answer = await deprecating.rest('GET', V1);
  expect(answer.text).toBe(before.text);
});

test.each([`${V1}/`, `${V1}?x=1`])('9.3 a superseded endpoint says so at %s, too', async (path) => {
  const answer = await deprecating.rest('GET', path);
  expect(saidBy(answer.headers)).toMatchObject({ deprecation: '@1801353600', link: SUCCESSOR });
});

test('9.3 HEAD of a superseded endpoint says so, too', async () => {
  const answer = await deprecating.rest('HEAD', V1);
  expect(saidBy(answer.headers)).toEqual({ deprecation: '@1801353600', sunset: 'Fri, 31 Dec 2027 00:00:00 GMT', link: SUCCESSOR });
});

test('9.3 what took over is there', async () => {
  const { headers } = await deprecating.rest('GET', V1);
  const [, url = ''] = /^<([^>]+)>/.exec(headers.get('link') ?? '') ?? [];
  expect(url.startsWith(PUBLIC_URL)).toBe(true);
  expect(await deprecating.rest('GET', url.slice(PUBLIC_URL.length))).toMatchObject({ status: 200, body: { items: [], count: 0 } });
});

test('9.3 nothing is said at endpoints that nothing took over', async () => {
  const { pk } = await shop.makeProduct();
  const as = await shop.makeUser({ password: null, scopes: ['products:write'] });
  const answers = [
    await deprecating.rest('GET', V2),
    await deprecating.rest('GET', `/api/v1/shop/product/${pk}`),
    await deprecating.rest('POST', '/api/v1/shop/product/', { as, json: { name: 'Tray', barcode: '4006381333931', price: 1 } }),
    await deprecating.rest('GET', '/users/me/', { as }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 201, 200]);
  for (const { headers } of answers) expect(saidBy(headers)).toEqual({ deprecation: null, sunset: null, link: null });
});

test('9.3 nothing is said where the configuration names no date', async () => {
  const { headers } = await shop.rest('GET', V1);
  expect(saidBy(headers)).toEqual({ deprecation: null, sunset: null, link: null });
});

describe('with V1_DEPRECATED_ON alone, under BASE_PATH', () => {
  const based = new Shop({ V1_DEPRECATED_ON: '2027-01-31', BASE_PATH: '/shop' });
  beforeAll(() => based.start());
  afterAll(() => based.stop());

  test('9.3 a superseded endpoint without an end says since when, and what took over under {base_url}', async () => {
    const { headers } = await based.rest('GET', V1);
    expect(saidBy(headers)).toEqual({
      deprecation: '@1801353600',
      sunset: null,
      link: `<${PUBLIC_URL}/shop${V2}>; rel="successor-version"`,
    });
  });
});

function saidBy(headers: Headers): Record<string, string | null> {
  return { deprecation: headers.get('deprecation'), sunset: headers.get('sunset'), link: headers.get('link') };
}

test('9 a call to a superseded path is an event in the log, with the client and the user, so that an operator can see who is left', async () => {
  const user = await shop.makeUser();
  await shop.rest('GET', '/api/v1/shop/products', { as: user, headers: { 'User-Agent': 'old-client/1' } });
  await shop.rest('GET', '/api/v2/shop/products', { as: user, headers: { 'User-Agent': 'new-client/1' } });
  const events = shop.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ event }) => event === 'legacy.call');
  expect(events).toEqual([expect.objectContaining({ row: 'GET /api/v1/shop/products', userAgent: 'old-client/1', user: user.username })]);
});
