import { beforeEach, expect, test } from '../support/jest.ts';
import { writeFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import * as usage from '../../src/features/rest-usage/rest-usage.service.ts';
import { useBrowser, violationsOf, type Visit } from '../support/browser.ts';
import { PASSWORD, useShop, type Shop } from '../support/shop.ts';

const tabs = useBrowser();
const shop = useShop({ V1_DEPRECATION: '2027-01-31/2027-12-31' });
const undated = useShop();

const DAY_MS = 86_400_000;
const OLD = 'GET /api/v1/shop/products';
const NEW = 'GET /api/v2/shop/products';

/** Calls on each day, from this many days before today. */
type Calls = readonly [endpoint: string, client: string, subject: string, perDay: number[]];

/** Clients that grow, dwindle and are gone. */
const CLIENTS: readonly Calls[] = [
  [NEW, 'app/2', 'bea', Array.from({ length: 60 }, (_, day) => Math.floor(day / 2))],
  [
    OLD,
    'register/1.4',
    '',
    Array.from({ length: 90 }, (_, day) => Math.max(1, 20 - Math.floor(day / 4))),
  ],
  [OLD, 'till/1', 'carl', [...Array<number>(50).fill(9), ...Array<number>(20).fill(0)]],
  [
    'POST /token',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)',
    'dan',
    [4, 4],
  ],
];

async function call(of: Shop, calls: readonly Calls[]): Promise<void> {
  const now = of.now().getTime();
  for (const [endpoint, client, subject, perDay] of calls)
    for (const [index, count] of perDay.entries())
      for (let made = 0; made < count; made++)
        of.calls.count(
          endpoint,
          client,
          subject,
          new Date(now - (perDay.length - 1 - index) * DAY_MS),
        );
  await usage.store(of.context(), of.calls);
}

async function visit(
  of: Shop,
  path = '/usage',
  options: BrowserContextOptions = {},
): Promise<Visit> {
  const opened = await tabs.open([new URL(of.url).origin], options);
  await opened.page.goto(of.url + path);
  return opened;
}

async function signIn(page: Page, username: string): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText(`Signed in as ${username}`).waitFor();
}

/** The text of each line of the table. */
async function linesOf(page: Page): Promise<string[]> {
  await page.locator('#lines:not([aria-busy]) > *').waitFor();
  const rows = await page.getByRole('row').allInnerTexts();
  return rows.slice(1).map((row) => row.replaceAll(/\s+/g, ' ').trim());
}

async function leftOf(page: Page): Promise<string> {
  await page.locator('#left > *').first().waitFor();
  return (await page.locator('#left').innerText()).replaceAll(/\s+/g, ' ').trim();
}

beforeEach(async () => {
  // Noon, so that the day does not end during a test.
  const now = shop.now().getTime();
  shop.advanceClock((Math.floor(now / DAY_MS) + 1.5) * DAY_MS - now);
  await shop.makeUser({ username: 'reader', scopes: ['users:read'] });
});

test('the page tells a reader who may not see usage what to sign in as', async () => {
  await call(shop, CLIENTS);
  await shop.makeUser({ username: 'ada', scopes: ['audit:read'] });
  const { page, errors, foreign } = await visit(shop);
  const main = page.locator('main');
  await main.getByText('You are not signed in.').waitFor();
  await main.getByText('Sign in as a user with the scope users:read.').waitFor();
  expect(await violationsOf(page)).toEqual([]);
  await signIn(page, 'ada');
  await main.getByText('ada does not have the scope users:read.').waitFor();
  expect(await main.innerText()).not.toContain('register');
  await page.getByRole('button', { name: 'Sign out' }).click();
  await main.getByText('You are not signed in.').waitFor();
  await signIn(page, 'reader');
  await main.getByText('register/1.4').first().waitFor();
  expect(await main.getByText('Sign in').isVisible()).toBe(false);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await main.getByText('You are not signed in.').waitFor();
  expect(await main.innerText()).not.toContain('register');
  expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
});

