import { beforeEach, expect, test } from '../support/jest.ts';
import { writeFile } from 'node:fs/promises';
import type { BrowserContextOptions, Page } from 'playwright-core';
import * as usage from '../../src/features/rest-usage/rest-usage.service.ts';
import { useBrowser, violationsOf, type Visit } from '../support/browser.ts';
import { PASSWORD, useShop, type Shop } from '../support/shop.ts';

const tabs = useBrowser();
const shop = useShop({ V1_DEPRECATION: '2027-01-31/2027-12-31' });

const OLD = 'GET /api/v1/shop/products';
const NEW = 'GET /api/v2/shop/products';

/** Clients, each with its number of calls. */
const CLIENTS = [
  [NEW, 'app/2', 'bea', 40],
  [OLD, 'register/1.4', '', 30],
  [OLD, 'till/1', 'carl', 20],
  ['POST /token', 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36', 'dan', 8],
] as const;

async function call(of: Shop): Promise<void> {
  for (const [endpoint, client, subject, count] of CLIENTS)
    for (let made = 0; made < count; made++) of.calls.count(endpoint, client, subject, of.now());
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

beforeEach(async () => {
  await shop.makeUser({ username: 'reader', scopes: ['users:read'] });
});

test('the page tells a reader who may not see usage what to sign in as', async () => {
  await call(shop);
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

test('the page shows calls by endpoint and client, and a filter, which a link can have', async () => {
  await call(shop);
  const { page, errors, foreign } = await visit(shop);
  await signIn(page, 'reader');
  const today = shop.now().toISOString().slice(0, 10);
  const old = [
    `${OLD} deprecated register/1.4 30 ${today}`,
    `${OLD} deprecated till/1 as carl 20 ${today}`,
  ];
  expect(await linesOf(page)).toEqual([
    `${NEW} app/2 as bea 40 ${today}`,
    ...old,
    expect.stringMatching(/^POST \/token Mozilla\/5.0 .* as dan 8 /),
  ]);
  await page.getByLabel('Endpoint contains').fill('/api/v1/');
  await page.keyboard.press('Enter');
  await page.getByText('POST /token').waitFor({ state: 'detached' });
  expect(await linesOf(page)).toEqual(old);
  await page.reload();
  expect(await linesOf(page)).toEqual(old);
  expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
});

test.each([
  ['desktop', 'light', { width: 1200, height: 900 }],
  ['desktop', 'dark', { width: 1200, height: 900 }],
  ['phone', 'light', { width: 390, height: 844 }],
  ['phone', 'dark', { width: 390, height: 844 }],
] as const)(
  'the page is accessible and fits a %s, in %s colours',
  async (device, colorScheme, viewport) => {
    await call(shop);
    const { page } = await visit(shop, '/usage', { colorScheme, viewport });
    await signIn(page, 'reader');
    expect(await linesOf(page)).toHaveLength(4);
    expect(await violationsOf(page)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(viewport.width);
    // With SCREENSHOTS=1, writes the pictures of the documents, with a fixed date.
    await page.evaluate(
      `for (const time of document.querySelectorAll('time')) time.textContent = '2026-11-27'`,
    );
    const picture = await page.screenshot({ type: 'jpeg', quality: 75 });
    if (process.env['SCREENSHOTS'] === '1')
      await writeFile(`docs/screenshots/usage-${device}-${colorScheme}.jpg`, picture);
  },
);
