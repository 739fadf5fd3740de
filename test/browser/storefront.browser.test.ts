import { describe, expect, test } from '../support/jest.ts';
import type { Locator, Page, Route } from 'playwright-core';
import { useStorefront } from '../support/storefront.ts';
import { until } from '../support/until.ts';

const storefront = useStorefront();

const PASSWORDS = { alice: 'alice-demo-1', bob: 'bob-demo-1' };
const NAMES = { alice: 'Alice Archer', bob: 'Bob Baker' };
type Username = keyof typeof PASSWORDS;

const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { accessToken } }';
const ME = '{ me { username } }';
/** The response to an expired access token. */
const EXPIRED = {
  errors: [{ message: 'Could not validate credentials', extensions: { code: 'UNAUTHENTICATED' } }],
};

/** Console messages of Chromium for a response with this status, or for none. */
const REJECTED = /status of 40[01] /;
const UNREACHED = /net::ERR_(FAILED|INTERNET_DISCONNECTED)/;
const BUSY = /status of 503 /;

describe('the catalogue', () => {
  test('is searched during typing, and the search is in the address', async () => {
    const page = await storefront.open('/');
    await page.getByLabel('Search').pressSequentially('lamp oak');
    await expectCount(page, '10 products');
    expect(await namesOn(page)).toEqual(
      await namesOf('orderBy: { field: NAME }, filter: { search: "lamp oak" }'),
    );
    expect(new URL(page.url()).search).toBe('?q=lamp+oak');

    await page.reload();
    await expectCount(page, '10 products');
    expect(await page.getByLabel('Search').inputValue()).toBe('lamp oak');
  });

  test('finds a barcode, and shows a message without results', async () => {
    const page = await storefront.open('/');
    await page.getByLabel('Search').fill('4006380000049');
    await expectCount(page, '1 product');
    expect(await namesOn(page)).toEqual(['Light Oak Table']);
    await page.getByLabel('Search').fill('nothing like it');
    await expectCount(page, 'No products found. Try fewer words.');
  });

  test('is put in order, Z to A', async () => {
    const page = await storefront.open('/?q=lamp');
    await expectCount(page, '24 of 100 products');
    await page.getByLabel('Sort by').selectOption({ label: 'Name, Z to A' });
    const expected = await namesOf(
      'orderBy: { field: NAME, direction: DESC }, filter: { search: "lamp" }',
    );
    await page
      .getByRole('heading', { level: 2 })
      .first()
      .getByText(expected[0] ?? '', { exact: true })
      .waitFor();
    expect(await namesOn(page)).toEqual(expected);
    expect(new URL(page.url()).search).toBe('?q=lamp&sort=name-desc');
  });

  test('loads more when its end becomes visible, to the last product, without duplicates', async () => {
    const page = await storefront.open('/?q=oak');
    await expectCount(page, '24 of 120 products');
    for (const shown of [
      '48 of 120 products',
      '72 of 120 products',
      '96 of 120 products',
      '120 products',
    ]) {
      await page.evaluate('scrollTo(0, document.body.scrollHeight)');
      await expectCount(page, shown);
    }
    const names = await namesOn(page);
    expect(new Set(names).size).toBe(120);
    expect(names).toEqual(
      await namesOf('orderBy: { field: NAME }, filter: { search: "oak" }', 100).then((first) => [
        ...first,
        ...names.slice(100),
      ]),
    );
    expect(await page.getByRole('button', { name: 'Load more' }).count()).toBe(0);
  });

  test('shows a product with its price and barcode, and the link back keeps the search', async () => {
    const page = await storefront.open('/?q=light+oak+table');
    await page.getByRole('link', { name: 'Light Oak Table' }).click();
    await page.getByRole('heading', { level: 1, name: 'Light Oak Table' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/shop/products/5');
    expect(await page.title()).toBe('Light Oak Table · Shopfront');
    await page.getByText('€325.95').waitFor();
    await page.getByText('4006380000049').waitFor();
    await page.getByRole('link', { name: '← Catalogue' }).click();
    await expectCount(page, '1 product');
    expect(new URL(page.url()).search).toBe('?q=light+oak+table');
  });
});

describe('sign in', () => {
  test('stores no access token and no password in the browser, and no credentials in other tabs', async () => {
    const page = await signedIn('bob');
    const stored = await page.evaluate(
      'JSON.stringify([Object.keys(sessionStorage), Object.keys(localStorage), document.cookie])',
    );
    expect(JSON.parse(String(stored))).toEqual([['shopfront.refresh-token'], [], '']);
    const other = await page.context().newPage();
    await other.goto(storefront.url);
    await other.getByRole('link', { name: 'Sign in' }).waitFor();
  });
});

describe('the account', () => {
  test('lists the open sessions, and ends another one', async () => {
    const page = await signedIn('alice', '/account');
    const token = await tokenOf('alice');
    await page.reload();
    const sessions = page.getByRole('region', { name: 'Open sessions' });
    await sessions.getByText('this one', { exact: true }).waitFor();
    const others = sessions.getByRole('button', { name: 'End the session on till' });
    const before = await others.count();
    // The newest session is first, which is that of the token.
    await others.first().click();
    await page.getByRole('status').getByText('The session on till has ended.').waitFor();
    expect(await others.count()).toBe(before - 1);
    expect((await storefront.query(ME, {}, token)).errors?.[0]?.extensions.code).toBe(
      'UNAUTHENTICATED',
    );
    await page.reload();
    await sessions.getByText('this one', { exact: true }).waitFor();
    expect(await others.count()).toBe(before - 1);
  });

  test('adds an item and removes it', async () => {
    const page = await signedIn('bob', '/account');
    const items = page.getByRole('region', { name: 'Items' });
    await items.getByLabel('New item').fill('compass');
    await items.getByRole('button', { name: 'Add' }).click();
    await items.getByRole('listitem').filter({ hasText: 'compass' }).waitFor();
    await until(
      async () => (await items.getByLabel('New item').inputValue()) === '',
      'the empty field',
    );
    await page.reload();
    // The page shows the change before the response.
    const removed = page.waitForResponse(
      (response) => response.request().postData()?.includes('RemoveItem') ?? false,
    );
    await items.getByRole('button', { name: 'Remove compass' }).click();
    await items.getByText('compass').waitFor({ state: 'detached' });
    await removed;
    await page.reload();
    await items.getByText('rucksack').waitFor();
    expect(await items.getByText('compass').count()).toBe(0);
  });
});

describe('the blog', () => {
  test('shows a draft to its creator only, until it is published', async () => {
    const alice = await signedIn('alice', '/blog');
    await alice.getByRole('link', { name: 'Write' }).click();
    await alice.getByLabel('Title').fill('A word on kettles');
    await alice.getByLabel('Text').fill('They sing.\n\nSome of them.');
    await alice.getByRole('button', { name: 'Save as draft' }).click();
    await alice.getByRole('heading', { name: 'A word on kettles' }).waitFor();
    await alice.getByText('Draft', { exact: true }).waitFor();

    const bob = await signedIn('bob', '/blog');
    await bob.getByRole('link', { name: 'Opening day' }).first().waitFor();
    expect(await bob.getByText('A word on kettles').count()).toBe(0);
    await bob.goto(alice.url());
    await bob.getByRole('heading', { name: 'There is no such entry' }).waitFor();

    await alice.getByRole('button', { name: 'Publish' }).click();
    await alice.getByRole('status').getByText('It is published.').waitFor();
    await bob.reload();
    await bob.getByRole('heading', { name: 'A word on kettles' }).waitFor();
    expect(await bob.getByRole('button', { name: 'Unpublish' }).count()).toBe(0);
    expect(await bob.getByRole('link', { name: 'Edit' }).count()).toBe(0);

    await alice.getByRole('button', { name: 'Unpublish' }).click();
    await alice.getByText('Draft', { exact: true }).waitFor();
    await bob.reload();
    await bob.getByRole('heading', { name: 'There is no such entry' }).waitFor();
  });
});

describe('a new product', () => {
  test('shows errors at wrong fields, and then is in the catalogue', async () => {
    const page = await signedIn('alice', '/', REJECTED);
    await page.getByRole('link', { name: 'New product' }).click();
    const barcode = page.getByLabel('Barcode (EAN-13)');
    await page.getByLabel('Name', { exact: true }).fill('Indigo ink');
    await barcode.fill('590 1234 12345');
    await page.getByText('The thirteenth digit is 7.').waitFor();
    await barcode.fill('590 1234 12345 6');
    await page.getByLabel('Price').fill('0.005');
    await page.getByRole('button', { name: 'Add the product' }).click();
    await page.getByText('Invalid check digit; expected 7').waitFor();
    await page.getByText('A price has at most 2 decimal places').waitFor();
    expect(await barcode.getAttribute('aria-invalid')).toBe('true');
    expect(await isFocused(barcode)).toBe(true);
    expect(await page.getByLabel('Name', { exact: true }).getAttribute('aria-invalid')).toBe(
      'false',
    );

    await barcode.fill('590 1234 12345 7');
    await page.getByLabel('Price').fill('12.50');
    await page.getByLabel('Name', { exact: true }).fill('');
    await page.getByRole('button', { name: 'Add the product' }).click();
    await page.getByText('String should have at least 1 character').waitFor();
    expect(await isFocused(page.getByLabel('Name', { exact: true }))).toBe(true);

    await page.getByLabel('Name', { exact: true }).fill('Indigo ink');
    await page.getByRole('button', { name: 'Add the product' }).click();
    await page.getByRole('heading', { level: 1, name: 'Indigo ink' }).waitFor();
    await page.getByRole('status').getByText('Indigo ink is in the catalogue.').waitFor();
    await page.getByText('€12.50').waitFor();

    await page.getByRole('link', { name: '← Catalogue' }).click();
    await page.getByLabel('Sort by').selectOption('newest');
    await page.getByRole('link', { name: 'Indigo ink' }).waitFor();
  });

  test('is not shown to users who may not write', async () => {
    const page = await signedIn('bob', '/');
    await page.getByRole('link', { name: NAMES.bob }).waitFor();
    expect(await page.getByRole('link', { name: 'New product' }).count()).toBe(0);
    await page.goto(`${storefront.url}/products/new`);
    await page.getByRole('heading', { name: 'You do not have access' }).waitFor();
    expect(await page.getByRole('textbox').count()).toBe(0);
    await page.getByRole('link', { name: 'Blog' }).click();
    await page.getByRole('link', { name: 'Opening day' }).first().waitFor();
    expect(await page.getByRole('link', { name: 'Write' }).count()).toBe(0);
  });
});

describe('a session', () => {
  test('is refreshed once for all concurrent requests', async () => {
    const page = await signedIn('alice', '/?q=wide+slate+tray', REJECTED);
    await page.getByRole('link', { name: 'Wide Slate Tray' }).click();
    await page.getByRole('button', { name: 'Add to my items' }).waitFor();
    const sent = operationsOf(page);
    const rejected: Route[] = [];
    await page.route(storefront.api, async (route) => {
      if (rejected.length === 2) return route.continue();
      rejected.push(route);
      if (rejected.length === 2)
        await Promise.all(rejected.map((one) => respondWith(one, 401, EXPIRED)));
    });
    await page.getByRole('button', { name: 'Add to my items' }).click();
    await page.getByRole('link', { name: 'Blog' }).click();
    await page.getByRole('link', { name: 'Opening day' }).first().waitFor();
    await page.getByRole('link', { name: NAMES.alice }).click();
    await page.getByRole('button', { name: 'Remove Wide Slate Tray' }).waitFor();
    expect(sent.toSorted()).toEqual(['Account', 'AddItem', 'AddItem', 'Blog', 'Blog', 'Refresh']);
  });

  test('that was ended elsewhere redirects to sign in, with a message, and back', async () => {
    const page = await signedIn('bob', '/', REJECTED);
    await storefront.query('mutation { logoutEverywhere { ended } }', {}, await tokenOf('bob'));
    await page.getByRole('link', { name: 'Blog' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await page
      .getByRole('status')
      .getByText('Your session has ended. Please sign in again.')
      .waitFor();
    expect(await refreshTokenIn(page)).toBeNull();
    await fillIn(page, 'bob');
    await page.getByRole('heading', { name: 'Blog' }).waitFor();
    expect(await page.getByText('Your session has ended').count()).toBe(0);
  });

  test('ends on the server at sign out, and leaves no data', async () => {
    const page = await signedIn('bob', '/account');
    await page.getByRole('region', { name: 'Profile' }).waitFor();
    const refreshToken = await refreshTokenIn(page);
    await page.getByRole('button', { name: 'Sign out' }).first().click();
    await page.getByRole('status').getByText('You are signed out.').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    expect(await refreshTokenIn(page)).toBeNull();
    const response = await storefront.query(
      'mutation ($t: String!) { refresh(refreshToken: $t) { tokenType } }',
      { t: refreshToken },
    );
    expect(response.errors?.[0]?.extensions.code).toBe('UNAUTHENTICATED');
    await page.goBack();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await page.getByText('bob@shop.example').count()).toBe(0);
  });
});

describe('failures', () => {
  test('requests to a busy shop are retried without a message', async () => {
    const page = await storefront.open('/nowhere', {}, BUSY);
    const busy = {
      errors: [
        { message: 'Service unavailable', extensions: { code: 'UNAVAILABLE', retryAfter: 1 } },
      ],
    };
    const statuses = [503, 200];
    await page.route(storefront.api, (route) => {
      const status = statuses.shift();
      return status === undefined
        ? route.continue()
        : respondWith(route, status, status === 200 ? { ...busy, data: null } : busy);
    });
    await page.getByRole('main').getByRole('link', { name: 'See the catalogue' }).click();
    await expectCount(page, /of 1,2\d\d products/);
    expect(statuses).toEqual([]);
  });

  test('an unreachable shop is reported, with a button to retry', async () => {
    const page = await storefront.open('/nowhere', {}, UNREACHED);
    await page.context().setOffline(true);
    await page.getByRole('main').getByRole('link', { name: 'See the catalogue' }).click();
    await page
      .getByRole('alert')
      .getByText('The shop cannot be reached. Check your connection, then try again.')
      .waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await expectCount(page, /of 1,2\d\d products/);
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});

describe('prices', () => {
  test('change in open pages when another client changes them', async () => {
    const [list, product] = [
      await storefront.open('/?q=wide+slate+tray'),
      await storefront.open('/products/1200'),
    ];
    for (const page of [list, product]) await page.getByText('€32.95').waitFor();
    await setPrice(1200, '29.5');
    for (const page of [list, product]) await page.getByText('€29.50').waitFor();
    await setPrice(1200, '28');
    for (const page of [list, product]) await page.getByText('€28.00').waitFor();
  });
});

describe('a link in a mail', () => {
  const PASSWORD = 'a long password';
  const register = async (email: string) => {
    await storefront.query('mutation ($email: String!) { register(input: { email: $email }) }', {
      email,
    });
    return storefront.linkTo(email);
  };
  const addressOf = (page: Page) => new URL(page.url());

  test('confirms an address, and its account can sign in; the token is in no address', async () => {
    const page = await storefront.open('/', {}, REJECTED);
    const link = await register('dora@shop.example');
    expect(link.startsWith(`${storefront.server}/shop#confirm=`)).toBe(true);
    await page.goto(link);
    await page.getByRole('heading', { name: 'Confirm your address' }).waitFor();
    expect([addressOf(page).pathname, addressOf(page).hash]).toEqual(['/shop/confirm', '']);
    expect(await page.evaluate('JSON.stringify(history.state)')).not.toContain(link.split('=')[1]);

    await page.getByLabel('Username').fill('alice');
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByText('Check the marked fields.').waitFor();
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page.getByRole('alert').getByText('User alice already exists.').waitFor();
    await page.getByLabel('Username').fill('dora');
    await page.getByLabel('Name', { exact: true }).fill('Dora Dale');
    await page.getByRole('button', { name: 'Create the account' }).click();
    await page
      .getByRole('status')
      .getByText('Your address is confirmed. Sign in as dora.')
      .waitFor();
    await page.getByLabel('Username').fill('dora');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('link', { name: 'Dora Dale' }).waitFor();
  });

  test('sets a new password, and ends the session of the tab', async () => {
    const page = await storefront.open('/sign-in', {}, REJECTED);
    await fillIn(page, 'bob');
    await page.getByRole('link', { name: NAMES.bob }).waitFor();
    await storefront.query('mutation { requestPasswordReset(user: "bob") }');
    const { hash } = new URL(await storefront.linkTo('bob@shop.example'));
    // In the tab that already shows the storefront.
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.getByRole('heading', { name: 'Set a new password' }).waitFor();
    expect([addressOf(page).pathname, addressOf(page).hash]).toEqual(['/shop/reset', '']);
    await page.getByLabel('New password').fill('short');
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page.getByText('Check the marked fields.').waitFor();
    await page.getByLabel('New password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Set the password' }).click();
    await page
      .getByRole('status')
      .getByText('The password of bob is changed. Sign in with the new one.')
      .waitFor();
    expect(await refreshTokenIn(page)).toBeNull();
    await fillIn(page, 'bob');
    await page.getByText('Incorrect username or password.').waitFor();
    await fillIn(page, 'bob', PASSWORD);
    await page.getByRole('link', { name: NAMES.bob }).waitFor();
  });
});

async function setPrice(pk: number, price: string): Promise<void> {
  const { data } = await storefront.query(
    'mutation ($pk: ID!, $price: Price!) { updateProduct(pk: $pk, input: { price: $price }) { pk } }',
    { pk, price },
    await tokenOf('alice'),
  );
  expect(data.updateProduct.pk).toBe(String(pk));
}

async function signedIn(username: Username, path = '/', expected?: RegExp): Promise<Page> {
  const page = await storefront.open('/sign-in', {}, expected);
  await fillIn(page, username);
  await page.getByRole('link', { name: NAMES[username] }).waitFor();
  await expectCount(page, /of 1,2\d\d products/);
  if (path !== '/') {
    await page.goto(storefront.url + path);
    // Waits for the refresh, because leaving during it would end the session.
    await page.getByRole('link', { name: NAMES[username] }).waitFor();
  }
  return page;
}

async function fillIn(
  page: Page,
  username: string,
  password = PASSWORDS[username as Username],
): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function tokenOf(username: Username): Promise<string> {
  return (await storefront.query(LOGIN, { username: username, password: PASSWORDS[username] })).data
    .login.accessToken;
}

function refreshTokenIn(page: Page): Promise<unknown> {
  return page.evaluate('sessionStorage.getItem("shopfront.refresh-token")');
}

/** Waits until the catalogue shows this count. */
async function expectCount(page: Page, count: string | RegExp): Promise<void> {
  await page.getByRole('status').getByText(count, { exact: true }).waitFor();
}

function namesOn(page: Page): Promise<string[]> {
  return page.getByRole('main').getByRole('listitem').getByRole('heading').allTextContents();
}

async function namesOf(args: string, first = 24): Promise<string[]> {
  const { data } = await storefront.query(
    `{ products(first: ${first}, ${args}) { nodes { name } } }`,
  );
  return data.products.nodes.map(({ name }: { name: string }) => name);
}

/** Records the names of all later operations of the page. */
function operationsOf(page: Page): string[] {
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url() !== storefront.api || request.method() !== 'POST') return;
    const { operationName } = request.postDataJSON() as { operationName: string };
    sent.push(operationName);
  });
  return sent;
}

function respondWith(route: Route, status: number, body: object): Promise<void> {
  return route.fulfill({
    status,
    headers: { 'Access-Control-Allow-Origin': '*' },
    contentType: 'application/graphql-response+json',
    body: JSON.stringify(body),
  });
}

function isFocused(target: Locator): Promise<boolean> {
  return target.evaluate((element) => element.ownerDocument.activeElement === element);
}
