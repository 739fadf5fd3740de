import { beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { register } from 'prom-client';
import { openMetrics } from '../../../src/http/metrics-listener.ts';
import { useShop } from '../../support/shop.ts';
import { until } from '../../support/until.ts';

type Labels = Record<string, string>;

describe('requests', () => {
  // The shop counts each request, so each is sent once.
  const shop = useShop({
    METRICS_PORT: '9464',
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1',
  });

  // Tests before these in the same process have counted, too.
  beforeAll(() => register.resetMetrics());

  beforeEach(() => {
    openMetrics({ database: () => shop.database });
  });

  test('a REST endpoint is counted by path template and status class, cached or not', async () => {
    const product = await shop.makeProduct();
    const labels = { api: 'rest', operation: 'GET /api/v1/shop/product/{pk}' };
    const path = `/api/v1/shop/product/${product.pk}`;
    // Static route, router, response cache and a rejection.
    for (const target of [
      path,
      `/api/v1/shop/product/%3${String(product.pk).slice(0, 1)}${String(product.pk).slice(1)}`,
      path,
      path,
      path,
    ]) {
      expect((await shop.rest('GET', target)).status).toBe(200);
    }
    await shop.rest('GET', '/api/v1/shop/product/x');
    await untilCounted({ ...labels, status: '4xx' }, 1);
    expect(await counted({ ...labels, status: '2xx' })).toBe(5);
  });

  test('a GraphQL operation is counted by name, cached or not, and its errors by code', async () => {
    const query = 'query Counted { products { nodes { name } } }';
    const cached = await value('shopfront_response_cache_lookups_total', { outcome: 'hit' });
    for (let time = 0; time < 5; time++) await shop.graphql(query);
    await untilCounted({ api: 'graphql', operation: 'Counted', status: '2xx' }, 5);
    expect(
      await value('shopfront_response_cache_lookups_total', { outcome: 'hit' }),
    ).toBeGreaterThan(cached);

    await shop.graphql('query Refused { users { nodes { username } } }');
    await untilCounted({ api: 'graphql', operation: 'Refused', status: '2xx' }, 1);
    expect(await value('shopfront_errors_total', { api: 'graphql', code: 'UNAUTHENTICATED' })).toBe(
      1,
    );
  });

  test('unknown paths and arbitrary methods create no series', async () => {
    for (const [method, path] of [
      ['GET', '/made/up'],
      ['GET', '/made/up/too'],
      ['DELETE', '/token'],
      ['PUT', '/token'],
    ] as const) {
      await shop.rest(method, path);
    }
    await untilCounted({ api: 'other', operation: 'other', status: '4xx' }, 2);
    await untilCounted({ api: 'rest', operation: '/token', status: '4xx' }, 2);
    const made = (await labelsOf('shopfront_request_duration_seconds_count', 'operation')).filter(
      (name) => name.includes('made'),
    );
    expect(made).toEqual([]);
  });

  test('operation names beyond the first hundred are counted as one', async () => {
    for (let number = 0; number < 110; number++)
      await shop.graphql(`query Made${number} { __typename }`);
    await until(
      async () =>
        (await value('shopfront_request_duration_seconds_count', {
          operation: 'other',
          api: 'graphql',
        })) >= 10,
    );
    const names = await labelsOf('shopfront_request_duration_seconds_count', 'operation');
    expect(names.filter((name) => !/[ /]/.test(name)).length).toBeLessThanOrEqual(102);
  });

  test('a rejected login is counted', async () => {
    const ada = await shop.makeUser();
    const refusals = await value('shopfront_login_refusals_total', {});
    for (let time = 0; time < 2; time++)
      await shop.rest('POST', '/token', { form: { username: ada.username, password: 'wrong' } });
    expect(await value('shopfront_login_refusals_total', {})).toBe(refusals + 1);
    expect(await value('shopfront_password_hash_queue', { state: 'waiting' })).toBe(0);
  });
});

function counted(labels: Labels): Promise<number> {
  return value('shopfront_request_duration_seconds_count', labels);
}

// Requests are counted after the response, slightly later than the client receives it.
async function untilCounted(labels: Labels, times: number): Promise<void> {
  await until(async () => (await counted(labels)) >= times, JSON.stringify(labels));
  expect(await counted(labels)).toBe(times);
}

// The sum of the series with these labels.
async function value(metric: string, labels: Labels): Promise<number> {
  const found = (await seriesOf(metric)).filter((series) =>
    Object.entries(labels).every(([label, text]) => series.labels[label] === text),
  );
  return found.reduce((sum, series) => sum + series.value, 0);
}

async function labelsOf(metric: string, label: string): Promise<string[]> {
  return (await seriesOf(metric)).map(({ labels }) => labels[label] ?? '');
}

async function seriesOf(metric: string): Promise<{ labels: Labels; value: number }[]> {
  const lines = (await register.metrics())
    .split('\n')
    .filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `));
  return lines.map((line) => {
    const labels = Object.fromEntries(
      [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text = '']) => [label, text]),
    );
    return { labels, value: Number(line.slice(line.lastIndexOf(' ') + 1)) };
  });
}
