import { expect, test } from '../support/jest.ts';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runIn, showDefaultPort, useBrowser } from '../support/browser.ts';
import { useServer } from '../support/use-server.ts';

/** Maximum length of the moving picture. */
const MAX_BYTES = 1_000_000;
const PICTURES = 'docs/screenshots';
const DESKTOP = { width: 1200, height: 900 };
const PHONE = { width: 390, height: 844 };

/** The pages, each with a text that it shows when it is complete. */
const PAGES = [
  ['home', '/', 'Run both'],
  ['graphql', '/graphql', 'totalCount'],
  ['graphiql', '/graphiql', 'totalCount'],
  ['rest', '/docs', 'Download the OpenAPI document'],
  ['shop', '/shop/', 'Classic Bamboo Basket'],
  ['shop-product', '/shop/products/5', '4006380000049'],
  ['shop-sign-in', '/shop/sign-in', 'Username'],
] as const;
const SIGNED_IN_PAGES = [
  ['shop-account', '/shop/account', 'rucksack'],
  ['shop-blog', '/shop/blog', 'How we choose our lamps'],
] as const;

/** A still of the picture: a PNG in Base64, and how long it is shown, in ms. */
interface Frame {
  png: string;
  delay: number;
}

const tabs = useBrowser();
const server = useServer();

// With SCREENSHOTS=1, the tests write the pictures.
const WRITES_PICTURES = process.env['SCREENSHOTS'] === '1';

test('the moving picture of the README is made of the running pages', async () => {
  const { page, errors } = await tabs.open([new URL(server.url).origin], { viewport: DESKTOP });
  const frames: Frame[] = [];
  const still = async (delay: number) => {
    await showDefaultPort(page);
    await page.mouse.move(0, 0);
    frames.push({ png: (await page.screenshot()).toString('base64'), delay });
  };

  await page.goto(server.url);
  const run = page.getByRole('button', { name: 'Run both' });
  await run.waitFor();
  await still(2_000);
  await run.click();
  await page.getByText('42 values compared').waitFor();
  await still(2_500);
  for (const field of ['price', 'barcode']) await page.getByLabel(field).uncheck();
  await still(1_000);
  await run.click();
  await page.getByText('in the fields you asked for').waitFor();
  await page.locator('#verdict').scrollIntoViewIfNeeded();
  await still(2_500);

  await page.goto(`${server.url}/shop/?q=slate+tray`);
  await page.getByText('€32.95').waitFor();
  await still(1_500);
  await setPrice(1200, 29.5);
  await page.getByText('€29.50').waitFor();
  await still(2_500);

  await page.goto(`${server.url}/graphiql`);
  await runIn(page);
  await page.locator('.receipt').filter({ hasText: /./ }).waitFor();
  await still(2_500);

  await page.goto(`${server.url}/docs`);
  await page.getByRole('button', { name: 'List products in pages' }).first().click();
  await page.getByRole('button', { name: 'Execute' }).waitFor();
  await still(2_500);

  const gif = await encode(frames);
  expect(gif.length).toBeLessThan(MAX_BYTES);
  expect(new Set(frames.map(({ png }) => png)).size).toBe(frames.length);
  expect(errors).toEqual([]);
  if (WRITES_PICTURES) await writeFile('docs/tour.gif', gif);
});

test.each([
  ['desktop', 'light', DESKTOP],
  ['desktop', 'dark', DESKTOP],
  ['phone', 'light', PHONE],
  ['phone', 'dark', PHONE],
] as const)('every page fits a %s, in %s colours', async (device, colorScheme, viewport) => {
  const { page } = await tabs.open([new URL(server.url).origin], { colorScheme, viewport });
  const visit = async ([name, path, text]: (typeof PAGES | typeof SIGNED_IN_PAGES)[number]) => {
    await page.goto(server.url + path);
    await page.getByText(text).first().waitFor();
    await page.waitForLoadState('networkidle');
    const width = await page.evaluate('document.documentElement.scrollWidth');
    expect([name, width]).toEqual([name, viewport.width]);
    await showDefaultPort(page);
    const picture = await page.screenshot({ type: 'jpeg', quality: 75 });
    if (WRITES_PICTURES)
      await writeFile(`${PICTURES}/${name}-${device}-${colorScheme}.jpg`, picture);
  };
  for (const one of PAGES) await visit(one);
  await page.getByLabel('Username').fill('alice');
  await page.getByLabel('Password').fill('alice-demo-1');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Alice Archer').first().waitFor({ state: 'attached' });
  for (const one of SIGNED_IN_PAGES) await visit(one);
});

async function setPrice(pk: number, price: number): Promise<void> {
  const login = await fetch(`${server.url}/token`, {
    method: 'POST',
    body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
  });
  const { access_token: token } = (await login.json()) as { access_token: string };
  const response = await fetch(`${server.url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({
      query: `mutation { updateProduct(pk: ${pk}, input: { price: ${price} }) { price } }`,
    }),
  });
  expect(await response.json()).toEqual({ data: { updateProduct: { price } } });
}

/** Encodes the frames as a GIF, in a page, because the encoder needs a canvas. */
async function encode(frames: readonly Frame[]): Promise<Buffer> {
  const encoder = fileURLToPath(import.meta.resolve('modern-gif')).replace(/\.mjs$/, '.js');
  const { page } = await tabs.open([]);
  await page.addScriptTag({ content: await readFile(encoder, 'utf8') });
  const [gif, count] = await page.evaluate<[string, number]>(`(async () => {
    const frames = await Promise.all(${JSON.stringify(frames)}.map(async ({ png, delay }) => {
      const image = new Image();
      image.src = 'data:image/png;base64,' + png;
      await image.decode();
      return { data: image, delay };
    }));
    const gif = await modernGif.encode({ width: ${DESKTOP.width}, height: ${DESKTOP.height}, frames });
    return [new Uint8Array(gif).toBase64(), modernGif.decode(gif).frames.length];
  })()`);
  expect(count).toBe(frames.length);
  return Buffer.from(gif, 'base64');
}
