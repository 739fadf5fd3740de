import { describe, expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

const DATABASE_URL = 'postgresql://user@127.0.0.1:1/shop';

test('X3 with DATABASE_URL alone, a one-line error requires a secret', () => {
  const read = () => readConfig({ DATABASE_URL }, () => undefined);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(
    /^Invalid configuration:\n {2}SIGNING_SECRET is needed with DATABASE_URL, and must have 32 bytes or more$/,
  );
});

test('X3 with DATABASE_URL, the explorer and introspection are off', () => {
  expect(readConfig({ DATABASE_URL, SIGNING_SECRET: TEST_SECRET }, () => undefined)).toMatchObject({
    graphqlExplorer: false,
  });
});

describe('as in production', () => {
  const shop = useShop({ GRAPHQL_EXPLORER: 'false' });

  test('X6 without GRAPHQL_EXPLORER, a browser gets no page', async () => {
    const page = await shop.rest('GET', '/graphql', { headers: { Accept: 'text/html' } });
    expect(page.status).toBe(406);
    expect(page.headers.get('Content-Type')).not.toMatch(/html/);
    expect(page.text).not.toMatch(/<html/i);
  });

  test.each([
    '/',
    '/graphiql',
    '/usage',
    '/docs',
    '/shop',
    '/shop/products/1',
    '/metrics',
    '/health',
    '/debug',
    '/debug/pprof',
    '/.env',
    '/.git/config',
    '/package.json',
    '/server-status',
    '/actuator',
    '/admin',
  ])('X6 %s on the API port is 404', async (path) => {
    expect(await shop.rest('GET', path)).toMatchObject({
      status: 404,
      body: { detail: 'Not found' },
    });
  });

  test('X6 the probes return a status, and no reason, version or host', async () => {
    expect([
      (await shop.rest('GET', '/livez')).text,
      (await shop.rest('GET', '/readyz')).text,
    ]).toEqual(['{"status":"ok"}', '{"status":"ok"}']);
  });
});
