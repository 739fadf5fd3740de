import { afterAll, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { useBrowser } from '../support/browser.ts';
import { until } from '../support/until.ts';
import { useServer } from '../support/use-server.ts';

const tabs = useBrowser();

/** Headers that clients, tracers and error trackers add to requests of a page. */
const CLIENT_HEADERS = {
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'vendor=1',
  baggage: 'sentry-environment=test',
  'sentry-trace': '0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1',
  'apollographql-client-name': 'another-frontend',
  'apollographql-client-version': '1.2.3',
};
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const EVENTS = 'subscription { productChanged { kind pk } }';

const server = useServer({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1' });
let page: Page;
let errors: string[];
let token: string;

/** Libraries that the page of the other origin loads, built for script elements. */
const LIBRARIES: Record<string, string> = {
  '/graphql-ws.js': 'node_modules/graphql-ws/umd/graphql-ws.min.js',
  '/graphql-sse.js': 'node_modules/graphql-sse/umd/graphql-sse.min.js',
};

const elsewhere = createServer((req, res) => {
  const library = LIBRARIES[req.url ?? ''];
  if (library === undefined) {
    res.setHeader('Content-Type', 'text/html')
      .end(`<!doctype html><html lang="en"><title>Another origin</title><link rel="icon" href="data:,">
${Object.keys(LIBRARIES)
  .map((path) => `<script src="${path}"></script>`)
  .join('\n')}
<script>
  const shop = ${JSON.stringify(server.url)};
  const send = async (path, init) => {
    const response = await fetch(shop + path, init);
    return { status: response.status, headers: Object.fromEntries(response.headers), body: JSON.parse((await response.text()) || 'null') };
  };
  const events = [];
  const sink = { next: ({ data }) => events.push(data.productChanged), error: (error) => events.push(String(error)), complete: () => {} };
</script></html>`);
  } else {
    void readFile(library).then((text) =>
      res.setHeader('Content-Type', 'text/javascript').end(text),
    );
  }
});

interface PageResponse {
  status: number;
  /** The headers that the page may read. */
  headers: Record<string, string>;
  body: unknown;
}

interface PageRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Sends a request from the page of the other origin, and returns what the page can read. */
function send(path: string, init: PageRequest = {}): Promise<PageResponse> {
  return page.evaluate<PageResponse>(`send(${JSON.stringify(path)}, ${JSON.stringify(init)})`);
}

function sendGraphql(
  query: string,
  variables: object,
  headers: Record<string, string>,
): Promise<PageResponse> {
  const sent = {
    'Content-Type': 'application/json',
    Authorization: `Bearer ${token}`,
    ...CLIENT_HEADERS,
    ...headers,
  };
  return send('/graphql', {
    method: 'POST',
    headers: sent,
    body: JSON.stringify({ query, variables }),
  });
}

function change(price: number): Promise<PageResponse> {
  return sendGraphql(
    'mutation ($price: Price!) { updateProduct(pk: 1, input: { price: $price }) { pk } }',
    { price },
    {},
  );
}

/** Changes a product until the page receives the event. */
async function receiveEvent(): Promise<void> {
  let price = 0;
  await until(async () => {
    expect((await change(++price)).status).toBe(200);
    return page.evaluate<boolean>('events.length > 0');
  }, 'an event');
  expect(await page.evaluate('events[0]')).toEqual({ kind: 'CHANGED', pk: '1' });
}

beforeAll(async () => {
  elsewhere.listen(0, '127.0.0.1');
  await once(elsewhere, 'listening');
});

beforeEach(async () => {
  const origin = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  ({ page, errors } = await tabs.open([origin, new URL(server.url).origin]));
  await page.goto(origin);
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
  const signedIn = await send('/token', {
    method: 'POST',
    headers: form,
    body: 'username=alice&password=alice-demo-1',
  });
  ({ access_token: token } = signedIn.body as { access_token: string });
});

afterAll(() => {
  elsewhere.close();
  elsewhere.closeAllConnections();
});

test('a page of another origin sends GraphQL operations with the headers of the usual clients', async () => {
  const me = await sendGraphql('{ me { username } }', {}, { 'X-Request-Id': 'of-the-page' });
  expect([me.status, me.body]).toEqual([200, { data: { me: { username: 'alice' } } }]);
  const input = { name: 'Made elsewhere', barcode: '4006381333931', price: 1 };
  const created = await sendGraphql(CREATE, { input }, { 'Idempotency-Key': 'of-the-page' });
  expect(created).toMatchObject({
    status: 200,
    body: { data: { createProduct: { pk: expect.any(String) } } },
  });
  expect(errors).toEqual([]);
});

test.each([
  ['an access token', () => ({ Authorization: `Bearer ${token}` })],
  ['a session key', async () => ({ 'X-SESSION-ID': await sessionKey() })],
])('a page of another origin calls REST endpoints with %s', async (_what, credentials) => {
  const headers = { ...(await credentials()), ...CLIENT_HEADERS };
  expect(await send('/users/me/', { headers })).toMatchObject({
    status: 200,
    body: { username: 'alice' },
  });
  expect(errors).toEqual([]);
});

async function sessionKey(): Promise<string> {
  const body = JSON.stringify({ username: 'alice', password: 'alice-demo-1' });
  const response = await send('/session/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  });
  return (response.body as { session_key: string }).session_key;
}

test('a page of another origin subscribes by server-sent events', async () => {
  await page.evaluate(`{
    events.length = 0;
    const headers = ${JSON.stringify({ Authorization: `Bearer ${token}`, ...CLIENT_HEADERS })};
    graphqlSse.createClient({ url: shop + '/graphql', headers, retryAttempts: 0 }).subscribe({ query: '${EVENTS}' }, sink);
  }`);
  await receiveEvent();
});

test('a page of another origin subscribes by WebSocket', async () => {
  await page.evaluate(`{
    events.length = 0;
    const connectionParams = { Authorization: 'Bearer ${token}' };
    graphqlWs.createClient({ url: shop.replace('http', 'ws') + '/graphql', connectionParams, retryAttempts: 0 }).subscribe({ query: '${EVENTS}' }, sink);
  }`);
  await receiveEvent();
});
