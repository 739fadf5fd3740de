import { describe, expect, test } from '../support/jest.ts';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { useBrowser, violationsOf, type Visit } from '../support/browser.ts';
import { until } from '../support/until.ts';
import { useServer } from '../support/use-server.ts';

const PRODUCTS = '/api/v2/shop/products';

const tabs = useBrowser();
const server = useServer();

async function visit(options?: BrowserContextOptions): Promise<Visit> {
  const opened = await tabs.open([new URL(server.url).origin], options);
  await opened.page.goto(server.url);
  await opened.page.getByRole('checkbox').first().waitFor();
  return opened;
}

const button = (page: Page) => page.locator('#run');
const verdict = (page: Page) => page.getByRole('status').last();

async function select(page: Page, endpoint: string): Promise<void> {
  const labels = await page.getByLabel('Endpoint').locator('option').allInnerTexts();
  const label = labels.find((text) => text.endsWith(` ${endpoint}`));
  await page.getByLabel('Endpoint').selectOption({ label: label ?? `no ${endpoint}` });
}

/** Runs both requests and returns the verdict. */
async function run(page: Page): Promise<string> {
  await button(page).click();
  return result(page);
}

async function result(page: Page): Promise<string> {
  await page.locator('#verdict:is(.same, .wrong)').waitFor();
  return verdict(page).innerText();
}

async function signInAs(page: Page, username: string): Promise<void> {
  await page.locator('.bar').getByRole('button', { name: username }).click();
  await page.getByText(`Signed in as ${username}`).waitFor();
}

async function figures(page: Page): Promise<number[]> {
  const cells = await page.locator('.figures .value').allInnerTexts();
  return cells.map((text) => Number(text.replaceAll(',', '')));
}

describe('signed out', () => {
  test.each([
    [`GET ${PRODUCTS}`, /^Same answer · 42 values compared$/],
    ['GET /api/v1/shop/product/1', /^Same answer · 4 values compared$/],
    ['GET /api/v1/shop/products', /^Same answer for the first 100 of 1,2\d\d entries · 400 values/],
    ['POST /token', /^Same answer · 2 values compared$/],
    ['POST /login', /^Same answer · 2 values compared$/],
    ['POST /session/login', /^Same answer · 1 value compared$/],
    ['POST /session/logout', /^Same answer · 1 value compared$/],
    ['GET /api/v2/auth/login', /^Same answer · 1 value compared$/],
    ['POST /api/v2/auth/login', /^Same answer · 1 value compared$/],
  ])('%s has the same answer as its GraphQL equivalent', async (endpoint, expected) => {
    const { page, errors, foreign } = await visit();
    await select(page, endpoint);
    expect(await run(page)).toMatch(expected);
    const measured = await figures(page);
    expect(measured).toHaveLength(6);
    expect(Math.min(...measured)).toBeGreaterThan(0);
    expect({ errors, foreign }).toEqual({ errors: [], foreign: [] });
  });

  test.each(['GET /users/me/', 'GET /users/me/items/', 'GET /api/users', 'GET /blog'])(
    '%s asks to sign in, and runs again after signing in',
    async (endpoint) => {
      const { page } = await visit();
      await select(page, endpoint);
      expect(await run(page)).toBe('Sign in to run this comparison: it needs a user.');
      await verdict(page).getByRole('link', { name: 'Sign in' }).click();
      await page.keyboard.press('Enter');
      await page.getByText('Signed in as alice').waitFor();
      await page.getByText('Same answer').waitFor();
    },
  );

  test('a login comparison ends the sessions that it opened, and shows no key or token in full', async () => {
    const { page } = await visit();
    for (const endpoint of ['POST /token', 'POST /session/login']) {
      await select(page, endpoint);
      const ended: number[] = [];
      page.on('response', (response) => {
        if (response.url().endsWith('/api/v2/auth/login')) ended.push(response.status());
      });
      await run(page);
      await until(() => Promise.resolve(ended.length === 2), 'the end of both sessions');
      expect(ended).toEqual([200, 200]);
      page.removeAllListeners('response');
      expect(await page.locator('main').innerText()).not.toMatch(/[\w-]{40}/);
    }
  });
});

test('differences between the answers are shown', async () => {
  const { page } = await visit();
  await page.route(`${server.url}/graphql`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({
      response,
      body: (await response.text()).replace(/("price":)[\d.]+/, '$10.01'),
    });
  });
  expect(await run(page)).toBe('Different answers: 1 of 42 values differs.');
  await page.getByText(/^products\.nodes\[0\]\.price: [\d.]+ by REST, 0\.01 by GraphQL$/).waitFor();
});

test('without demo users, comparisons that need a password cannot run, with the reason', async () => {
  const { page } = await visit();
  // As with a database server.
  await page.route(server.url, async (route) => {
    const response = await route.fetch();
    const body = (await response.text()).replace(/"demoUsers":\[[^\]]+\]/, '"demoUsers":[]');
    await route.fulfill({ response, body });
  });
  await page.goto(server.url);
  await page.getByRole('checkbox').first().waitFor();
  await select(page, 'POST /session/logout');
  await page.getByText('It needs a password, and this page has none.').waitFor();
  expect(await button(page).isDisabled()).toBe(true);
});

test('everything works by keyboard', async () => {
  const { page } = await visit();
  const isFocused = (selector: string) =>
    page.evaluate<boolean>(`document.activeElement.matches('${selector}')`);
  const tabTo = async (selector: string): Promise<void> => {
    for (let pressed = 0; pressed < 30 && !(await isFocused(selector)); pressed++)
      await page.keyboard.press('Tab');
    expect(await isFocused(selector)).toBe(true);
  };
  await tabTo('#endpoint');
  await page.keyboard.type('Get a product');
  await tabTo('#run');
  await page.keyboard.press('Enter');
  expect(await result(page)).toBe('Same answer · 4 values compared');
  expect(await isFocused('#run')).toBe(true);
  await tabTo('input[type=checkbox]');
  await page.keyboard.press('Space');
  await page.getByText('in the fields you asked for · 3 values compared').waitFor();
  expect(await isFocused('input[type=checkbox]')).toBe(true);
  await tabTo('#responses pre');
});

test.each<[string, BrowserContextOptions]>([
  ['in light colours', {}],
  ['in dark colours', { colorScheme: 'dark' }],
  ['on a phone', { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }],
  ['on a phone in dark colours', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
])('every comparison is accessible with its result, %s', async (_how, options) => {
  const { page } = await visit(options);
  await signInAs(page, 'alice');
  for (const endpoint of [`GET ${PRODUCTS}`, 'POST /token', 'GET /blog']) {
    await select(page, endpoint);
    expect(await run(page)).toMatch(/^Same answer/);
    expect(await violationsOf(page)).toEqual([]);
    expect(
      await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
    ).toBeLessThanOrEqual(0);
  }
});