test('the page shows calls by endpoint and client with a graph, and who is left on deprecated paths', async () => {
  await call(shop, CLIENTS);
  const { page, errors, foreign } = await visit(shop);
  await signIn(page, 'reader');
  const today = shop.now().toISOString().slice(0, 10);
  const ago = (days: number) =>
    new Date(shop.now().getTime() - days * DAY_MS).toISOString().slice(0, 10);
  expect(await linesOf(page)).toEqual([
    `${NEW} app/2 as bea 870 ${today} Growing 266 → 364`,
    `${OLD} deprecated register/1.4 850 ${today} Dwindling 46 → 14`,
    expect.stringMatching(/^POST \/token Mozilla\/5.0 .* as dan 8 .* Growing 0 → 8$/),
    `${OLD} deprecated till/1 as carl 450 ${ago(20)} Gone 72 → 0`,
  ]);
  expect(await leftOf(page)).toBe(
    '1 client has called /api/v1/ in the last 14 days: register/1.4 Dwindling 46 → 14',
  );
  expect(await page.getByRole('img').count()).toBe(4);
  await page.getByRole('img', { name: `870 calls in 90 days, most on ${today}: 29` }).waitFor();
  expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
});

test('a filter, which a link can have, shows deprecated paths only', async () => {
  await call(shop, CLIENTS);
  const { page } = await visit(shop);
  await signIn(page, 'reader');
  expect(await linesOf(page)).toHaveLength(4);
  const filter = page.getByLabel('Deprecated paths only');
  await filter.focus();
  await page.keyboard.press('Space');
  await page.getByText('POST /token').waitFor({ state: 'detached' });
  expect(await linesOf(page)).toEqual([
    expect.stringContaining('register/1.4'),
    expect.stringContaining('till/1'),
  ]);
  await page.reload();
  expect(await linesOf(page)).toHaveLength(2);
  await filter.uncheck();
  await page.getByText('POST /token').waitFor();
  expect(new URL(page.url()).search).toBe('');
});

test('fifty lines are shown at first, and the others on request', async () => {
  await call(
    shop,
    Array.from({ length: 60 }, (_, index) => [NEW, `client ${index}`, '', [index + 1]] as const),
  );
  const { page } = await visit(shop);
  await signIn(page, 'reader');
  expect(await linesOf(page)).toHaveLength(50);
  await page.getByRole('button', { name: 'Show more (50 of 60)' }).click();
  await page.getByText('client 0').waitFor();
  const lines = await linesOf(page);
  expect(lines.map((line) => Number(/client (\d+)/.exec(line)?.[1]))).toEqual(
    Array.from({ length: 60 }, (_, index) => 59 - index),
  );
  expect(await page.getByRole('button', { name: 'Show more' }).count()).toBe(0);
});

test('clients that are gone hide none that is left', async () => {
  const gone = Array.from({ length: 101 }, (_, index): Calls => [
    OLD,
    `gone/${index}`,
    '',
    [9, ...Array<number>(40).fill(0)],
  ]);
  await call(shop, [...gone, [OLD, 'last/1', '', [1]]]);
  const { page } = await visit(shop);
  await signIn(page, 'reader');
  expect(await leftOf(page)).toMatch(
    /^1 client has called \/api\/v1\/ in the last 14 days: last\/1 /,
  );
  expect((await linesOf(page))[0]).toContain('last/1');
});

test('the page says when nobody is left, and when no path is deprecated', async () => {
  await call(
    shop,
    CLIENTS.filter(([, client]) => client === 'till/1'),
  );
  const { page } = await visit(shop);
  await signIn(page, 'reader');
  expect(await leftOf(page)).toBe('None: no client has called /api/v1/ in the last 14 days.');
  const other = (await visit(undated)).page;
  await undated.makeUser({ username: 'other', scopes: ['users:read'] });
  await signIn(other, 'other');
  expect(await leftOf(other)).toBe('No path is deprecated. V1_DEPRECATION sets the date.');
  await other.getByLabel('Deprecated paths only').check();
  await other.getByText('No calls of deprecated paths.').waitFor();
});

test.each([
  ['desktop', 'light', { width: 1200, height: 900 }],
  ['desktop', 'dark', { width: 1200, height: 900 }],
  ['phone', 'light', { width: 390, height: 844 }],
  ['phone', 'dark', { width: 390, height: 844 }],
] as const)(
  'the page is accessible and fits a %s, in %s colours',
  async (device, colorScheme, viewport) => {
    await call(shop, CLIENTS);
    const { page } = await visit(shop, '/usage', { colorScheme, viewport });
    await signIn(page, 'reader');
    expect(await linesOf(page)).toHaveLength(4);
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
    // With SCREENSHOTS=1, writes the pictures of the documents.
    const picture = await page.screenshot({ type: 'jpeg', quality: 75 });
    if (process.env['SCREENSHOTS'] === '1')
      await writeFile(`docs/screenshots/usage-${device}-${colorScheme}.jpg`, picture);
  },
);
