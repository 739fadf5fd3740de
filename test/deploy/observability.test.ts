import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { Registry } from 'prom-client';
import { parse } from 'yaml';
import { openMetrics } from '../../src/http/metrics-listener.ts';
import { Admission } from '../../src/http/admission.ts';
import { PASSWORD, Shop } from '../support/shop.ts';
import { namesIn, type Selector } from '../support/promql.ts';
import { until } from '../support/until.ts';

interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: { summary: string; runbook_url: string };
}

interface Panel {
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}

/** The values of each label of a metric. */
type Labels = Map<string, Set<string>>;

/** Labels that Prometheus adds. */
const PROMETHEUS_LABELS = new Set(['instance', 'job', 'le']);

const rules = (
  parse(await readFile('deploy/prometheus/alerts.yml', 'utf8')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(await readFile('deploy/grafana/shopfront.json', 'utf8')) as {
  panels: Panel[];
  templating: { list: { query: string | { query: string } }[] };
};
const targets = dashboard.panels.flatMap(({ title, targets: own = [] }) =>
  own.map((target) => ({ title, ...target })),
);
const document = await readFile('docs/observability.md', 'utf8');

const shop = new Shop({
  // Some metrics exist only with a replica.
  DATABASE_REPLICA_URL: 'postgresql://127.0.0.1:1/none',
  METRICS_PORT: '9464',
  LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1',
});
let metrics: Map<string, Labels>;
let types: Map<string, string>;

// The metrics of a running app after successful and failed requests to both APIs.
beforeAll(async () => {
  await shop.start();
  await shop.empty();
  const registry = openMetrics({ database: () => shop.database });
  void new Admission(shop.config.maxRequestsInFlight, false);
  await sendTraffic();
  await until(async () => (await registry.metrics()).includes('status="5xx"'));
  metrics = await labelsIn(registry);
  types = new Map(
    (await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]),
  );
});

afterAll(() => shop.stop());

describe('deploy/prometheus/alerts.yml', () => {
  test.each(rules)(
    '$alert uses existing metrics and labels',
    ({ expr, annotations: { summary } }) => {
      expect(missingIn(expr)).toEqual([]);
      expect(
        unknownIn(
          expr,
          [...summary.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label ?? ''),
        ),
      ).toEqual([]);
    },
  );

  test('each alert has a severity and a section in docs/observability.md', () => {
    expect(
      rules.filter(({ labels }) => !['page', 'ticket'].includes(labels['severity'] ?? '')),
    ).toEqual([]);
    const explained = [...document.matchAll(/^### (Shopfront\w+)$/gm)].map(([, name]) => name);
    expect(explained).toEqual(rules.map(({ alert }) => alert));
    expect(rules.map(({ annotations }) => annotations.runbook_url)).toEqual(
      rules.map(({ alert }) => `docs/observability.md#${alert.toLowerCase()}`),
    );
  });
});

describe('deploy/grafana/shopfront.json', () => {
  test.each(targets)('$title: $legendFormat', ({ expr, legendFormat }) => {
    expect(missingIn(expr)).toEqual([]);
    expect(
      unknownIn(
        expr,
        [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label ?? ''),
      ),
    ).toEqual([]);
  });

  test('its variables use existing metrics', () => {
    const used = dashboard.templating.list.flatMap(({ query }) =>
      typeof query === 'string'
        ? []
        : (/^label_values\((\w+), instance\)$/.exec(query.query)?.[1] ?? ''),
    );
    expect(used.filter((name) => !metrics.has(name))).toEqual([]);
    expect(used).toHaveLength(1);
  });
});

test('each metric is on the dashboard or in an alert', () => {
  const used = new Set(
    [...rules, ...targets].flatMap(({ expr }) =>
      namesIn(expr).selectors.map(({ metric }) => baseOf(metric)),
    ),
  );
  expect(ours().filter((name) => !used.has(name))).toEqual([]);
});

test('the table of metrics in docs/observability.md has exactly our metrics, with labels and types', () => {
  const rows = [...document.matchAll(/^\| `(shopfront_\w+)(?:\{([\w,]+)\})?` +\| (\w+)/gm)];
  const documented = rows.map(([, name = '', labels = '', type = '']) => ({
    name,
    type,
    labels: labels.split(',').filter(Boolean).toSorted(),
  }));
  const exposed = ours().map((name) => ({
    name,
    type: types.get(name),
    labels: [...(metrics.get(name)?.keys() ?? [])].filter((label) => label !== 'le').toSorted(),
  }));
  const byName = (one: { name: string }, other: { name: string }) =>
    one.name.localeCompare(other.name);
  expect(documented.toSorted(byName)).toEqual(exposed.toSorted(byName));
});

async function sendTraffic(): Promise<void> {
  const ada = await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
  const product = await shop.makeProduct();
  const query = 'query Page { products { nodes { name } } }';
  for (let time = 0; time < 4; time++) {
    await shop.rest('GET', '/api/v2/shop/products');
    await shop.rest('GET', `/api/v1/shop/product/${product.pk}`);
    await shop.graphql(query);
    await shop.graphql('{ me { username } }', {}, { as: ada });
  }
  await shop.graphql(
    'mutation Drop($pk: ID!) { deleteProduct(pk: $pk) { pk } }',
    { pk: product.pk },
    { as: ada },
  );
  await shop.rest('POST', '/api/v1/shop/product/', {
    as: ada,
    json: { name: 'Ink', barcode: shop.newBarcode(), price: 1 },
  });
  await shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } });
  await shop.rest('POST', '/token', { form: { username: 'ada', password: 'wrong' } });
  await shop.graphql('{ none }');
  await shop.rest('GET', '/no/such');
  await shop.sql('alter table item rename to item_gone');
  await shop.rest('GET', '/users/me/items/', { as: ada });
  await shop.sql('alter table item_gone rename to item');
}

