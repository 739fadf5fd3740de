import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '../../support/jest.ts';
import { openTracing, type Tracing } from '../../../src/telemetry/tracing.ts';
import { PASSWORD, Shop } from '../../support/shop.ts';
import { until } from '../../support/until.ts';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
}

interface Sent {
  resourceSpans: {
    resource: { attributes: Span['attributes'] };
    scopeSpans: { spans: Span[] }[];
  }[];
}

const OTEL = {
  OTEL_BSP_SCHEDULE_DELAY: '10',
  OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
  OTEL_TRACES_SAMPLER_ARG: '0',
};
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

/** The requests that the collector received. */
const sent: { path: string; body: Sent }[] = [];
let collector: Server;
let tracing: Tracing;
let shop: Shop;

beforeAll(async () => {
  collector = createServer(async (req, res) => {
    sent.push({ path: req.url ?? '', body: (await json(req)) as Sent });
    res.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
  });
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  // OpenTelemetry reads these. Spans are exported soon after their end.
  Object.assign(process.env, OTEL);
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
  };
  shop = new Shop(env, {
    trace: (config, log) => (tracing = openTracing(config, log)),
  });
  await shop.start();
});

beforeEach(async () => {
  await shop.empty();
  sent.length = 0;
});

afterAll(async () => {
  await shop.stop();
  await tracing.close();
  collector.close();
  for (const name of Object.keys(OTEL)) Reflect.deleteProperty(process.env, name);
});

test('a request is a span of the trace in its traceparent, with its database reads below it', async () => {
  const product = await shop.makeProduct();
  const spans = await spansOf(() =>
    shop.rest('GET', `/api/v1/shop/product/${product.pk}?x=1`, { headers: traceparent('01') }),
  );
  const [request, ...below] = spans;
  expect(request).toMatchObject({
    traceId: TRACE,
    parentSpanId: PARENT,
    name: 'GET /api/v1/shop/product/{pk}',
  });
  expect(attributesOf(request)).toEqual({
    'http.request.method': 'GET',
    'http.route': 'GET /api/v1/shop/product/{pk}',
    'http.response.status_code': 200,
    'shopfront.request_id': TRACE,
  });
  expect(below.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId])).toEqual([
    ['read', TRACE, request?.spanId],
  ]);
  expect(attributesOf(below[0])).toEqual({
    'db.system.name': 'postgresql',
    'db.query.text': expect.stringMatching(/^select .* where .*\$1/),
  });
  expect(sent[0]?.path).toBe('/v1/traces');
  expect(sent[0]?.body.resourceSpans[0]?.resource.attributes).toContainEqual({
    key: 'service.name',
    value: { stringValue: 'shopfront' },
  });
});

describe('GraphQL', () => {
  test.each(['by resolvers', 'by a compiled operation'])(
    'an operation that is served %s is a span',
    async () => {
      const spans = await spansOf(() =>
        shop.graphql(
          'query Page { products { nodes { name } } }',
          {},
          { headers: traceparent('01') },
        ),
      );
      expect(spans[0]).toMatchObject({ name: 'query Page', traceId: TRACE, parentSpanId: PARENT });
      expect(attributesOf(spans[0])).toMatchObject({
        'graphql.operation.type': 'query',
        'graphql.operation.name': 'Page',
      });
    },
  );
});

test('a change of a password is a span with its hash and transaction, whose statements are below it, without values', async () => {
  const ada = await shop.makeUser({ username: 'ada-of-the-traces' });
  const spans = await spansOf(() =>
    shop.graphql(
      'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }',
      { current: PASSWORD, new: 'canary-of-the-traces' },
      { as: ada, headers: traceparent('01') },
    ),
  );
  const [request] = spans;
  const names = spans.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['mutation (anonymous)', 'hash', 'read', 'transaction', 'statement']),
  );
  expect(attributesOf(request)).toMatchObject({ 'enduser.id': ada.username });
  const transaction = spans.find(({ name }) => name === 'transaction');
  expect(transaction?.parentSpanId).toBe(request?.spanId);
  expect(
    spans.filter(({ parentSpanId }) => parentSpanId === transaction?.spanId).length,
  ).toBeGreaterThan(2);
  const below = JSON.stringify(spans.slice(1));
  for (const value of [
    ada.username,
    PASSWORD,
    'canary-of-the-traces',
    ada.hashedPassword ?? '?',
    '127.0.0.1',
  ])
    expect(below).not.toContain(value);
});

test('requests that the client does not sample are not exported, nor those without a trace at ratio 0', async () => {
  const spans = await spansOf(async () => {
    await shop.rest('GET', '/api/v2/shop/products', { headers: traceparent('00') });
    await shop.rest('GET', '/api/v2/shop/products');
    await shop.rest('GET', '/api/v2/shop/products', {
      headers: { traceparent: '00-none-none-01' },
    });
    await shop.rest('GET', '/livez', { headers: traceparent('01') });
  });
  expect(spans.map(({ name }) => name)).toEqual(['GET /livez']);
});

function traceparent(flags: string): Record<string, string> {
  return { traceparent: `00-${TRACE}-${PARENT}-${flags}` };
}

// The spans of the action, the request first.
async function spansOf(act: () => Promise<unknown>): Promise<Span[]> {
  await act();
  // A span is sent after those below it.
  await until(() => spansSent().some(({ parentSpanId }) => parentSpanId === PARENT));
  return spansSent().toSorted(
    (one, other) => Number(other.parentSpanId === PARENT) - Number(one.parentSpanId === PARENT),
  );
}

function spansSent(): Span[] {
  return sent
    .flatMap(({ body }) => body.resourceSpans)
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
}

function attributesOf(span: Span | undefined): Record<string, unknown> {
  return Object.fromEntries(
    (span?.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]),
  );
}
