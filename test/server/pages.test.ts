import { describe, expect, test } from '../support/jest.ts';
import { readdir } from 'node:fs/promises';
import { useShop, type Shop } from '../support/shop.ts';

// Each page has a nonce of its own, so no two are the same.
const shop = useShop();

const PAGES = ['/', '/graphiql', '/docs', '/usage', '/graphql'];
const assets = (await readdir('dist/web/assets')).toSorted();
const script = assets.find((name) => name.startsWith('home-') && name.endsWith('.js')) ?? '';

function browse(from: Shop, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(from.url + path, {
    ...init,
    headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' },
  });
}

describe.each(PAGES)('%s', (path) => {
  test('is an HTML page with no-store', async () => {
    const answer = await browse(shop, path);
    expect([
      answer.status,
      answer.headers.get('Content-Type'),
      answer.headers.get('Cache-Control'),
    ]).toEqual([200, 'text/html; charset=utf-8', 'no-store']);
    expect(await answer.text()).toMatch(/^<!doctype html>\n<html lang="en">[^]*<\/html>\n$/);
  });

  test('runs only scripts with its nonce, which is different each time', async () => {
    const nonces = new Set<string>();
    for (let time = 0; time < 3; time++) {
      const answer = await browse(shop, path);
      const policy = policyOf(answer);
      const [, nonce = ''] =
        /^'nonce-([A-Za-z0-9+/]{22}==)' 'strict-dynamic'$/.exec(policy['script-src'] ?? '') ?? [];
      expect(nonce).not.toBe('');
      nonces.add(nonce);
      const scripts = [...(await answer.text()).matchAll(/<script[^>]*>/g)].map(([tag]) => tag);
      expect(scripts).toEqual([
        '<script type="application/json" id="settings">',
        expect.stringMatching(
          new RegExp(
            `^<script type="module" nonce="${nonce.replace(/[+/]/g, '\\$&')}" src="/assets/[\\w.-]+\\.js">$`,
          ),
        ),
        ...(path === '/' ? ['<script type="application/json" id="comparisons">'] : []),
      ]);
    }
    expect(nonces.size).toBe(3);
  });

  test('connects only to its own origin, cannot be framed, and posts no form', async () => {
    const {
      'script-src': _scripts,
      'frame-src': frame,
      'style-src': style,
      ...policy
    } = policyOf(await browse(shop, path));
    expect(policy).toMatchObject({
      'default-src': "'none'",
      'connect-src': "'self'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
      'form-action': "'none'",
    });
    expect(Object.values(policy).join(' ')).not.toMatch(/http|\*|unsafe/);
    expect(frame).toBe(path === '/graphql' ? 'https://sandbox.embed.apollographql.com' : undefined);
    // An editor makes its styles as it goes.
    expect(style).toBe(
      path === '/graphiql' || path === '/graphql' ? "'self' 'unsafe-inline'" : "'self'",
    );
  });
});

describe('assets', () => {
  test('are immutable, and an ETag gets 304', async () => {
    const headers = { 'Accept-Encoding': 'identity' };
    const answer = await shop.rest('GET', `/assets/${script}`, { headers });
    expect([
      answer.status,
      answer.headers.get('Content-Type'),
      answer.headers.get('Cache-Control'),
    ]).toEqual([200, 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable']);
    expect(answer.headers.get('Content-Security-Policy')).toMatch(/^default-src 'none'/);
    const etag = answer.headers.get('ETag') ?? '';
    // `fetch` would ignore the 304.
    const getIf = (condition: string) =>
      shop.raw(
        `GET /assets/${script} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${condition}\r\n\r\n`,
      );
    expect(await getIf(`If-None-Match: ${etag}`)).toMatch(/^HTTP\/1\.1 304 [^]*\r\n\r\n$/);
    expect(await getIf('If-None-Match: "another"')).toMatch(/^HTTP\/1\.1 200 /);
    const head = await fetch(`${shop.url}/assets/${script}`, { method: 'HEAD', headers });
    expect([head.status, head.headers.get('Content-Length'), await head.text()]).toEqual([
      200,
      String(Buffer.byteLength(answer.text)),
      '',
    ]);
  });

  // A range that is unsatisfiable in one coding could be answered in another.
  test('have no ranges, compressed or not', async () => {
    for (const coding of ['br', 'gzip', 'identity']) {
      const headers = { 'Accept-Encoding': coding, Range: 'bytes=20000000-' };
      const answer = await shop.rest('GET', `/assets/${script}`, { headers });
      expect([answer.status, answer.headers.get('Accept-Ranges')]).toEqual([200, null]);
    }
  });

  test('conditions and ranges that cannot be met are 412 and 416', async () => {
    const statusOf = async (path: string, headers: Record<string, string>) =>
      (await shop.rest('GET', path, { headers })).status;
    for (const path of ['/favicon.ico', `/assets/${script}`])
      expect(await statusOf(path, { 'If-Match': '"another"' })).toBe(412);
    expect(await statusOf('/favicon.ico', { Range: 'bytes=20000000-' })).toBe(416);
    expect(shop.logged.filter((line) => line.includes('Request failed'))).toEqual([]);
  });

  test.each([
    'unknown.js',
    '',
    '..%2fmanifest.json',
    '..%2f..%2f..%2fpackage.json',
    `${script}%00`,
  ])('expose no other file: /assets/%s is 404', async (name) => {
    // `fetch` would normalize the path.
    const answer = await shop.raw(
      `GET /assets/${name} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 404 [^]*\{"detail":"Not found"\}$/);
  });
});

test('with a database server, no page names demo users', async () => {
  for (const path of PAGES) {
    const text = await (await browse(shop, path)).text();
    expect(text).toContain('"demoUsers":[]');
    expect(text).not.toMatch(/alice|demo-1/);
  }
});

describe('under a BASE_PATH, with a PUBLIC_URL that contains markup', () => {
  const based = useShop({
    BASE_PATH: '/shop',
    PUBLIC_URL: `https://shop.example/'"><script>evil()</script>`,
  });

  test('every URL in a page is below BASE_PATH', async () => {
    for (const path of PAGES) {
      const text = await (await browse(based, path)).text();
      const addresses = [...text.matchAll(/ (?:src|href)="([^"]+)"/g)].map(
        ([, address = '']) => address,
      );
      for (const address of addresses) expect(address).toMatch(/^(\/shop\/|#)/);
      expect(text).toContain('{"base":"/shop"');
    }
    expect((await fetch(`${based.url.replace(/\/shop$/, '')}/`)).status).toBe(404);
  });
});

function policyOf(answer: Response): Record<string, string> {
  const directives = (answer.headers.get('Content-Security-Policy') ?? '').split('; ');
  return Object.fromEntries(
    directives.map((directive) => [
      directive.split(' ', 1)[0],
      directive.slice(directive.indexOf(' ') + 1),
    ]),
  );
}
