import { describe, expect, test } from '../support/jest.ts';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { MAX_UNCOMPRESSED_BYTES } from '../../src/http/responses.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Shop } from '../support/shop.ts';
import { until } from '../support/until.ts';

// A long issuer makes tokens longer than the minimum for compression.
const shop = useShop({
  JWT_ISSUER: `https://issuer.example/${'x'.repeat(MAX_UNCOMPRESSED_BYTES)}`,
});

const PAGE = '/api/v2/shop/products?limit=100';
const LIST = '/api/v1/shop/products';
const QUERY = '{ products(first: 100) { nodes { pk name barcode price createdAt } } }';
const GRAPHQL = `/graphql?query=${encodeURIComponent(QUERY)}`;
const ENOUGH = 20;
/** What urllib3, undici and browsers send. */
const CLIENTS = ['gzip, deflate', 'gzip, deflate, br, zstd'];

interface Sent {
  method?: string;
  headers?: OutgoingHttpHeaders;
  body?: string;
}

interface Got {
  status: number | undefined;
  headers: IncomingMessage['headers'];
  /** As they were received. */
  bytes: Buffer;
  text: string;
}

// `fetch` accepts gzip automatically, and returns decompressed bodies.
async function open(
  path: string,
  { method = 'GET', headers = {}, body }: Sent = {},
  at: Shop = shop,
): Promise<IncomingMessage> {
  const outgoing = request(at.url + path, { method, headers, agent: false }).end(body);
  const [res] = (await once(outgoing, 'response')) as [IncomingMessage];
  return res;
}

async function receive(path: string, sent: Sent = {}, at: Shop = shop): Promise<Got> {
  const res = await open(path, sent, at);
  const bytes = await buffer(res);
  return {
    status: res.statusCode,
    headers: res.headers,
    bytes,
    text: decompressed(bytes, res.headers['content-encoding']),
  };
}

function accepting(
  coding: string | undefined,
  path: string,
  sent: Sent = {},
  at: Shop = shop,
): Promise<Got> {
  return receive(
    path,
    {
      ...sent,
      headers: { ...sent.headers, ...(coding !== undefined && { 'Accept-Encoding': coding }) },
    },
    at,
  );
}

function post(query: string, headers: OutgoingHttpHeaders = {}): Sent {
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify({ query }),
  };
}

function decompressed(bytes: Buffer, coding: string | undefined): string {
  if (bytes.length === 0) return '';
  if (coding === 'br') return brotliDecompressSync(bytes).toString();
  return (coding === 'gzip' ? gunzipSync(bytes) : bytes).toString();
}

describe('the coding of a response is the first of br and gzip that the client accepts', () => {
  test.each<[string | undefined, string | undefined]>([
    [undefined, undefined],
    ['gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0.2, gzip;q=0.1', 'br'],
    ['*', 'br'],
    // No coding is acceptable, and a response is more useful than 406.
    ['identity;q=0', undefined],
    ['compress, zstd', undefined],
  ])('Accept-Encoding: %p gets %p', async (accepted, coding) => {
    await shop.makeProducts(ENOUGH);
    const plain = await receive(PAGE);
    const got = await accepting(accepted, PAGE);
    expect([got.status, got.headers['content-encoding'], got.text]).toEqual([
      200,
      coding,
      plain.text,
    ]);
    expect(got.headers['content-length']).toBe(String(got.bytes.length));
    expect(got.headers['vary']).toBe('Accept-Encoding, Authorization, X-SESSION-ID, X-SESSIONID');
    expect(got.bytes.length < plain.bytes.length).toBe(coding !== undefined);
  });
});

