import { describe, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BrowserContextOptions, Locator, Page } from 'playwright-core';
import { VERSION } from '../../src/core/version.ts';
import { runIn, useBrowser, violationsOf, type Visit } from '../support/browser.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { forge } from '../support/forge.ts';
import type { RunningServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import { useServer } from '../support/use-server.ts';

const tabs = useBrowser();

const SANDBOX = 'https://sandbox.embed.apollographql.com';
const ME = '{ me { username } }';

/** A substitute for Apollo Sandbox: it sends the greeting, and its operation on a click. */
const FAKE_SANDBOX = `<!doctype html><html lang="en"><title>Sandbox</title><button>Run</button><button id="subscribe">Subscribe</button><pre></pre><script>
  const { searchParams } = new URL(location.href);
  const headers = JSON.parse(decodeURIComponent(searchParams.get('defaultHeaders')));
  parent.postMessage({ name: 'ExplorerListeningForHandshake' }, '*');
  document.querySelector('#subscribe').onclick = () => parent.postMessage({
    name: 'ExplorerSubscriptionRequest', operationId: '2', operation: 'subscription { productChanged { pk } }', headers,
    subscriptionUrl: searchParams.get('endpoint').replace('http', 'ws'), protocol: 'graphql-ws',
  }, '*');
  document.querySelector('button').onclick = () => parent.postMessage({
    name: 'ExplorerRequest', operationId: '1', operation: '${ME}',
    endpointUrl: searchParams.get('endpoint'), headers,
  }, '*');
  addEventListener('message', ({ data }) => {
    if (data.name === 'ExplorerResponse') document.querySelector('pre').textContent = JSON.stringify(data.response.data);
  });
</script></html>`;

/** A server and the pages that it serves. */
interface Site {
  server: Pick<RunningServer, 'url'>;
  /** Its BASE_PATH. */
  base: string;
  /** Opens a page in a new browser profile. */
  visit(path: string, options?: BrowserContextOptions): Promise<Visit>;
}

/** A server for the tests of a describe block. */
function useSite(base: string): Site {
  const server = useServer({
    BASE_PATH: base,
    SIGNING_SECRET: TEST_SECRET,
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1',
    // A refresh token that is used twice ends its session at once.
    REFRESH_REUSE_SECONDS: '0',
  });
  return {
    base,
    server,
    async visit(path, options) {
      const opened = await tabs.open([new URL(server.url).origin], options);
      await opened.page.goto(server.url + path);
      return opened;
    },
  };
}

describe('under a BASE_PATH', () => {
  const site = useSite('/shop');

  test('the home page shows the demo users, the version, and links to every page', async () => {
    const { page, errors, foreign } = await site.visit('/', {
      viewport: { width: 1200, height: 1240 },
    });
    const text = await page.locator('body').innerText();
    for (const user of ['alice-demo-1', 'bob-demo-1', 'admin-demo-1']) expect(text).toContain(user);
    expect(text).toContain(`Shopfront ${VERSION}`);
    const links = await page
      .locator('a')
      .evaluateAll((all) => all.map((link) => (link as unknown as { href: string }).href));
    const paths = new Set(links.map((link) => new URL(link).pathname.replace(site.base, '')));
    expect(paths).toEqual(
      new Set([
        '/',
        '/shop',
        '/graphql',
        '/graphiql',
        '/docs',
        '/usage',
        '/openapi.json',
        '/livez',
        '/readyz',
      ]),
    );
    expect(links.filter((link) => !link.startsWith(site.server.url))).toEqual([]);
    await page.getByLabel('barcode').uncheck();
    await page.getByRole('button', { name: 'Run both' }).click();
    await page.getByText('Same answer').waitFor();
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('GraphiQL has examples in its tabs, and all of them run', async () => {
    const { page, errors, foreign } = await site.visit('/graphiql');
    await signInAs(page, 'alice');
    for (const [tab, response] of [
      ['Products', '"totalCount": 1200'],
      ['Me', '"username": "alice"'],
      ['AddItem', '"itemId": "telescope"'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click();
      await runIn(page);
      await responsePane(page, response).waitFor();
    }
    // With their variables.
    await page.getByRole('tab', { name: 'Products' }).click();
    await page
      .locator('.graphiql-editors')
      .filter({ hasText: /"first":\s5/ })
      .waitFor();
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('GraphiQL copies an operation as curl, fetch and Apollo Client, which run unchanged', async () => {
    const query = `query Copied($name: String!) { me { username } products(first: 1, filter: { search: $name }) { totalCount } }`;
    const { page, errors } = await site.visit(
      `/graphiql?${new URLSearchParams({ query, variables: `{"name": "'\`\${x}"}` }).toString()}`,
      { permissions: ['clipboard-read', 'clipboard-write'] },
    );
    const copied = async (what: string): Promise<string> => {
      await page.getByRole('button', { name: 'Copy as code' }).click();
      await page.getByRole('menuitem', { name: `Copy as ${what}`, exact: true }).click();
      await page.getByRole('menuitem').first().waitFor({ state: 'detached' });
      return page.evaluate<string>('navigator.clipboard.readText()');
    };
    await page.locator('.graphiql-query-editor .monaco-editor').first().waitFor();
    expect(await copied('curl')).not.toContain('Authorization');
    await signInAs(page, 'alice');
    const token = await tokenOf(page);
    const run = async (command: string, ...args: string[]): Promise<unknown> => {
      const env = { ...process.env, TOKEN: token };
      return JSON.parse((await promisify(execFile)(command, args, { env })).stdout);
    };
    const inNode = (code: string): Promise<unknown> =>
      run(
        process.execPath,
        '--input-type=module',
        '-e',
        `${code.replaceAll('$TOKEN', token)}\nconsole.log(JSON.stringify({ data }));`,
      );
    const [curl, fetched, apollo] = [
      await copied('curl'),
      await copied('fetch'),
      await copied('Apollo Client'),
    ];
    for (const code of [curl, fetched, apollo]) {
      expect(code).toContain('Bearer $TOKEN');
      expect(code).not.toContain(token);
    }
    const expected = { data: { me: { username: 'alice' }, products: { totalCount: 0 } } };
    expect(await run('bash', '-c', curl)).toEqual(expected);
    expect(await inNode(fetched)).toEqual(expected);
    expect(await inNode(apollo)).toMatchObject({ data: { me: { username: 'alice' } } });
    expect(await copied('curl with my token')).toContain(`Bearer ${token}`);
    expect(errors).toEqual([]);
  });

  test('GraphiQL subscribes, without requests to other sites', async () => {
    const query = 'subscription { productChanged { kind pk } }';
    const { page, errors, foreign } = await site.visit(
      `/graphiql?${new URLSearchParams({ query }).toString()}`,
    );
    await runIn(page);
    const signedIn = await fetch(`${site.server.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
    });
    const { access_token: token } = (await signedIn.json()) as { access_token: string };
    let price = 0;
    await until(async () => {
      await fetch(`${site.server.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({
          query: `mutation { updateProduct(pk: 1, input: { price: ${++price} }) { pk } }`,
        }),
      });
      return (await responsePane(page, '"kind": "CHANGED"').count()) > 0;
    }, 'an event');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('the REST reference runs an operation as the signed-in user, without requests to other sites', async () => {
    const { page, errors, foreign } = await site.visit('/docs', {
      viewport: { width: 1200, height: 1000 },
    });
    const clients = new Set<unknown>();
    page.on('request', (request) => {
      if (/\/(token|users\/me\/)$/.test(request.url()))
        clients.add(request.headers()['apollographql-client-name']);
    });
    await signInAs(page, 'alice');
    const operation = await open(page, 'Get the signed-in user');
    await send(operation);
    // The documented example has the same name.
    const received = operation.locator('.live-responses-table');
    await received.getByText('"alice"', { exact: true }).first().waitFor();
    // The command has a placeholder instead of the token.
    expect(await operation.innerText()).toContain('Authorization: Bearer $TOKEN');
    expect(await page.locator('body').innerText()).not.toContain(await tokenOf(page));
    expect(clients).toEqual(new Set(['shopfront-pages']));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'alice' }).waitFor();
    await send(operation);
    await operation.getByText('Not authenticated').waitFor();
    expect({ errors, foreign }).toEqual({
      errors: [expect.stringContaining('401 (Unauthorized)')],
      foreign: [],
    });
  });

  test('the GraphQL equivalent in the REST reference opens in GraphiQL with the signed-in user', async () => {
    const { page, errors, foreign } = await site.visit('/docs');
    await signInAs(page, 'alice');
    const operation = await open(page, 'Get the signed-in user');
    expect(await operation.innerText()).toMatch(/GraphQL equivalent[^]*me\s*\{/);
    await operation.getByRole('link', { name: 'Open in GraphiQL' }).click();
    await page.waitForURL((url) => url.pathname === `${site.base}/graphiql`);
    await runsAs(page, 'alice');
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('the GraphQL page shows Apollo Sandbox if it loads, without passing it the credential', async () => {
    const { page, errors, foreign } = await site.visit('/');
    await page.route(`${SANDBOX}/**`, (route) =>
      route.fulfill({ contentType: 'text/html', body: FAKE_SANDBOX }),
    );
    // The browser reports no requests for icons.
    await page.addInitScript(
      '{ const { fetch } = window; window.requested = []; window.fetch = (at, ...how) => (requested.push(at), fetch(at, ...how)); }',
    );
    await page.goto(`${site.server.url}/graphql?${new URLSearchParams({ query: ME }).toString()}`);
    await signInAs(page, 'alice');
    const frame = page.frameLocator('iframe');
    await frame.getByRole('button', { name: 'Run' }).click();
    await frame.locator('pre').filter({ hasText: '{"me":{"username":"alice"}}' }).waitFor();
    await page.locator('.notice').waitFor({ state: 'detached' });
    const { searchParams } = new URL((await page.locator('iframe').getAttribute('src')) ?? '');
    expect(searchParams.get('endpoint')).toBe(`${site.server.url}/graphql`);
    expect(decodeURIComponent(searchParams.get('defaultDocument') ?? '')).toBe(ME);
    expect(decodeURIComponent(searchParams.get('defaultHeaders') ?? '')).toBe(
      '{"Authorization":"Bearer of-the-signed-in-user"}',
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'alice' }).waitFor();
    await frame.getByRole('button', { name: 'Run' }).click();
    await frame.locator('pre').filter({ hasText: '{"me":null}' }).waitFor();
    const requested = await page.evaluate<string[]>('requested');
    await signInAs(page, 'bob');
    const sent: string[] = [];
    const subscribed = new Promise<void>((resolve) => {
      page.on('websocket', (socket) =>
        socket.on('framesent', ({ payload }) => {
          if (sent.push(String(payload)) > 1) resolve();
        }),
      );
    });
    await frame.getByRole('button', { name: 'Subscribe' }).click();
    await subscribed;
    const [init, subscribe] = sent.map((message) => JSON.parse(message) as Record<string, unknown>);
    expect(init).toEqual({
      type: 'connection_init',
      payload: { Authorization: `Bearer ${await tokenOf(page)}` },
    });
    expect(subscribe).toMatchObject({ type: 'subscribe' });
    expect(
      requested.filter(
        (address) => !address.startsWith(`${site.server.url}/`) || address.endsWith('/favicon.ico'),
      ),
    ).toEqual([]);
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test('a session continues on other pages, and signing out ends it', async () => {
    const { page, errors } = await site.visit('/');
    await signInAs(page, 'bob');
    await page.goto(`${site.server.url}/docs`);
    await page.getByText('Signed in as bob').waitFor();
    const token = await tokenOf(page);
    const me = async () =>
      (
        await fetch(`${site.server.url}/users/me/`, {
          headers: { Authorization: `Bearer ${token}` },
        })
      ).status;
    expect(await me()).toBe(200);
    const ended = page.waitForResponse((response) => response.url().endsWith('/api/v2/auth/login'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    expect((await ended).status()).toBe(200);
    expect(await me()).toBe(401);
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    expect(errors).toEqual([]);
  });
});

describe('in every environment', () => {
  const site = useSite('');

  test('if the site of Apollo Sandbox never responds, the GraphQL page shows GraphiQL instead, with the reason', async () => {
    const { page } = await site.visit('/livez');
    await page.clock.install();
    await page.route(`${SANDBOX}/**`, () => undefined);
    await page.goto(`${site.server.url}/graphql?${new URLSearchParams({ query: ME }).toString()}`);
    const frame = page.locator('iframe');
    await frame.waitFor({ state: 'attached' });
    expect(await page.locator('.notice').innerText()).toBe(
      'Loading Apollo Sandbox from sandbox.embed.apollographql.com. GraphiQL is shown until it has loaded.',
    );
    await signInAs(page, 'alice');
    await runsAs(page, 'alice');
    expect(await frame.isVisible()).toBe(false);
    await page.clock.fastForward(10_000);
    await page.getByText('Apollo Sandbox cannot be loaded').waitFor();
    expect(await frame.count()).toBe(0);
    await runsAs(page, 'alice');
    await page.unroute(`${SANDBOX}/**`);
    await page.route(`${SANDBOX}/**`, (route) =>
      route.fulfill({ contentType: 'text/html', body: FAKE_SANDBOX }),
    );
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'Show Apollo Sandbox' }).click();
    await frame.waitFor();
  });

  test.each<[string, BrowserContextOptions]>([
    ['in light colours', {}],
    ['in dark colours', { colorScheme: 'dark' }],
    ['on a phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ])('the REST reference is accessible, %s', async (_how, options) => {
    const { page } = await site.visit('/docs', options);
    await page.getByRole('heading', { name: 'Catalogue' }).waitFor();
    expect(await violationsOf(page)).toEqual([]);
    await send(await open(page, 'Create a product'));
    await page.locator('.live-responses-table').waitFor();
    expect(await violationsOf(page)).toEqual([]);
    expect(
      await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
    ).toBeLessThanOrEqual(0);
  });

  test.each(['/graphiql', '/docs', '/usage'])('the bar of %s is accessible', async (path) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page } = await site.visit(path, { colorScheme });
      await page.getByText('other …').click();
      expect(await violationsOf(page, '.bar')).toEqual([]);
    }
  });

  describe('after 30 minutes', () => {
    // Makes the server reject the token of the tab. With `known`, the tab also sees that it expired,
    // this many seconds ago.
    async function expire(
      page: Page,
      { known, ago = 1 }: { known: boolean; ago?: number },
    ): Promise<void> {
      const session = await page.evaluate<{ token: string }>(
        'JSON.parse(Object.values({ ...sessionStorage })[0])',
      );
      const claims = JSON.parse(
        Buffer.from(session.token.split('.')[1] ?? '', 'base64url').toString(),
      ) as object;
      const token = forge({ ...claims, exp: Math.floor(Date.now() / 1000) - ago });
      const changed = JSON.stringify({
        ...session,
        token,
        ...(known && { expiresAt: Date.now() - 1000 }),
      });
      await page.evaluate(
        `sessionStorage.setItem(Object.keys(sessionStorage)[0], ${JSON.stringify(changed)})`,
      );
    }

    // Records the paths and statuses of all later responses.
    function responsesOf(page: Page): [string, number][] {
      const recorded: [string, number][] = [];
      page.on('response', (response) => {
        const path = new URL(response.url()).pathname;
        if (!path.startsWith('/assets/')) recorded.push([path, response.status()]);
      });
      return recorded;
    }

    test('GraphiQL renews the access token before it sends an operation', async () => {
      const { page, errors } = await site.visit(
        `/graphiql?${new URLSearchParams({ query: ME }).toString()}`,
      );
      await signInAs(page, 'alice');
      await expire(page, { known: true });
      const responses = responsesOf(page);
      await runsAs(page, 'alice');
      expect(responses).toEqual([
        ['/token', 200],
        ['/graphql', 200],
      ]);
      await page.getByText('Signed in as alice').waitFor();
      expect(errors).toEqual([]);
    });

    test('a tab and its duplicate stay signed in, because they share renewed tokens', async () => {
      const { page } = await site.visit(
        `/graphiql?${new URLSearchParams({ query: ME }).toString()}`,
      );
      await signInAs(page, 'alice');
      const [copy] = await Promise.all([
        page.waitForEvent('popup'),
        page.evaluate('void open(location.href)'),
      ]);
      // It has read the schema, with the token of its duplicate.
      await copy.waitForResponse(`${site.server.url}/graphql`);
      const run = (tab: Page) =>
        Promise.all([tab.waitForResponse(`${site.server.url}/graphql`), runIn(tab)]);
      for (const [first, second] of [
        [page, copy],
        [copy, page],
      ] as const) {
        // Other tokens, so that equal ones are renewed ones.
        await expire(first, { known: true });
        await expire(second, { known: true, ago: 60 });
        await run(first);
        await until(
          async () => (await tokenOf(second)) === (await tokenOf(first)),
          'the other tab to have the new token',
        );
        const responses = responsesOf(second);
        await run(second);
        expect(responses).toEqual([['/graphql', 200]]);
        await responsePane(second, '"username": "alice"').waitFor();
      }
    });

    test('a request of one user is never repeated as another user who signed in meanwhile', async () => {
      const { page } = await site.visit(
        `/graphiql?${new URLSearchParams({ query: ME }).toString()}`,
      );
      await signInAs(page, 'alice');
      await expire(page, { known: false });
      const paused = Promise.withResolvers<void>();
      await page.route(`${site.server.url}/graphql`, async (route) => {
        await paused.promise;
        await route.continue();
      });
      const requested = page.waitForRequest(`${site.server.url}/graphql`);
      await runIn(page);
      await requested;
      await page.getByRole('button', { name: 'Sign out' }).click();
      await signInAs(page, 'bob');
      const responses = responsesOf(page);
      paused.resolve();
      await responsePane(page, 'bob has signed in meanwhile. Send the request again.').waitFor();
      expect(responses).toEqual([['/graphql', 401]]);
    });
  });

  test('an ended session signs out with a message, and sends nothing without credentials', async () => {
    const { page } = await site.visit(`/graphiql?${new URLSearchParams({ query: ME }).toString()}`);
    await signInAs(page, 'bob');
    await endSession(page);
    await runIn(page);
    const ended = 'The session of bob has ended. Sign in again.';
    await responsePane(page, ended).waitFor();
    expect(await page.locator('#session').getByRole('alert').first().innerText()).toBe(ended);
    await page.getByRole('button', { name: 'bob' }).waitFor();
    await page.getByText('Sent without credentials').waitFor();
    expect(await responsePane(page, '"me": null').count()).toBe(0);
    await signInAs(page, 'bob');
    expect(await page.getByText(ended, { exact: true }).count()).toBe(0);
    await runsAs(page, 'bob');
  });

  async function endSession(page: Page): Promise<void> {
    const token = await tokenOf(page);
    await fetch(`${site.server.url}/api/v2/auth/login`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
    });
  }

  test('without demo users, the bar has a sign-in form', async () => {
    const { page, errors } = await site.visit('/livez');
    // As with a database server.
    await page.route(`${site.server.url}/graphiql`, async (route) => {
      const response = await route.fetch();
      await route.fulfill({
        response: response,
        body: (await response.text()).replace(/"demoUsers":\[[^\]]+\]/, '"demoUsers":[]'),
      });
    });
    await page.goto(`${site.server.url}/graphiql`);
    await page.getByLabel('Username').fill('admin');
    await page.getByLabel('Password').fill('admin-demo-1');
    expect(await page.locator('.bar button').allInnerTexts()).toEqual(['Sign in']);
    expect(await violationsOf(page, '.bar')).toEqual([]);
    await page.keyboard.press('Enter');
    await page.getByText('Signed in as admin').waitFor();
    expect(errors).toEqual([]);
  });

  test('the form shows why a login is rejected, and the limit on failures', async () => {
    const { page } = await site.visit('/docs');
    await page.getByText('other …').click();
    const form = page.locator('.bar form');
    await form.getByLabel('Username').fill('carol');
    await form.getByLabel('Password').fill('not hers');
    await form.getByRole('button', { name: 'Sign in' }).click();
    const alert = form.getByRole('alert');
    await alert.filter({ hasText: /./ }).waitFor();
    expect(await alert.innerText()).toBe('Incorrect username or password.');
    // Typing replaces the wrong password.
    await page.keyboard.type('x');
    expect(await form.getByLabel('Password').inputValue()).toBe('x');
    expect(await page.locator('#session').innerText()).toMatch(/^[^]*Incorrect(?![^]*Incorrect)/);
    await form.getByRole('button', { name: 'Sign in' }).click();
    await alert.filter({ hasText: 'Too many' }).waitFor();
    expect(await alert.innerText()).toBe('Too many logins have failed. Try again in a minute.');
    expect(await violationsOf(page, '.bar')).toEqual([]);
  });
});

function tokenOf(page: Page): Promise<string> {
  return page.evaluate<string>('JSON.parse(Object.values({ ...sessionStorage })[0]).token');
}

async function signInAs(page: Page, username: string): Promise<void> {
  await page.locator('.bar').getByRole('button', { name: username }).click();
  await page.getByText(`Signed in as ${username}`).waitFor();
}

async function runsAs(page: Page, username: string): Promise<void> {
  await runIn(page);
  await responsePane(page, `"username": "${username}"`).waitFor();
}

function responsePane(page: Page, text: string): Locator {
  return page.locator('.graphiql-response').filter({ hasText: text });
}

// Opens the operation with this summary in the REST reference.
async function open(page: Page, summary: string): Promise<Locator> {
  const operation = page.locator('.opblock').filter({ hasText: summary });
  await operation.getByRole('button', { name: summary }).first().click();
  await operation.getByRole('button', { name: 'Execute' }).waitFor();
  return operation;
}

// Sends a request of the opened operation.
async function send(operation: Locator): Promise<void> {
  await operation.getByRole('button', { name: 'Execute' }).click();
}
