import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startNginx, type Nginx } from '../support/nginx.ts';
import { PASSWORD, useShop, type Shop } from '../support/shop.ts';

// Long enough for tokens that nginx would compress.
const JWT_ISSUER = `https://issuer.example/${'x'.repeat(1_024)}`;

const PAGE = '/api/v2/shop/products?limit=100';
const GZIP = { 'Accept-Encoding': 'gzip' };

describe('in front of instances that compress, nginx', () => {
  const shop = useShop({ JWT_ISSUER });
  const nginx = behindNginx(shop);

  test('passes on compressed responses', async () => {
    await shop.makeProducts(20);
    const body = JSON.stringify({
      query: '{ products(first: 100) { nodes { pk name barcode price } } }',
    });
    const requests: [string, RequestInit][] = [
      [PAGE, {}],
      ['/api/v1/shop/products', {}],
      ['/graphql', { method: 'POST', body, headers: { 'Content-Type': 'application/json' } }],
    ];
    for (const [path, init] of requests) {
      const request = (url: string, coding: string) =>
        fetch(url + path, { ...init, headers: { ...init.headers, 'Accept-Encoding': coding } });
      const plain = await (await request(shop.url, 'identity')).text();
      for (const coding of ['br', 'gzip']) {
        const answer = await request(nginx().url, coding);
        expect([path, answer.headers.get('content-encoding'), await answer.text()]).toEqual([
          path,
          coding,
          plain,
        ]);
        expect(answer.headers.get('vary')).toContain('Accept-Encoding');
      }
    }
  });

  test('compresses no credentials', () => expectCredentialsPlain(shop, nginx()));
});

describe('in front of instances with COMPRESSION=off, nginx', () => {
  const shop = useShop({ JWT_ISSUER, COMPRESSION: 'off' });
  const nginx = behindNginx(shop);

  test('compresses responses of more than 1 KB, and sets Vary', async () => {
    await shop.makeProducts(20);
    for (const path of [PAGE, '/api/v1/shop/products', '/openapi.json', '/']) {
      const answer = await fetch(nginx().url + path, { headers: GZIP });
      expect([path, answer.headers.get('content-encoding')]).toEqual([path, 'gzip']);
      expect(answer.headers.get('vary')).toContain('Accept-Encoding');
    }
    const short = await fetch(`${nginx().url}/livez`, { headers: GZIP });
    expect(short.headers.get('content-encoding')).toBeNull();
  });

  test('returns 304 for the ETag of a compressed response', async () => {
    await shop.makeProducts(20);
    const tag = String((await fetch(nginx().url + PAGE, { headers: GZIP })).headers.get('etag'));
    expect(
      (await fetch(nginx().url + PAGE, { headers: { ...GZIP, 'If-None-Match': tag } })).status,
    ).toBe(304);
  });

  test('compresses no credentials', () => expectCredentialsPlain(shop, nginx()));
});

describe('with the lines of docs/migrate.md for the removal of a version, nginx', () => {
  const shop = useShop();
  const nginx = behindNginx(shop, async () => {
    const document = await readFile('docs/migrate.md', 'utf8');
    return /^```nginx\n(.*?)^```/ms.exec(document)?.[1] ?? '';
  });

  test.each([
    ['GET', '/api/v1/'],
    ['GET', '/api/v1/shop/products'],
    ['GET', '/api/v1/shop/product/7?x=y'],
    ['POST', '/api/v1/shop/product/'],
    ['GET', '/api/v1/login'],
  ])('responds 410 with the successor: %s %s', async (method, path) => {
    const answer = await fetch(nginx().url + path, { method });
    const { headers } = answer;
    expect([answer.status, await answer.json()]).toEqual([
      410,
      { detail: 'Version 1 of the REST API has been removed. Use the GraphQL API.' },
    ]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/json',
      'access-control-allow-origin': '*',
      link: `<${nginx().url}/graphql>; rel="successor-version"`,
    });
  });

  test('forwards other paths', async () => {
    const { status } = await fetch(`${nginx().url}/graphql?query={me{username}}`);
    expect(status).toBe(200);
    for (const path of [PAGE, '/api/v10/', '/livez'])
      expect([path, (await fetch(nginx().url + path)).status]).toEqual([
        path,
        path === '/api/v10/' ? 404 : 200,
      ]);
  });
});

async function expectCredentialsPlain(shop: Shop, { url }: Nginx): Promise<void> {
  await shop.makeUser({ username: 'ada' });
  const form = new URLSearchParams({ username: 'ada', password: PASSWORD });
  const query = `mutation { login(username: "ada", password: "${PASSWORD}") { accessToken } }`;
  const requests: [string, RequestInit][] = [
    ['/token', { body: form }],
    ['/login/', { body: form }],
    [
      '/graphql',
      { body: JSON.stringify({ query }), headers: { 'Content-Type': 'application/json' } },
    ],
  ];
  for (const [path, init] of requests) {
    const answer = await fetch(url + path, {
      ...init,
      method: 'POST',
      headers: { ...init.headers, ...GZIP },
    });
    const text = await answer.text();
    expect([path, answer.status, answer.headers.get('content-encoding')]).toEqual([
      path,
      200,
      null,
    ]);
    expect(text.length).toBeGreaterThan(1_024);
  }
}

function behindNginx(shop: Shop, directives = async () => ''): () => Nginx {
  let directory = '';
  let nginx: Nginx | undefined;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shopfront-nginx-'));
    nginx = await startNginx(directory, [shop.port], await directives());
  });
  afterAll(async () => {
    await nginx?.stop();
    await rm(directory, { recursive: true, force: true });
  });
  return () => {
    if (!nginx) throw new Error('nginx is not running');
    return nginx;
  };
}
