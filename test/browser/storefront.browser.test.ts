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
const CUT = /net::ERR_/;
const BUSY = /status of 503 /;

/** URL of an event stream of products. */
const STREAM = /productChanged/;

describe('the catalogue', () => {
  test('is ordered by name, and shows the number of products', async () => {
    const page = await storefront.open('/');
    await expectCount(page, '24 of 1,200 products');
    expect(await namesOn(page)).toEqual(await namesOf('orderBy: { field: NAME }'));
    expect(await page.title()).toBe('Catalogue · Shopfront');
  });

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

  test.each([
    ['Name, Z to A', 'name-desc', '{ field: NAME, direction: DESC }'],
    ['Price, lowest first', 'price', '{ field: PRICE }'],
    ['Price, highest first', 'price-desc', '{ field: PRICE, direction: DESC }'],
    ['Newest first', 'newest', '{ field: CREATED_AT, direction: DESC }'],
    ['Oldest first', 'oldest', '{ field: CREATED_AT }'],
  ])('is put in order: %s', async (label, sort, orderBy) => {
    const page = await storefront.open('/?q=lamp');
    await expectCount(page, '24 of 100 products');
    await page.getByLabel('Sort by').selectOption({ label });
    const expected = await namesOf(`orderBy: ${orderBy}, filter: { search: "lamp" }`);
    await page
      .getByRole('heading', { level: 2 })
      .first()
      .getByText(expected[0] ?? '', { exact: true })
      .waitFor();
    expect(await namesOn(page)).toEqual(expected);
    expect(new URL(page.url()).search).toBe(`?q=lamp&sort=${sort}`);
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

  test('loads more by button', async () => {
    const page = await storefront.open('/nowhere');
    // The end of the list never becomes visible.
    await page.addInitScript('IntersectionObserver.prototype.observe = () => undefined');
    await page.goto(`${storefront.url}/?q=oak`);
    await expectCount(page, '24 of 120 products');
    await page.getByRole('button', { name: 'Load more' }).press('Enter');
    await expectCount(page, '48 of 120 products');
    expect(new Set(await namesOn(page)).size).toBe(48);
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

  test.each([
    ['a product', '/products/99999', 'There is no such product'],
    ['what is no number', '/products/oak', 'There is no such product'],
    ['a page', '/nowhere/at/all', 'There is no such page'],
  ])('%s that there is none of is not found', async (_what, path, heading) => {
    const page = await storefront.open(path);
    await page.getByRole('heading', { name: heading }).waitFor();
    expect(await page.title()).toBe(`${heading} · Shopfront`);
    await page.getByRole('main').getByRole('link', { name: 'See the catalogue' }).click();
    await expectCount(page, '24 of 1,200 products');
  });
});

describe('sign in', () => {
  test('fails with a wrong password, with the message of the shop', async () => {
    const page = await storefront.open('/sign-in');
    await fillIn(page, 'alice', 'wrong');
    await page.getByRole('alert').getByText('Incorrect username or password.').waitFor();
    expect(await page.getByRole('button', { name: 'Sign out' }).count()).toBe(0);
  });

  test('is blocked after too many attempts', async () => {
    const page = await storefront.open('/sign-in');
    for (let attempt = 0; attempt < 3; attempt++)
      await storefront.query(LOGIN, { username: 'nobody', password: 'wrong' });
    await fillIn(page, 'nobody', 'wrong');
    await page
      .getByRole('alert')
      .getByText(/^Too many attempts\. Try again in \d+ (seconds|minutes)\.$/)
      .waitFor();
    expect(await refreshTokenIn(page)).toBeNull();
  });

  test('returns to the page that required it', async () => {
    const page = await storefront.open('/account');
    await fillIn(page, 'bob');
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/shop/account');
  });

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
  test('shows the profile', async () => {
    const page = await signedIn('alice', '/account');
    const profile = page.getByRole('region', { name: 'Profile' });
    await profile.getByText('alice@shop.example').waitFor();
    expect(await profile.getByRole('definition').allTextContents()).toEqual([
      'Alice Archer',
      'alice',
      'alice@shop.example',
      'products:writeblog:write',
    ]);
  });

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

  test('ends all sessions after a confirmation', async () => {
    const page = await signedIn('bob', '/account');
    const token = await tokenOf('bob');
    const open = page.getByRole('button', { name: 'Sign out everywhere' });
    await open.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stay signed in' }).click();
    expect((await storefront.query(ME, {}, token)).data.me).toEqual({ username: 'bob' });
    await open.click();
    await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
    await page.getByRole('status').getByText('You are signed out everywhere.').waitFor();
    expect((await storefront.query(ME, {}, token)).errors?.[0]?.extensions.code).toBe(
      'UNAUTHENTICATED',
    );
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

  test('shows an item before the response, and removes it if the shop rejects it', async () => {
    const page = await signedIn('bob', '/account');
    const items = page.getByRole('region', { name: 'Items' });
    const lanterns = items.getByRole('listitem').filter({ hasText: 'lantern' });
    await lanterns.waitFor();
    const release = await delay(page, 'AddItem');
    await items.getByLabel('New item').fill('lantern');
    await items.getByRole('button', { name: 'Add' }).click();
    await lanterns.nth(1).waitFor();
    release();
    await items.getByText('You already have this item').waitFor();
    expect(await lanterns.count()).toBe(1);
    expect(await items.getByLabel('New item').getAttribute('aria-invalid')).toBe('true');
  });

  test('adds a product to the items', async () => {
    const page = await signedIn('bob', '/products/7');
    await page.getByRole('button', { name: 'Add to my items' }).click();
    await page.getByText('Added to your items.').waitFor();
    const name = await page.getByRole('heading', { level: 1 }).textContent();
    await page.getByRole('link', { name: NAMES.bob }).click();
    await page.getByRole('region', { name: 'Items' }).waitFor();
    expect(await page.getByRole('button', { name: `Remove ${name}` }).count()).toBe(1);
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

  test('changes and deletes an entry of the user', async () => {
    const page = await signedIn('alice', '/blog/new');
    await page.getByLabel('Title').fill('Soon gone');
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByText('String should have at least 1 character').waitFor();
    await page.getByLabel('Text').fill('First.');
    await page.getByRole('button', { name: 'Save as draft' }).click();
    await page.getByRole('link', { name: 'Edit' }).click();
    await page.getByLabel('Text').fill('Second.');
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByText('Second.', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('status').getByText('“Soon gone” is deleted.').waitFor();
    await page.getByRole('link', { name: 'Opening day' }).first().waitFor();
    expect(await page.getByRole('link', { name: 'Soon gone' }).count()).toBe(0);
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

  test('shows an error at an existing barcode', async () => {
    const page = await signedIn('alice', '/products/new');
    await page.getByLabel('Name', { exact: true }).fill('A second table');
    await page.getByLabel('Barcode (EAN-13)').fill('4006380000049');
    await page.getByLabel('Price').fill('1');
    await page.getByRole('button', { name: 'Add the product' }).click();
    await page.getByText('Check the marked fields.').waitFor();
    expect(await page.getByLabel('Barcode (EAN-13)').getAttribute('aria-invalid')).toBe('true');
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
  test('continues when its access token has expired', async () => {
    const page = await signedIn('alice', '/', REJECTED);
    const sent = operationsOf(page);
    let rejected = false;
    await page.route(storefront.api, (route) => {
      if (rejected) return route.continue();
      rejected = true;
      return respondWith(route, 401, EXPIRED);
    });
    await page.getByRole('link', { name: 'Blog' }).click();
    await page.getByRole('link', { name: 'Opening day' }).first().waitFor();
    expect(sent).toEqual(['Blog', 'Refresh', 'Blog']);
  });

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

  test('survives a reload; concurrent requests share one refresh', async () => {
    const page = await signedIn('alice', '/account');
    for (let reloaded = 0; reloaded < 3; reloaded++) {
      const sent = operationsOf(page);
      await page.reload();
      await page.getByRole('region', { name: 'Profile' }).waitFor();
      await page.getByRole('link', { name: NAMES.alice }).waitFor();
      expect(sent.toSorted()).toEqual(['Account', 'Refresh', 'Viewer']);
      page.removeAllListeners('request');
    }
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

  test('that was ended elsewhere does not block the catalogue', async () => {
    const page = await signedIn('bob', '/', REJECTED);
    await storefront.query('mutation { logoutEverywhere { ended } }', {}, await tokenOf('bob'));
    await page.getByLabel('Search').fill('oak lamp');
    await expectCount(page, '10 products');
    await page
      .getByRole('status')
      .getByText('Your session has ended. Please sign in again.')
      .waitFor();
    await page.getByRole('link', { name: 'Sign in' }).waitFor();
    expect(await refreshTokenIn(page)).toBeNull();
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

  test('a page of a list that does not load can be retried', async () => {
    const page = await storefront.open('/?q=oak', {}, UNREACHED);
    await expectCount(page, '24 of 120 products');
    await page.context().setOffline(true);
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await page.getByRole('alert').waitFor();
    await page.context().setOffline(false);
    await page.getByRole('button', { name: 'Try again' }).click();
    await expectCount(page, '48 of 120 products');
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('mutations are not sent twice', async () => {
    const page = await signedIn('bob', '/account', UNREACHED);
    const items = page.getByRole('region', { name: 'Items' });
    await items.getByLabel('New item').fill('anchor');
    const sent = operationsOf(page);
    await page.context().setOffline(true);
    await items.getByRole('button', { name: 'Add' }).click();
    await items.getByText('The shop cannot be reached.').waitFor();
    expect(sent).toEqual(['AddItem']);
    expect(await items.getByRole('listitem').filter({ hasText: 'anchor' }).count()).toBe(0);
  });

  test('a part of the app that does not load is reported on its page', async () => {
    const page = await signedIn('bob', '/', UNREACHED);
    await page.route(/AccountPage/, (route) => route.abort());
    await page.getByRole('link', { name: NAMES.bob }).click();
    await page.getByRole('heading', { name: 'Something went wrong' }).waitFor();
    await page.unroute(/AccountPage/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('region', { name: 'Profile' }).waitFor();
    expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual([
      'Your account',
    ]);
  });
});

describe('by keyboard', () => {
  test('search, a product and the way back work with a visible focus', async () => {
    const page = await storefront.open('/');
    await expectCount(page, /of 1,2\d\d products/);
    await page.keyboard.press('Tab');
    expect(await isFocused(page.getByRole('link', { name: 'Skip to the page' }))).toBe(true);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    expect(await isFocused(page.getByLabel('Search'))).toBe(true);
    await page.keyboard.type('oak lamp');
    await expectCount(page, '10 products');
    const [first = ''] = await namesOn(page);
    const card = page.getByRole('link', { name: first });
    await tabTo(page, card);
    expect(await outlineOf(card)).toBe('solid');
    await page.keyboard.press('Enter');

    const heading = page.getByRole('heading', { level: 1, name: first });
    await heading.waitFor();
    expect(await isFocused(heading)).toBe(true);
    const back = page.getByRole('link', { name: '← Catalogue' });
    await tabTo(page, back, 'Shift+Tab');
    expect(await outlineOf(back)).toBe('solid');
    await page.keyboard.press('Enter');
    await expectCount(page, '10 products');
    expect(await isFocused(page.getByRole('heading', { level: 1, name: 'Catalogue' }))).toBe(true);
  });

  test('Back restores the position in the list', async () => {
    const page = await storefront.open('/?q=oak');
    await expectCount(page, '24 of 120 products');
    await page.evaluate('scrollTo(0, document.body.scrollHeight)');
    await expectCount(page, '48 of 120 products');
    const name = (await namesOn(page))[40] ?? '';
    await page.getByRole('link', { name }).click();
    await page.getByRole('heading', { level: 1, name }).waitFor();
    await page.goBack();
    await expectCount(page, /^\d+ of 120 products/);
    await until(async () => Number(await page.evaluate('scrollY')) > 500, 'the scrolled page');
    expect((await namesOn(page))[40]).toBe(name);
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

  test('that change during a cut appear after it, in a list that has seen no change', async () => {
    const page = await openWatching('/?q=narrow+slate+tray');
    await page.getByText('€24.95').waitFor();
    await storefront.cut();
    await setPrice(1199, '23');
    storefront.restore();
    await page.getByText('€23.00').waitFor();
  });

  test('that change during a cut follow from the last change, without loading the list again', async () => {
    const page = await openWatching('/?q=folding+slate+tray');
    await page.getByText('€28.95').waitFor();
    await setPrice(1198, '27');
    await page.getByText('€27.00').waitFor();
    const sent = operationsOf(page);
    await storefront.cut();
    await setPrice(1198, '26');
    storefront.restore();
    await page.getByText('€26.00').waitFor();
    expect(sent).toEqual([]);
  });

  test('are loaded again after a change of many products, and with an expired cursor', async () => {
    const page = await openWatching('/nowhere');
    const expired = 'data: {"errors":[{"message":"","extensions":{"code":"CURSOR_EXPIRED"}}]}';
    const many = 'data: {"data":{"productChanged":{"cursor":"1","product":null}}}';
    const streams = [many, expired].map(
      (data) => `event: next\n${data}\n\nevent: complete\ndata:\n\n`,
    );
    const asked: (string | null)[] = [];
    await page.route(STREAM, (route) => {
      const variables = new URL(route.request().url()).searchParams.get('variables');
      asked.push(variables);
      const body = streams.shift();
      return body === undefined
        ? route.continue()
        : route.fulfill({ contentType: 'text/event-stream', body });
    });
    await page.goto(`${storefront.url}/products/1197`);
    await page.getByText('€27.95').waitFor();
    const sent = operationsOf(page);
    await until(() => asked.length === 3, 'the third stream');
    await until(() => sent.length > 0, 'the reloaded product');
    expect(asked).toEqual(['{}', '{"after":"1"}', '{}']);
    expect(new Set(sent)).toEqual(new Set(['Product']));
  });

  test('are not watched while the page is hidden, and are current when it is shown again', async () => {
    const page = await openWatching('/products/1196');
    await page.getByText('€33.95').waitFor();
    const closed = page.waitForEvent('requestfailed', (request) => STREAM.test(request.url()));
    await setHidden(page, true);
    await closed;
    await setPrice(1196, '21');
    await setHidden(page, false);
    await page.getByText('€21.00').waitFor();
  });
});

describe('a link in a mail', () => {
  const PASSWORD = 'a long password';
  const REJECTED_LINK = 'This link is not valid, was used before, or has expired.';
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

  test.each(['wrong', 'used', 'void because a later one was used'])(
    'that is %s is rejected, and names the remedy',
    async (state) => {
      const email = `${state.length}@shop.example`;
      const page = await storefront.open('/', {}, REJECTED);
      let link = await register(email);
      let used = link;
      if (state.startsWith('void')) {
        await register(email);
        await until(async () => (await storefront.linkTo(email)) !== link, 'the second mail');
        used = await storefront.linkTo(email);
      }
      if (state === 'wrong') link = link.replace(/=.*/, `=${'x'.repeat(43)}`);
      else
        await storefront.query(
          'mutation ($token: String!, $username: String!, $password: String!) { confirmRegistration(input: { token: $token, username: $username, password: $password }) { id } }',
          { token: used.split('=')[1], username: `emil${state.length}`, password: PASSWORD },
        );
      await page.goto(link);
      await page.getByLabel('Username').fill('erna');
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Create the account' }).click();
      await page
        .getByRole('alert')
        .getByText(`${REJECTED_LINK} Register again to get a new link.`)
        .waitFor();
      expect(await page.getByRole('button', { name: 'Create the account' }).count()).toBe(0);
    },
  );

  test('has to be opened again after a reload, because the token is not stored', async () => {
    const page = await storefront.open(`/#reset=${'x'.repeat(43)}`);
    await page.getByLabel('New password').waitFor();
    await page.reload();
    await page.getByText('Open the link in the mail to continue.').waitFor();
    expect(await page.getByLabel('New password').count()).toBe(0);
  });
});

/** Opens a page, and waits until it watches the products. */
async function openWatching(path: string): Promise<Page> {
  const page = await storefront.open('/nowhere', {}, CUT);
  const stream = page.waitForResponse(STREAM);
  await page.goto(storefront.url + path);
  await stream;
  return page;
}

async function setPrice(pk: number, price: string): Promise<void> {
  const { data } = await storefront.query(
    'mutation ($pk: ID!, $price: Price!) { updateProduct(pk: $pk, input: { price: $price }) { pk } }',
    { pk, price },
    await tokenOf('alice'),
  );
  expect(data.updateProduct.pk).toBe(String(pk));
}

async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));`,
  );
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

/** Delays this operation until the returned function is called. */
async function delay(page: Page, operation: string): Promise<() => void> {
  let release = (): void => undefined;
  const released = new Promise<void>((done) => (release = done));
  await page.route(storefront.api, async (route) => {
    if (route.request().postData()?.includes(`"${operation}"`)) await released;
    await route.continue();
  });
  return release;
}

function respondWith(route: Route, status: number, body: object): Promise<void> {
  return route.fulfill({
    status,
    headers: { 'Access-Control-Allow-Origin': '*' },
    contentType: 'application/graphql-response+json',
    body: JSON.stringify(body),
  });
}

async function tabTo(page: Page, target: Locator, key = 'Tab'): Promise<void> {
  for (let pressed = 0; pressed < 20; pressed++) {
    await page.keyboard.press(key);
    if (await isFocused(target)) return;
  }
  throw new Error(`${key} does not focus the element`);
}

function isFocused(target: Locator): Promise<boolean> {
  return target.evaluate((element) => element.ownerDocument.activeElement === element);
}

function outlineOf(target: Locator): Promise<string> {
  return target.evaluate(
    (element) => element.ownerDocument.defaultView?.getComputedStyle(element).outlineStyle ?? '',
  );
}
