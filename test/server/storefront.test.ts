import { describe, expect, test } from '../support/jest.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { readConfig } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const PATHS = ['/shop', '/shop/', '/shop/blog', '/shop/products/1', '/shop/blog/x/edit'];
const assets = readdirSync('dist/storefront/assets');

describe('the storefront', () => {
  const shop = useShop({}, { servesStorefront: true });

  test('is one page for all of its paths, with scripts by nonce and its own origin only', async () => {
    for (const path of PATHS) {
      const answer = await fetch(shop.url + path, { headers: HTML });
      expect([
        path,
        answer.status,
        answer.headers.get('Content-Type'),
        answer.headers.get('Cache-Control'),
      ]).toEqual([path, 200, 'text/html; charset=utf-8', 'no-store']);
      expect(answer.headers.get('Content-Security-Policy')).toMatch(
        /^default-src 'none'; script-src 'nonce-[A-Za-z0-9+/]{22}==' 'strict-dynamic'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'$/,
      );
      const text = await answer.text();
      expect(text.match(/<script[^>]*>/g)).toEqual([
        '<script type="application/json" id="settings">',
        expect.stringMatching(
          /^<script type="module" nonce="[^"]+" src="\/shop\/assets\/main-[\w-]+\.js">$/,
        ),
      ]);
      expect(text).not.toContain('class="bar"');
    }
  });

  test('has immutable files, compressed as the client accepts', async () => {
    for (const name of assets) {
      const answer = await fetch(`${shop.url}/shop/assets/${name}`, {
        headers: { 'Accept-Encoding': 'br' },
      });
      const plain = readFileSync(`dist/storefront/assets/${name}`);
      expect([
        name,
        answer.status,
        answer.headers.get('Content-Type'),
        answer.headers.get('Cache-Control'),
        answer.headers.get('Content-Encoding'),
      ]).toEqual([
        name,
        200,
        `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`,
        'public, max-age=31536000, immutable',
        plain.length > 1_024 ? 'br' : null,
      ]);
      expect(await answer.text()).toBe(plain.toString());
    }
  });

  test.each([
    '/shop/assets/unknown.js',
    '/shop/assets/..%2fmanifest.json',
    `/assets/${assets[0]}`,
    '/shop/a/b/c/d',
    '/shopping',
  ])('exposes no other file, and has no other path: %s is 404', async (path) => {
    expect(
      await shop.raw(`GET ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`),
    ).toMatch(/^HTTP\/1\.1 404 [^]*\{"detail":"Not found"\}$/);
  });
});

describe('with a database server', () => {
  const shop = useShop({ GRAPHQL_EXPLORER: 'true' });

  test.each([...PATHS, `/shop/assets/${assets[0]}`])(
    'there is no storefront, even with GRAPHQL_EXPLORER: %s is 404',
    async (path) => {
      expect(await shop.rest('GET', path, { headers: HTML })).toMatchObject({
        status: 404,
        body: { detail: 'Not found' },
      });
    },
  );
});

test.each<[string, Record<string, string>, boolean, string | undefined]>([
  ['on the embedded default', {}, true, 'http://127.0.0.1:4000/shop'],
  [
    'under the PUBLIC_URL and BASE_PATH',
    { PUBLIC_URL: 'https://shop.example', BASE_PATH: '/base' },
    true,
    'https://shop.example/base/shop',
  ],
  ['with an ACCOUNT_URL', { ACCOUNT_URL: 'https://a.example/me' }, true, 'https://a.example/me'],
  ['without the pages', { GRAPHQL_EXPLORER: 'false' }, false, undefined],
  [
    'with a database server',
    { DATABASE_URL: 'postgresql://user@db.example/shop', GRAPHQL_EXPLORER: 'true' },
    false,
    undefined,
  ],
])(
  'whether the storefront is served, and the page that mails link to: %s',
  (_where, settings, servesStorefront, accountUrl) => {
    const config = readConfig({ SIGNING_SECRET: TEST_SECRET, ...settings }, () => undefined);
    expect(config).toMatchObject({ servesStorefront, accountUrl });
  },
);
