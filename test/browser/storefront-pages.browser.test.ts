import { expect, test } from '../support/jest.ts';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { violationsOf, type Violation } from '../support/browser.ts';
import { useStorefront } from '../support/storefront.ts';

const storefront = useStorefront();

const DESKTOP = { width: 1200, height: 800 };
const PHONE = { width: 360, height: 740 };
/** Console messages of Chromium that the states below cause. */
const EXPECTED_MESSAGES = /status of 400|net::ERR_INTERNET_DISCONNECTED/;

test.each<[string, BrowserContextOptions]>([
  ['on a desktop, in light colours', { viewport: DESKTOP, colorScheme: 'light' }],
  ['on a desktop, in dark colours', { viewport: DESKTOP, colorScheme: 'dark' }],
  ['on a phone, in light colours', { viewport: PHONE, colorScheme: 'light' }],
  ['on a phone, in dark colours', { viewport: PHONE, colorScheme: 'dark' }],
])(
  'every page has a title, fits its width, and is accessible: %s',
  async (_mode, options) => {
    const page = await storefront.open('/', options, EXPECTED_MESSAGES);
    const faults: Record<string, Violation[] | string> = {};
    const titles: string[] = [];
    for (const [name, go] of PAGES) {
      await go(page);
      titles.push(await page.title());
      const violations = await violationsOf(page);
      if (violations.length > 0) faults[name] = violations;
      if (await page.evaluate('document.documentElement.scrollWidth > innerWidth'))
        faults[`${name}, width`] = 'scrolls sideways';
      if ((await page.locator('h1').count()) !== 1)
        faults[`${name}, heading`] = 'has not one heading';
    }
    expect(faults).toEqual({});
    expect(titles).toEqual(PAGES.map(([, , title]) => `${title} · Shopfront`));
  },
  180_000,
);

test.each([
  ['with reduced motion, nothing moves', 'reduce', false],
  ['without reduced motion, elements may move', 'no-preference', true],
] as const)('%s', async (_rule, reducedMotion, moves) => {
  const page = await storefront.open('/', { reducedMotion });
  await page.getByRole('button', { name: 'Load more' }).waitFor();
  const isMoving = `[...document.querySelectorAll('*')].some((one) => getComputedStyle(one).transitionDuration !== '0s')`;
  expect(await page.evaluate(isMoving)).toBe(moves);
});

test.each([
  ['/', 12],
  ['/sign-in', 8],
])('elements focused by Tab have an outline: %s', async (path, stops) => {
  const page = await storefront.open('/');
  await at(page, path, path === '/' ? 'Classic Bamboo Basket' : 'Username');
  const outlines: unknown[] = [];
  for (let stop = 0; stop < stops; stop++) {
    await page.keyboard.press('Tab');
    outlines.push(await page.evaluate('getComputedStyle(document.activeElement).outlineStyle'));
  }
  expect(outlines).toEqual(Array<string>(stops).fill('solid'));
});