// Includes the series names of histograms.
async function labelsIn(registry: Registry): Promise<Map<string, Labels>> {
  const found = new Map<string, Labels>();
  for (const { name, values } of await registry.getMetricsAsJSON()) {
    for (const value of values) {
      const part =
        'metricName' in value && typeof value.metricName === 'string' ? value.metricName : name;
      for (const of of new Set([name, part])) {
        const labels = found.get(of) ?? new Map<string, Set<string>>();
        found.set(of, labels);
        for (const [label, text] of Object.entries(value.labels))
          labels.set(label, (labels.get(label) ?? new Set()).add(String(text)));
      }
    }
  }
  return found;
}

function ours(): string[] {
  return [...types.keys()].filter((name) => name.startsWith('shopfront_'));
}

function baseOf(metric: string): string {
  const base = metric.replace(/_(bucket|sum|count)$/, '');
  return types.get(base) === 'histogram' ? base : metric;
}

// Returns the metrics and label values of an expression that do not exist.
function missingIn(expression: string): string[] {
  return namesIn(expression).selectors.flatMap((selector) =>
    selector.metric === 'up' ? [] : missingOf(selector),
  );
}

function missingOf({ metric, matchers }: Selector): string[] {
  const labels = metrics.get(metric);
  if (!labels) return [metric];
  return matchers.flatMap(({ label, operator, value }) => {
    if (PROMETHEUS_LABELS.has(label)) return [];
    const values = [...(labels.get(label) ?? [])];
    const names = operator.endsWith('~') ? value.split('|') : [value];
    // Of several values, one is enough.
    const exists = operator.startsWith('!')
      ? values.length > 0
      : names.some((name) => values.includes(name));
    return exists ? [] : [`${metric}{${label}${operator}"${value}"}`];
  });
}

// Returns the grouping labels and template labels that no metric of the expression has.
function unknownIn(expression: string, written: readonly string[]): string[] {
  const { selectors, grouping } = namesIn(expression);
  const known = new Set([
    ...PROMETHEUS_LABELS,
    ...selectors.flatMap(({ metric }) => [...(metrics.get(metric)?.keys() ?? [])]),
  ]);
  return [...grouping, ...written].filter((label) => !known.has(label));
}