describe.each(['br', 'gzip'])('a response longer than 1 KB is compressed: %s', (coding) => {
  test.each<[string, string, Sent?]>([
    ['a page by REST', PAGE],
    ['a page by GraphQL', '/graphql', post(QUERY)],
    ['the whole list', LIST],
  ])('%s', async (_what, path, sent = {}) => {
    await shop.makeProducts(ENOUGH);
    const plain = await receive(path, sent);
    expect([plain.status, plain.headers['content-encoding']]).toEqual([200, undefined]);
    // Not cached, while it is cached, and from the cache.
    for (let time = 0; time < 4; time++) {
      const got = await accepting(coding, path, sent);
      expect([
        got.status,
        got.headers['content-encoding'],
        got.headers['content-type'],
        got.text,
      ]).toEqual([200, coding, plain.headers['content-type'], plain.text]);
      expect(got.headers['vary']).toBe(plain.headers['vary']);
      expect(got.headers['vary']).toContain('Accept-Encoding');
    }
  });

  test('the ETag of any coding gets 304', async () => {
    await shop.makeProducts(ENOUGH);
    for (const path of [PAGE, GRAPHQL]) {
      const [plain, coded] = [await receive(path), await accepting(coding, path)];
      expect(coded.headers.etag).toMatch(/^W\/"/);
      for (const [accepted, tag] of [
        [coding, coded.headers.etag],
        [coding, plain.headers.etag],
        [undefined, coded.headers.etag],
      ]) {
        const got = await accepting(accepted, path, { headers: { 'If-None-Match': tag } });
        const full = accepted === undefined ? plain : coded;
        expect([got.status, got.bytes.length, got.headers['content-encoding']]).toEqual([
          304,
          0,
          undefined,
        ]);
        expect([got.headers.etag, got.headers['vary']]).toEqual([
          full.headers.etag,
          full.headers['vary'],
        ]);
      }
    }
  });
});

test.each([
  [MAX_UNCOMPRESSED_BYTES, undefined],
  [MAX_UNCOMPRESSED_BYTES + 1, 'gzip'],
])('a response of %i bytes in UTF-8 has the coding %p', async (length, coding) => {
  const cheese = '🧀'.repeat(238);
  const { pk } = await shop.makeProduct({ name: cheese });
  const path = `/api/v1/shop/product/${pk}`;
  const missing = length - (await receive(path)).bytes.length;
  await shop.sql(`update product set name = '${cheese}${'x'.repeat(missing)}'`);
  const plain = await receive(path);
  const got = await accepting('gzip', path);
  expect([plain.bytes.length, got.headers['content-encoding'], got.text]).toEqual([
    length,
    coding,
    plain.text,
  ]);
  expect(got.headers['vary']?.includes('Accept-Encoding')).toBe(coding !== undefined);
});

describe('never compressed', () => {
  test.each(['/token', '/login'])('tokens: POST %s', async (path) => {
    await shop.makeUser({ username: 'ada' });
    const body = new URLSearchParams({
      username: 'ada',
      password: PASSWORD,
      scope: 'offline_access',
    }).toString();
    const form = {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      body,
    };
    for (const accepted of CLIENTS) expectPlain(await accepting(accepted, path, form));
  });

  test('GraphQL: a login, and a refresh', async () => {
    await shop.makeUser({ username: 'ada' });
    const login = `mutation { login(username: "ada", password: "${PASSWORD}") { accessToken refreshToken } }`;
    const first = await accepting('gzip', '/graphql', post(login));
    expectPlain(first);
    const { refreshToken } = JSON.parse(first.text).data.login;
    expectPlain(
      await accepting(
        'gzip',
        '/graphql',
        post(`mutation { refresh(refreshToken: "${refreshToken}") { accessToken } }`),
      ),
    );
  });

  test('errors', async () => {
    const many = Array.from({ length: 10 }, (_, at) => `none${at}${'x'.repeat(600)}`).join(' ');
    const got = await accepting('gzip', '/graphql', post(`{ ${many} }`));
    expect([got.status, got.headers['content-encoding']]).toEqual([400, undefined]);
    expect(got.bytes.length).toBeGreaterThan(MAX_UNCOMPRESSED_BYTES);
  });

  test('events', async () => {
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'text/event-stream',
      'Accept-Encoding': 'gzip, br',
    };
    const res = await open('/graphql', {
      method: 'POST',
      headers,
      body: JSON.stringify({ query: 'subscription { productChanged { product { name } } }' }),
    });
    expect([res.headers['content-type'], res.headers['content-encoding']]).toEqual([
      expect.stringContaining('event-stream'),
      undefined,
    ]);
    res.destroy();
  });

  function expectPlain(got: Got): void {
    expect([got.status, got.headers['content-encoding'], got.headers['vary']]).toEqual([
      200,
      undefined,
      undefined,
    ]);
    expect(got.bytes.length).toBeGreaterThan(MAX_UNCOMPRESSED_BYTES);
  }
});