/** States of the pages, how to reach each from the previous one, and its title. */
const PAGES: readonly (readonly [
  name: string,
  go: (page: Page) => Promise<unknown>,
  title: string,
])[] = [
  ['the catalogue', (page) => at(page, '/', 'Classic Bamboo Basket'), 'Catalogue'],
  ['nothing found', (page) => at(page, '/?q=nothing+like+it', 'No products found.'), 'Catalogue'],
  ['a product', (page) => at(page, '/products/5', '4006380000049'), 'Light Oak Table'],
  [
    'no product',
    (page) => at(page, '/products/99999', 'It may have been deleted'),
    'There is no such product',
  ],
  ['the shop unreachable', unreachable, 'Product'],
  ['no page', (page) => at(page, '/nowhere', 'It may have been deleted'), 'There is no such page'],
  ['sign in', (page) => at(page, '/sign-in', 'Username'), 'Sign in'],
  [
    'a failed sign in',
    (page) => signIn(page, 'bob', 'wrong', 'Incorrect username or password.'),
    'Sign in',
  ],
  [
    'the catalogue, signed in',
    (page) => signIn(page, 'alice', 'alice-demo-1', 'Alice Archer'),
    'Catalogue',
  ],
  ['a product, signed in', (page) => at(page, '/products/5', 'Add to my items'), 'Light Oak Table'],
  ['the account', (page) => at(page, '/account', 'rucksack'), 'Your account'],
  [
    'a rejected item',
    (page) => press(page, 'Add', 'String should have at least 1 character'),
    'Your account',
  ],
  ['a question', (page) => press(page, 'Sign out everywhere', 'Stay signed in'), 'Your account'],
  ['the blog', (page) => at(page, '/blog', 'Notes for the spring catalogue'), 'Blog'],
  [
    'an entry',
    (page) => follow(page, 'Notes for the spring catalogue', 'Publish'),
    'Notes for the spring catalogue',
  ],
  ['an entry to edit', (page) => follow(page, 'Edit', 'Save changes'), 'Edit the entry'],
  ['a new entry', (page) => at(page, '/blog/new', 'Save as draft'), 'New entry'],
  [
    'a rejected entry',
    (page) => press(page, 'Save as draft', 'Check the marked fields.'),
    'New entry',
  ],
  ['a new product', (page) => at(page, '/products/new', 'Add the product'), 'New product'],
  [
    'a rejected product',
    (page) => press(page, 'Add the product', 'Check the marked fields.'),
    'New product',
  ],
  ['signed out', (page) => press(page, 'Sign out', 'You are signed out.'), 'Catalogue'],
  ['signed in without write scopes', signInToRead, 'You do not have access'],
  [
    'a link to confirm an address',
    (page) => at(page, '/#confirm=x', 'Create the account'),
    'Confirm your address',
  ],
  [
    'a rejected account',
    (page) => press(page, 'Create the account', 'Check the marked fields.'),
    'Confirm your address',
  ],
  [
    'a link to set a password',
    (page) => at(page, '/#reset=x', 'Set the password'),
    'Set a new password',
  ],
  ['a rejected link', rejectedLink, 'Set a new password'],
  [
    'no link',
    (page) => at(page, '/reset', 'Open the link in the mail to continue.'),
    'Set a new password',
  ],
];

async function at(page: Page, path: string, shows: string): Promise<void> {
  await page.goto(storefront.url + path);
  await shown(page, shows);
}

async function unreachable(page: Page): Promise<void> {
  await page.getByRole('main').getByRole('link', { name: 'See the catalogue' }).click();
  await shown(page, 'Classic Bamboo Basket');
  await page.context().setOffline(true);
  await page.getByRole('link', { name: 'Classic Bamboo Basket' }).click();
  await shown(page, 'Try again');
  await page.context().setOffline(false);
}

async function signIn(
  page: Page,
  username: string,
  password: string,
  shows: string,
): Promise<void> {
  await page.getByLabel('Username').fill(username);
  await page.getByLabel('Password').fill(password);
  await press(page, 'Sign in', shows);
}

async function signInToRead(page: Page): Promise<void> {
  await at(page, '/products/new', 'Username');
  await signIn(page, 'bob', 'bob-demo-1', 'products:write');
}

async function rejectedLink(page: Page): Promise<void> {
  await page.getByLabel('New password').fill('a long password');
  await press(page, 'Set the password', 'This link is not valid');
}

async function follow(page: Page, link: string, shows: string): Promise<void> {
  await page.getByRole('link', { name: link }).click();
  await shown(page, shows);
}

async function press(page: Page, button: string, shows: string): Promise<void> {
  await page.getByRole('button', { name: button, exact: true }).click();
  await shown(page, shows);
}

function shown(page: Page, text: string): Promise<void> {
  return page.getByText(text).filter({ visible: true }).first().waitFor();
}
