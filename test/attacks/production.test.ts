import { describe, expect, test } from '../support/jest.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';

const DATABASE_URL = 'postgresql://user@127.0.0.1:1/shop';

test('X3 with DATABASE_URL and nothing else, a secret is demanded, in one line', () => {
  const read = () => readConfig({ DATABASE_URL }, () => undefined);
  expect(read).toThrow(ConfigError);
  expect(read).toThrow(
    /^The configuration cannot be used:\n {2}SIGNING_SECRET is needed with DATABASE_URL, and must have 32 bytes or more$/,
  );
});

test('X3 with DATABASE_URL, the explorer and introspection are off', () => {
  expect(readConfig({ DATABASE_URL, SIGNING_SECRET: TEST_SECRET }, () => undefined)).toMatchObject({ explorer: false });
});

describe('as in production', () => {
  const shop = useShop({ GRAPHQL_EXPLORER: 'false' });

  test('X6 explorers are there by setting: without it, a browser gets no page', async () => {
    const page = await shop.rest('GET', '/graphql', { headers: { Accept: 'text/html' } });
    expect(page.headers.get('Content-Type')).not.toMatch(/html/);
    expect(page.text).not.toMatch(/<html/i);
  });

  test.each([
    '/',
    '/graphiql',
    '/docs',
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
  ])('X6 nothing is at %s on the port of the API', async (path) => {
    expect(await shop.rest('GET', path)).toMatchObject({ status: 404, body: { detail: 'Not found' } });
  });

  test('X6 the probes tell whether, and nothing of why, of versions or of the host', async () => {
    expect([(await shop.rest('GET', '/livez')).text, (await shop.rest('GET', '/readyz')).text]).toEqual([
      '{"status":"ok"}',
      '{"status":"ok"}',
    ]);
  });

  test('X6 no answer names the software that made it', async () => {
    for (const path of ['/livez', '/graphql', '/none', '/token']) {
      const { headers } = await shop.rest('GET', path);
      expect([headers.get('Server'), headers.get('X-Powered-By')]).toEqual([null, null]);
    }
  });
});
