import { afterAll, afterEach, beforeAll, TIMEOUT_MS } from './jest.ts';
import axe from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

/** A browser page that reaches only the given origins, with its errors. */
export interface Visit {
  page: Page;
  /** Logged and thrown errors, and failed requests, in order. */
  errors: string[];
  /** URLs of other origins that the page requested; all were blocked. */
  foreign: string[];
}

/** A browser for the tests of a file. */
export interface Tabs {
  /** Opens a page in a new profile. */
  open(origins: readonly string[], options?: BrowserContextOptions): Promise<Visit>;
}

/** A violation that axe found: the rule and its elements. */
export interface Violation {
  id: string;
  nodes: string[];
}

// Disables DNS, so that only IP addresses are reachable.
const CUT_OFF = '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1';

/** Starts the Chromium of TEST_BROWSER for the tests of a file. */
export function useBrowser(): Tabs {
  let browser: Browser | undefined;
  beforeAll(async () => {
    const executablePath = process.env['TEST_BROWSER'] ?? '/usr/bin/chromium';
    // Chromium's sandbox does not run as root; the pages here are our own.
    browser = await chromium.launch({
      executablePath,
      args: [CUT_OFF, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
    });
  });
  // Open pages use processor time that the next tests need.
  afterEach(
    async () =>
      void (await Promise.all((browser?.contexts() ?? []).map((context) => context.close()))),
  );
  afterAll(() => browser?.close());
  return {
    async open(origins, options = {}) {
      if (!browser) throw new Error('The browser is not open');
      const context = await browser.newContext({
        locale: 'en-GB',
        timezoneId: 'UTC',
        reducedMotion: 'reduce',
        ...options,
      });
      // A busy machine can need more than Playwright's 30 seconds to load an editor.
      context.setDefaultTimeout(TIMEOUT_MS / 2);
      const page = await context.newPage();
      const visit: Visit = { page, errors: [], foreign: [] };
      await context.route(
        (url) => url.protocol.startsWith('http') && !origins.includes(url.origin),
        async (route) => {
          visit.foreign.push(route.request().url());
          await route.abort();
        },
      );
      page.on('pageerror', (error) => visit.errors.push(String(error)));
      page.on('console', (message) => {
        if (message.type() === 'error')
          visit.errors.push(`${message.text()} (${message.location().url})`);
      });
      return visit;
    },
  };
}

/** Runs the operation in GraphiQL. */
export async function runIn(page: Page): Promise<void> {
  // The button does nothing until the editors have loaded.
  for (const part of ['query-editor', 'response'])
    await page.locator(`.graphiql-${part} .monaco-editor`).first().waitFor();
  await page.getByRole('button', { name: /^Execute query/ }).click();
}

/** Replaces the port of the page by the default port in all its texts, for a picture of it. */
export async function showDefaultPort(page: Page): Promise<void> {
  await page.evaluate(`{
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) walker.currentNode.data = walker.currentNode.data.replaceAll(location.port, '4000');
  }`);
}

/**
 * Returns violations of WCAG 2.2 AA and of axe's best practices on the page, or on the part that
 * the selector matches.
 */
export async function violationsOf(page: Page, part = 'html'): Promise<Violation[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate<
    { id: string; nodes: { target: string[]; failureSummary?: string }[] }[]
  >(
    `axe.run(${JSON.stringify(part)}).then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })))`,
  );
  return found.map(({ id, nodes }) => ({
    id,
    nodes: nodes.map(({ target, failureSummary = '' }) => `${target.join(' ')}: ${failureSummary}`),
  }));
}
