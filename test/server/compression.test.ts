import { describe, expect, test } from '../support/jest.ts';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { register } from 'prom-client';
import {
  CompressedForms,
  MAX_UNCOMPRESSED_BYTES,
  MAX_CONCURRENT,
} from '../../src/http/compression.ts';
import { ResponseCache, type CachedResponse } from '../../src/http/response-cache.ts';
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

async function compressions(coding = 'gzip'): Promise<number> {
  const { values = [] } =
    (await register.getSingleMetric('shopfront_compressions_total')?.get()) ?? {};
  return values.find(({ labels }) => labels['coding'] === coding)?.value ?? 0;
}

describe('the coding of a response is the one that the client prefers', () => {
  test.each<[string | undefined, string | undefined]>([
    [undefined, undefined],
    ['', undefined],
    ['gzip', 'gzip'],
    ['GZIP', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate', 'gzip'],
    ['gzip, deflate, br, zstd', 'br'],
    ['gzip, br;q=0.9', 'gzip'],
    ['br;q=0.2, gzip;q=0.1', 'br'],
    ['*', 'br'],
    ['br;q=0, *', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=0, br;q=0, *', undefined],
    ['*;q=0', undefined],
    ['identity', undefined],
    ['identity, gzip;q=0.5', undefined],
    ['identity;q=0.5, gzip', 'gzip'],
    ['identity;q=0, gzip', 'gzip'],
    // No coding is acceptable, and a response is more useful than 406.
    ['identity;q=0', undefined],
    ['deflate', undefined],
    ['compress, zstd', undefined],
    [';;;q=,', undefined],
    [`gzip${', x'.repeat(65)}`, 'gzip'],
    // A header longer than any client sends is ignored.
    [`gzip${', x'.repeat(70)}`, undefined],
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
    ['a page by GraphQL with GET', GRAPHQL],
    ['the description of REST', '/openapi.json'],
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

  test.each(['/', '/graphiql', '/graphql'])('the page %s', async (path) => {
    const got = await accepting(coding, path, { headers: { Accept: 'text/html' } });
    expect([got.headers['content-encoding'], got.headers['vary']]).toEqual([
      coding,
      'Accept-Encoding',
    ]);
    expect(got.text).toMatch(/^<!doctype html>[^]*<\/html>\n$/);
  });

  test('streamed lists of the caller', async () => {
    const ada = await shop.makeUser({ username: 'ada' });
    for (let entry = 0; entry < 3; entry++)
      await shop.makeEntry(ada, { body: 'Word. '.repeat(500) });
    await shop.makeItem(ada);
    const headers = { Authorization: `Bearer ${shop.tokenOf(ada)}` };
    for (const path of ['/blog', '/users/me/items/']) {
      const plain = await receive(path, { headers });
      const got = await accepting(coding, path, { headers });
      expect([got.headers['content-encoding'], got.headers['vary'], got.text]).toEqual([
        coding,
        'Accept-Encoding',
        plain.text,
      ]);
    }
  });

  test('the ETag of any coding gets 304', async () => {
    await shop.makeProducts(ENOUGH);
    for (const path of [PAGE, GRAPHQL, LIST, '/openapi.json']) {
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

  test('HEAD has the headers of GET, but those of a coding (RFC 9110, 9.3.2)', async () => {
    await shop.makeProducts(ENOUGH);
    for (const path of [PAGE, GRAPHQL, LIST, '/openapi.json', `/assets/${longAsset}`]) {
      const shown = ({ status, headers }: Got) => [
        path,
        status,
        headers.etag,
        headers['vary'],
        headers['content-type'],
      ];
      const head = await accepting(coding, path, { method: 'HEAD' });
      expect(head.bytes).toHaveLength(0);
      expect(shown(head)).toEqual(shown(await accepting(coding, path)));
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

  test('GraphQL: any other mutation, whatever it returns', async () => {
    const ada = await shop.makeUser({ username: 'ada', scopes: ['blog:write'] });
    const headers = { Authorization: `Bearer ${shop.tokenOf(ada)}` };
    const create = `mutation { createBlogEntry(input: { title: "Words", body: "${'word '.repeat(500)}" }) { body } }`;
    expectPlain(await accepting('gzip', '/graphql', post(create, headers)));
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

describe('cached responses', () => {
  test.each<[string, string, Sent]>([
    ['REST', PAGE, {}],
    ['GraphQL', '/graphql', post(QUERY)],
  ])('are compressed once for equal requests, until a change: %s', async (_api, path, sent) => {
    await shop.makeProducts(ENOUGH);
    const read = (): Promise<Got> => accepting('gzip', path, sent);
    // The second response is cached.
    await read();
    await read();
    const before = await compressions();
    for (let time = 0; time < 5; time++) await read();
    expect((await compressions()) - before).toBe(0);
    await shop.makeProduct({ name: 'The new one' });
    const [first, ...others] = await Promise.all(Array.from({ length: 10 }, read));
    expect(first?.text).toContain('The new one');
    for (const other of others) expect(other.bytes).toEqual(first?.bytes);
    expect((await compressions()) - before).toBe(1);
    await accepting('br', path, sent);
    expect((await compressions('br')) > 0 && (await compressions()) - before).toBe(1);
  });

  test('are not compressed for clients without Accept-Encoding', async () => {
    await shop.makeProducts(ENOUGH);
    const before = [await compressions(), await compressions('br')];
    for (let time = 0; time < 4; time++) await receive(PAGE);
    expect([await compressions(), await compressions('br')]).toEqual(before);
  });
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

  test.each(['br', 'gzip'])(
    'are read as fast as the client takes them, and abort on a failure: %s',
    async (coding) => {
      await stock();
      const reading = await begin(coding);
      expect(reading.headers['content-encoding']).toBe(coding);
      await shop.sql('alter table blog_entry rename to blog_entry_away');
      const bytes = buffer(reading);
      await expect(
        bytes.finally(() => shop.sql('alter table blog_entry_away rename to blog_entry')),
      ).rejects.toThrow('aborted');
      await until(() => shop.logged.some((line) => line.includes('"end":"broken"')));
    },
  );

  test('are not compressed above MAX_CONCURRENT, and a client that disconnects frees a place', async () => {
    await stock();
    const skipped = await compressions('none');
    const left: IncomingMessage[] = [];
    // Earlier streams may still be compressing after their clients have disconnected.
    await until(async () => {
      const reading = await begin('gzip');
      if (reading.headers['content-encoding'] === 'gzip') left.push(reading);
      else reading.destroy();
      return left.length === MAX_CONCURRENT;
    });
    const next = await begin('gzip');
    expect([next.headers['content-encoding'], next.headers['vary']]).toEqual([
      undefined,
      left[0]?.headers['vary'],
    ]);
    expect(await compressions('none')).toBeGreaterThan(skipped);
    next.destroy();
    for (const reading of left) reading.destroy();
    await until(async () => {
      const again = await begin('gzip');
      again.destroy();
      return again.headers['content-encoding'] === 'gzip';
    });
    // A late cancellation reaches the next statement on its connection, which may be another
    // reader's (57014).
    const errors = shop.logged.filter(
      (line) => (JSON.parse(line) as { level: number }).level >= 50,
    );
    expect(errors.filter((line) => !line.includes('"57014"'))).toEqual([]);
  });
});

test('a stored form takes no more memory than its bytes, and counts with them', async () => {
  let grown = 0;
  const forms = new CompressedForms('words '.repeat(500), () => grown++);
  const made = await Promise.all([forms.of('gzip'), forms.of('br'), forms.of('gzip')]);
  for (const form of made) expect(form?.buffer.byteLength).toBe(form?.length);
  expect(forms.bytes).toBeGreaterThan((made[0]?.length ?? 0) + (made[1]?.length ?? 0));
  expect(grown).toBe(2);
});

test('the response cache measures compressed forms', async () => {
  const answers = new ResponseCache();
  const measured = () =>
    (Reflect.get(answers, 'entries') as { calculatedSize: number }).calculatedSize;
  const ctx = shop.context();
  const made: CachedResponse = { body: 'words '.repeat(500) };
  const answered = () => answers.getOrMake(ctx, 'key', 'product_row_count', async () => made);
  await answered();
  const { forms } = await answered();
  for (const coding of ['gzip', 'br'] as const) {
    const before = measured();
    const form = await forms?.of(coding);
    expect(measured() - before).toBeGreaterThanOrEqual(form?.length ?? Infinity);
  }
});

const assets = readdirSync('dist/web/assets').filter(
  (name) => readFileSync(`dist/web/assets/${name}`).length > 0,
);
const longAsset = assets.find((name) => /^docs-.*\.css$/.test(name)) ?? '';

describe('files of the pages', () => {
  test.each(['br', 'gzip'])(
    'longer than 1 KB have been compressed by the build, and keep their content type: %s',
    async (coding) => {
      for (const name of assets) {
        const file = readFileSync(`dist/web/assets/${name}`);
        const plain = await receive(`/assets/${name}`);
        const got = await accepting(coding, `/assets/${name}`);
        const expected =
          file.length > MAX_UNCOMPRESSED_BYTES
            ? [coding, 'Accept-Encoding']
            : [undefined, undefined];
        expect([name, got.status, got.headers['content-encoding'], got.headers['vary']]).toEqual([
          name,
          200,
          ...expected,
        ]);
        expect(got.headers['content-type']).toBe(plain.headers['content-type']);
        expect(got.headers['cache-control']).toBe('public, max-age=31536000, immutable');
        expect(got.headers['content-length']).toBe(String(got.bytes.length));
        expect(plain.headers['vary']).toBe(got.headers['vary']);
        expect(got.text === file.toString() && plain.bytes.equals(file)).toBe(true);
      }
    },
  );

  test('an error for one has no coding', async () => {
    const got = await accepting('br', `/assets/${longAsset}`, {
      headers: { 'If-Match': '"another"' },
    });
    expect([got.status, got.headers['content-encoding']]).toEqual([412, undefined]);
    expect(JSON.parse(got.text)).toEqual({ detail: 'The file does not match the precondition' });
  });

  test('have an ETag for each coding, which gets 304', async () => {
    const tags = new Set<string | undefined>();
    for (const coding of ['br', 'gzip', undefined]) {
      const { headers } = await accepting(coding, `/assets/${longAsset}`);
      tags.add(headers.etag);
      const got = await accepting(coding, `/assets/${longAsset}`, {
        headers: { 'If-None-Match': headers.etag },
      });
      expect([
        got.status,
        got.headers.etag,
        got.headers['vary'],
        got.headers['content-encoding'],
      ]).toEqual([304, headers.etag, 'Accept-Encoding', undefined]);
    }
    expect(tags.size).toBe(3);
  });

  test('cost no compression', async () => {
    const before = [await compressions(), await compressions('br')];
    for (const coding of ['br', 'gzip']) await accepting(coding, `/assets/${longAsset}`);
    expect([await compressions(), await compressions('br')]).toEqual(before);
  });

  test('have one name: no compressed file can be requested alone', async () => {
    for (const path of [
      `/br/assets/${longAsset}`,
      `/assets/br/${longAsset}`,
      `/assets/${longAsset}.br`,
      `/assets/${longAsset}.gz`,
    ])
      expect([path, (await receive(path)).status]).toEqual([path, 404]);
  });
});

test('no range of a compressed response can be requested', async () => {
  await shop.makeProducts(ENOUGH);
  for (const path of [PAGE, `/assets/${longAsset}`]) {
    const got = await accepting('gzip', path, { headers: { Range: 'bytes=0-9' } });
    expect([got.status, got.headers['accept-ranges'], got.headers['content-range']]).toEqual([
      200,
      undefined,
      undefined,
    ]);
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