describe('streams', () => {
  let ada: User;
  // Larger than the buffers of both sockets, however it is compressed.
  const stock = async (): Promise<void> => {
    ada = await shop.makeUser({ username: 'ada' });
    const values = Array.from(
      { length: 140 },
      () => `('Title', '${randomBytes(37_000).toString('base64')}', true, ${ada.pk}, now(), now())`,
    );
    await shop.sql(
      `insert into blog_entry (title, body, published, creator_pk, created_at, updated_at) values ${values.join()}`,
    );
  };
  const begin = (coding: string): Promise<IncomingMessage> =>
    open('/blog', {
      headers: { 'Accept-Encoding': coding, Authorization: `Bearer ${shop.tokenOf(ada)}` },
    });

  test('are read as fast as the client takes them, and abort on a failure', async () => {
    await stock();
    const reading = await begin('gzip');
    expect(reading.headers['content-encoding']).toBe('gzip');
    await shop.sql('alter table blog_entry rename to blog_entry_away');
    const bytes = buffer(reading);
    await expect(
      bytes.finally(() => shop.sql('alter table blog_entry_away rename to blog_entry')),
    ).rejects.toThrow('aborted');
    await until(() => shop.logged.some((line) => line.includes('"end":"broken"')));
    const errors = shop.logged.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
    expect(errors).toMatchObject([{ msg: 'Response interrupted', err: { code: '42P01' } }]);
  });
});

const assets = readdirSync('dist/web/assets').filter(
  (name) => readFileSync(`dist/web/assets/${name}`).length > 0,
);
const longAsset = assets.find((name) => /^docs-.*\.css$/.test(name)) ?? '';

test('files of the pages longer than 1 KB have been compressed by the build, and keep their content type', async () => {
  for (const name of assets) {
    const file = readFileSync(`dist/web/assets/${name}`);
    const plain = await receive(`/assets/${name}`);
    const got = await accepting('br', `/assets/${name}`);
    const coding = file.length > MAX_UNCOMPRESSED_BYTES ? 'br' : undefined;
    expect([name, got.status, got.headers['content-encoding'], got.headers['vary']]).toEqual([
      name,
      200,
      coding,
      'Accept-Encoding',
    ]);
    expect(got.headers['content-type']).toBe(plain.headers['content-type']);
    expect(got.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(got.headers['content-length']).toBe(String(got.bytes.length));
    expect(plain.headers['vary']).toBe(got.headers['vary']);
    expect(got.text === file.toString() && plain.bytes.equals(file)).toBe(true);
  }
});

describe('with COMPRESSION=off', () => {
  const plain = useShop({ COMPRESSION: 'off' });

  test('nothing is compressed, and Vary does not name Accept-Encoding', async () => {
    await plain.makeProducts(ENOUGH);
    const paths: [string, Sent?][] = [
      [PAGE],
      ['/graphql', post(QUERY)],
      [LIST],
      ['/openapi.json'],
      ['/', { headers: { Accept: 'text/html' } }],
      [`/assets/${longAsset}`],
    ];
    for (const [path, sent] of paths) {
      const got = await accepting('gzip, br', path, sent, plain);
      expect([path, got.status, got.headers['content-encoding']]).toEqual([path, 200, undefined]);
      expect(got.headers['vary'] ?? '').not.toContain('Accept-Encoding');
    }
  });
});
