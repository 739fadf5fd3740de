import { afterAll, afterEach, beforeAll, describe, expect, test } from '../support/jest.ts';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, getCACertificates, setDefaultCACertificates, type SecureVersion } from 'node:tls';
import { GRAPHQL_LIMIT } from '../../src/http/body.ts';
import { closeStreams, openStream } from '../support/events.ts';
import { startNginx, startTlsNginx, type Nginx } from '../support/nginx.ts';
import { PASSWORD, useShop, type Shop } from '../support/shop.ts';
import { clientOf, closeSockets } from '../support/sockets.ts';

// Long enough for tokens that nginx would compress.
const JWT_ISSUER = `https://issuer.example/${'x'.repeat(1_024)}`;

const PAGE = '/api/v2/shop/products?limit=100';
const GZIP = { 'Accept-Encoding': 'gzip' };
const HSTS = 'max-age=31536000';

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

  test('compresses no credentials', () => expectCredentialsPlain(shop, nginx()));
});

describe('with the lines of docs/migrate.md for the removal of a version, nginx', () => {
  const shop = useShop();
  const nginx = running(async (directory) => {
    const document = await readFile('docs/migrate.md', 'utf8');
    const lines = /^```nginx\n(.*?)^```/ms.exec(document)?.[1] ?? '';
    return startNginx(directory, [shop.port], lines);
  });

  test.each([
    ['GET', '/api/v1/shop/products'],
    ['POST', '/api/v1/shop/product/'],
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

describe('deploy/nginx/shopfront.conf', () => {
  const shop = useShop({ TRUST_PROXY: '127.0.0.1' });
  const trusted = getCACertificates('default');
  const nginx = running((directory) => startTlsNginx(directory, [shop.port]));
  const SUBSCRIPTION = 'subscription { productChanged { kind } }';

  beforeAll(() => setDefaultCACertificates([...trusted, nginx().certificate]));
  afterAll(() => setDefaultCACertificates(trusted));
  afterEach(() => {
    closeStreams();
    closeSockets();
  });

  test('rejects plain HTTP with 403, without a redirect', async () => {
    const answer = await fetch(`${nginx().plainUrl}/api/v2/shop/products?limit=1`, {
      redirect: 'manual',
    });
    expect([answer.status, answer.headers.get('content-type'), await answer.json()]).toEqual([
      403,
      'application/json',
      { detail: 'Use HTTPS.' },
    ]);
  });

  test('serves with TLS 1.2 and 1.3, one HSTS header, and HTTP/2', async () => {
    expect(await tlsWith('TLSv1.3')).toEqual(['TLSv1.3', 'h2']);
    expect(await tlsWith('TLSv1.2')).toEqual(['TLSv1.2', 'h2']);
    const answer = await fetch(nginx().url + PAGE);
    expect([answer.status, answer.headers.get('strict-transport-security')]).toEqual([200, HSTS]);
  });

  test('forwards the largest accepted body, and rejects much larger ones itself', async () => {
    const post = async (length: number) => {
      const answer = await fetch(`${nginx().url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ query: '{ __typename }' }).padEnd(length),
      });
      return [answer.status, answer.headers.get('content-type')?.split(';')[0]];
    };
    expect(await post(GRAPHQL_LIMIT)).toEqual([200, 'application/json']);
    expect(await post(GRAPHQL_LIMIT + 1)).toEqual([413, 'application/json']);
    expect(await post(128 * 1_024 + 1)).toEqual([413, 'application/json']);
  });

  test('forwards events at once, as event stream and by WebSocket', async () => {
    const stream = await openStream(`${nginx().url}/graphql`, {
      method: 'POST',
      headers: { Accept: 'text/event-stream', 'Content-Type': 'application/json' },
      body: JSON.stringify({ query: SUBSCRIPTION }),
    });
    const url = `${nginx().url.replace(/^http/, 'ws')}/graphql`;
    const socket = clientOf(shop, { url }).iterate({ query: SUBSCRIPTION });
    const received = socket.next().catch((cause: unknown) => {
      throw new Error('The WebSocket failed', { cause });
    });
    const event = { data: { productChanged: { kind: 'CREATED' } } };
    const repeat = setInterval(() => void shop.makeProduct(), 200);
    try {
      const [streamed, { value }] = await Promise.all([stream.next(), received]);
      expect([streamed?.data, value]).toEqual([event, event]);
    } finally {
      clearInterval(repeat);
    }
  }, 20_000);

  async function tlsWith(version: SecureVersion): Promise<[string | null, unknown]> {
    const socket = connect({
      port: Number(new URL(nginx().url).port),
      host: '127.0.0.1',
      minVersion: version,
      maxVersion: version,
      // Otherwise, OpenSSL itself offers no old version.
      ciphers: 'DEFAULT@SECLEVEL=0',
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    try {
      await once(socket, 'secureConnect');
      return [socket.getProtocol(), socket.alpnProtocol];
    } finally {
      socket.destroy();
    }
  }
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

function behindNginx(shop: Shop): () => Nginx {
  return running((directory) => startNginx(directory, [shop.port]));
}

function running<Started extends Nginx>(
  start: (directory: string) => Promise<Started>,
): () => Started {
  let directory = '';
  let nginx: Started | undefined;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shopfront-nginx-'));
    nginx = await start(directory);
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
