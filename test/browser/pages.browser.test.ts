import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { useBrowser, violationsOf, type Visit } from '../support/browser.ts';
import { startServer, stopServer, type RunningServer } from '../support/process.ts';
import { until } from '../support/until.ts';

const tabs = useBrowser();

const SANDBOX = 'https://sandbox.embed.apollographql.com';
const WHO = '{ me { username } }';

/** What stands in for Apollo Sandbox: it says that it is there, and asks its operation when it is told to. */
const SANDBOX_TWIN = `<!doctype html><html lang="en"><title>Sandbox</title><button>Run</button><pre></pre><script>
  const { searchParams } = new URL(location.href);
  parent.postMessage({ name: 'ExplorerListeningForHandshake' }, '*');
  document.querySelector('button').onclick = () => parent.postMessage({
    name: 'ExplorerRequest', operationId: '1', operation: '${WHO}',
    endpointUrl: searchParams.get('endpoint'), headers: JSON.parse(decodeURIComponent(searchParams.get('defaultHeaders'))),
  }, '*');
  addEventListener('message', ({ data }) => {
    if (data.name === 'ExplorerResponse') document.querySelector('pre').textContent = JSON.stringify(data.response.data);
  });
</script></html>`;

describe.each([
  ['at the root', ''],
  ['under a BASE_PATH', '/shop'],
])('%s', (_where, BASE_PATH) => {
  let server: RunningServer;
  let dataDir: string;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    server = await startServer({ DATA_DIR: dataDir, BASE_PATH, LOGIN_FAILURES_PER_ACCOUNT: '1' });
  });

  afterAll(async () => {
    await stopServer(server);
    await removeDirectory(dataDir);
  });

  async function visit(path: string, options?: BrowserContextOptions): Promise<Visit> {
    const opened = await tabs.open([new URL(server.url).origin], options);
    await opened.page.goto(server.url + path);
    return opened;
  }

  // Keeps what the page looks like for the documents, where that is asked for; with the port that a reader has.
  async function picture(page: Page, name: string): Promise<void> {
    if (process.env['SCREENSHOTS'] !== '1' || BASE_PATH !== '') return;
    await page.evaluate(`{
      const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll('${new URL(server.url).port}', '4000');
    }`);
    await page.screenshot({ path: `docs/explorer-${name}.png` });
  }

  test('the home page says where things are and who can sign in', async () => {
    const { page, errors, foreign } = await visit('/', { viewport: { width: 1200, height: 1560 } });
    expect(await page.locator('h1').textContent()).toBe('Shopfront');
    const text = await page.locator('main').innerText();
    for (const user of ['alice-demo-1', 'bob-demo-1', 'admin-demo-1']) expect(text).toContain(user);
    const links = await page.locator('a').evaluateAll((all) => all.map((link) => (link as unknown as { href: string }).href));
    const own = new Set(links.map((link) => new URL(link).pathname.replace(BASE_PATH, '')));
    expect(own).toEqual(new Set(['/', '/graphql', '/graphiql', '/docs', '/openapi.json', '/livez', '/readyz']));
    expect(links.filter((link) => !link.startsWith(server.url))).toEqual([]);
    await picture(page, 'home');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('the commands of the home page work as they stand, and can be copied', async () => {
    const { page } = await visit('/', { permissions: ['clipboard-read', 'clipboard-write'] });
    const commands = await page.locator('.command code').allInnerTexts();
    expect(commands).toHaveLength(3);
    const answers: string[] = [];
    for (const command of commands) answers.push((await promisify(execFile)('bash', ['-c', command])).stdout);
    expect(answers).toEqual([
      expect.stringMatching(/^\{"items":\[.*"count":1200/),
      expect.stringMatching(/^\{"data":\{"products":\{"totalCount":1200/),
      expect.stringMatching(/^\{"access_token":"[^"]+","token_type":"bearer"\}/),
    ]);
    await page.locator('.command button').first().click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(commands[0]);
  });

  test.each<[string, BrowserContextOptions]>([
    ['in light colours', {}],
    ['in dark colours', { colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ])('the home page keeps nobody out, %s', async (_how, options) => {
    const { page } = await visit('/', options);
    expect(await violationsOf(page)).toEqual([]);
    await signInAs(page, 'alice');
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  });

  test('GraphiQL runs an operation as who signed in above, asking nobody else', async () => {
    const { page, errors, foreign } = await visit(`/graphiql?${new URLSearchParams({ query: WHO }).toString()}`);
    await page.getByText('Sent without credentials').waitFor();
    await signInAs(page, 'alice');
    await page.getByText('Authorization: Bearer ey').waitFor();
    await runsAs(page, 'alice');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByText('Sent without credentials').waitFor();
    await runIn(page);
    await response(page, '"me": null').waitFor();
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('GraphiQL has examples in its tabs, and each of them runs', async () => {
    const { page, errors, foreign } = await visit('/graphiql');
    await signInAs(page, 'alice');
    for (const [tab, answer] of [
      ['Products', '"totalCount": 1200'],
      ['Me', '"username": "alice"'],
      ['AddItem', '"itemId": "telescope"'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click();
      await runIn(page);
      await response(page, answer).waitFor();
      if (tab === 'Me') await picture(page, 'graphiql');
    }
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('GraphiQL listens to a subscription, asking nobody else', async () => {
    const query = 'subscription { productChanged { kind pk } }';
    const { page, errors, foreign } = await visit(`/graphiql?${new URLSearchParams({ query }).toString()}`);
    await runIn(page);
    const signedIn = await fetch(`${server.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
    });
    const { access_token: token } = (await signedIn.json()) as { access_token: string };
    let price = 0;
    await until(async () => {
      await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({ query: `mutation { updateProduct(pk: 1, input: { price: ${++price} }) { pk } }` }),
      });
      return (await response(page, '"kind": "CHANGED"').count()) > 0;
    }, 'an event');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('a link to GraphiQL brings a query with its variables', async () => {
    const query = 'query Page($first: Int!) { products(first: $first) { nodes { pk } } }';
    const { page } = await visit(`/graphiql?${new URLSearchParams({ query, variables: '{"first": 2}' }).toString()}`);
    await runIn(page);
    await response(page, '"pk": "2"').waitFor();
    expect(await response(page, '"pk": "3"').count()).toBe(0);
  });

  test('the REST reference tries an operation as who signed in above, asking nobody else', async () => {
    const { page, errors, foreign } = await visit('/docs', { viewport: { width: 1200, height: 1000 } });
    await signInAs(page, 'alice');
    const operation = await open(page, '/users/me/');
    await operation.getByRole('button', { name: 'Try it out' }).click();
    await operation.getByRole('button', { name: 'Execute' }).click();
    await operation.locator('.live-responses-table').filter({ hasText: '"username": "alice"' }).waitFor();
    await operation.evaluate((shown) => (shown as unknown as { scrollIntoView: () => void }).scrollIntoView());
    await picture(page, 'docs');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('the REST reference shows the twin of an operation, which opens in GraphiQL with who is signed in', async () => {
    const { page, errors, foreign } = await visit('/docs');
    await signInAs(page, 'alice');
    const twin = (await open(page, '/users/me/')).locator('.twin');
    expect(await twin.innerText()).toMatch(/me\s*\{/);
    await twin.getByRole('link', { name: 'Open in GraphiQL' }).click();
    await page.waitForURL((url) => url.pathname === `${BASE_PATH}/graphiql`);
    await runsAs(page, 'alice');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('where the site of Apollo Sandbox cannot be reached, the GraphQL door shows GraphiQL in its place', async () => {
    const { page, errors, foreign } = await visit(`/graphql?${new URLSearchParams({ query: WHO }).toString()}`);
    await page.getByText('which cannot be reached from here').waitFor();
    await signInAs(page, 'alice');
    await runsAs(page, 'alice');
    expect(await page.locator('iframe').count()).toBe(0);
    expect(errors).toEqual([]);
    expect(new Set(foreign.map((address) => new URL(address).origin))).toEqual(new Set([SANDBOX]));
  });

  test('who does not want to wait for Apollo Sandbox need not', async () => {
    const { page } = await visit('/');
    // It is neither there nor refused.
    await page.route(`${SANDBOX}/**`, () => undefined);
    await page.goto(`${server.url}/graphql`, { waitUntil: 'commit' });
    await page.getByRole('button', { name: 'Use GraphiQL instead' }).click();
    await page.getByRole('tab', { name: 'Products' }).waitFor();
    expect(await page.locator('iframe').count()).toBe(0);
  });

  test('where its site can be reached, the GraphQL door shows Apollo Sandbox, and the credential stays on our page', async () => {
    const { page, errors, foreign } = await visit('/');
    await page.route(`${SANDBOX}/**`, (route) => route.fulfill({ contentType: 'text/html', body: SANDBOX_TWIN }));
    // What is asked for as an icon is not told by the browser.
    await page.addInitScript(
      '{ const { fetch } = window; window.asked = []; window.fetch = (at, ...how) => (asked.push(at), fetch(at, ...how)); }',
    );
    await page.goto(`${server.url}/graphql?${new URLSearchParams({ query: WHO }).toString()}`);
    await signInAs(page, 'alice');
    const frame = page.frameLocator('iframe');
    await frame.getByRole('button', { name: 'Run' }).click();
    await frame.locator('pre').filter({ hasText: '{"me":{"username":"alice"}}' }).waitFor();
    await page.locator('.notice').waitFor({ state: 'detached' });
    const { searchParams } = new URL((await page.locator('iframe').getAttribute('src')) ?? '');
    expect(searchParams.get('endpoint')).toBe(`${server.url}/graphql`);
    expect(decodeURIComponent(searchParams.get('defaultDocument') ?? '')).toBe(WHO);
    expect(decodeURIComponent(searchParams.get('defaultHeaders') ?? '')).toBe('{"Authorization":"Bearer of-who-is-signed-in-above"}');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'alice' }).waitFor();
    await frame.getByRole('button', { name: 'Run' }).click();
    await frame.locator('pre').filter({ hasText: '{"me":null}' }).waitFor();
    const asked = await page.evaluate<string[]>('asked');
    expect(asked.filter((address) => !address.startsWith(`${server.url}/`) || address.endsWith('/favicon.ico'))).toEqual([]);
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test.each(['/graphiql', '/docs'])('the bar of %s keeps nobody out', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await visit(path, { colorScheme });
      await page.getByText('other …').click();
      expect(await violationsOf(page, '.bar')).toEqual([]);
    }
  });

  test('who is signed in stays so from page to page, and signing out ends the session', async () => {
    const { page, errors } = await visit('/');
    await signInAs(page, 'bob');
    await page.goto(`${server.url}/docs`);
    await page.getByText('Signed in as bob').waitFor();
    const token = await page.evaluate<string>('JSON.parse(Object.values({ ...sessionStorage })[0]).token');
    const me = async () => (await fetch(`${server.url}/users/me/`, { headers: { Authorization: `Bearer ${token}` } })).status;
    expect(await me()).toBe(200);
    const ended = page.waitForResponse((answer) => answer.url().endsWith('/api/v2/auth/login'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    expect((await ended).status()).toBe(200);
    expect(await me()).toBe(401);
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    expect(errors).toEqual([]);
  });

  test('who was signed in and is no more is not asked for anything, but may sign in', async () => {
    const { page } = await visit('/');
    await signInAs(page, 'bob');
    const token = await page.evaluate<string>('JSON.parse(Object.values({ ...sessionStorage })[0]).token');
    await fetch(`${server.url}/api/v2/auth/login`, { method: 'POST', headers: { Authorization: `Bearer ${token}` } });
    await page.goto(`${server.url}/graphiql?${new URLSearchParams({ query: WHO }).toString()}`);
    await page.getByRole('button', { name: 'bob' }).waitFor();
    await runIn(page);
    await response(page, '"me": null').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
  });

  test('where there are no demo users, a form asks who it is', async () => {
    const { page, errors } = await visit('/livez');
    // As it is with a database server.
    await page.route(`${server.url}/graphiql`, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, body: (await answer.text()).replace(/"demoUsers":\[[^\]]+\]/, '"demoUsers":[]') });
    });
    await page.goto(`${server.url}/graphiql`);
    await page.getByLabel('Username').fill('admin');
    await page.getByLabel('Password').fill('admin-demo-1');
    expect(await page.locator('.bar button').allInnerTexts()).toEqual(['Sign in']);
    expect(await violationsOf(page, '.bar')).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByText('Signed in as admin').waitFor();
    expect(errors).toEqual([]);
  });

  test('a refused login says why, and so does one too many', async () => {
    const { page } = await visit('/');
    await page.getByText('other …').click();
    await page.getByLabel('Username').fill('carol');
    await page.getByLabel('Password').fill('not hers');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const alert = page.getByRole('alert');
    await alert.filter({ hasText: /./ }).waitFor();
    expect(await alert.innerText()).toBe('Incorrect username or password.');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await alert.filter({ hasText: 'Too many' }).waitFor();
    expect(await alert.innerText()).toBe('Too many logins have failed. Try again in a minute.');
  });
});

async function signInAs(page: Page, username: string): Promise<void> {
  await page.locator('.bar').getByRole('button', { name: username }).click();
  await page.getByText(`Signed in as ${username}`).waitFor();
}

async function runsAs(page: Page, username: string): Promise<void> {
  await runIn(page);
  await response(page, `"username": "${username}"`).waitFor();
}

async function runIn(page: Page): Promise<void> {
  // Until its editors are there, the button does nothing.
  for (const part of ['query-editor', 'response']) await page.locator(`.graphiql-${part} .monaco-editor`).first().waitFor();
  await page.getByRole('button', { name: /^Execute query/ }).click();
}

function response(page: Page, text: string): Locator {
  return page.locator('.graphiql-response').filter({ hasText: text });
}

// The operation of the REST reference that answers GET of this path.
async function open(page: Page, path: string): Promise<Locator> {
  const operation = page.locator('.opblock-get').filter({ has: page.locator(`[data-path="${path}"]`) });
  await operation.locator('.opblock-summary-control').click();
  return operation;
}
