import { afterAll, afterEach, beforeAll } from './jest.ts';
import axe from 'axe-core';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

/** A page of a browser that reaches the origins it was given and nothing else, with what went wrong in it. */
export interface Visit {
  page: Page;
  /** What was logged as an error or thrown, and answers that failed, in order. */
  errors: string[];
  /** Addresses of other origins that it asked for; none was reached. */
  foreign: string[];
}

/** A browser for the tests of a file. */
export interface Tabs {
  /** Opens a page in a profile of its own. */
  open(origins: readonly string[], options?: BrowserContextOptions): Promise<Visit>;
}

/** What axe finds fault with on a page: the rule, and where. */
export interface Violation {
  id: string;
  nodes: string[];
}

// Nothing is looked up, so that nothing is reached but by its address.
const CUT_OFF = '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1';

/** Starts Chromium for the tests of a file: the one that TEST_BROWSER names. */
export function useBrowser(): Tabs {
  let browser: Browser | undefined;
  beforeAll(async () => {
    const executablePath = process.env['TEST_BROWSER'] ?? '/usr/bin/chromium';
    // Chromium's own sandbox cannot be had as root; what it shows here is our own.
    browser = await chromium.launch({ executablePath, args: [CUT_OFF, ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])] });
  });
  // Open pages use processor time that the next tests need.
  afterEach(async () => void (await Promise.all((browser?.contexts() ?? []).map((context) => context.close()))));
  afterAll(() => browser?.close());
  return {
    async open(origins, options = {}) {
      if (!browser) throw new Error('the browser is not open');
      const context = await browser.newContext({ locale: 'en-GB', timezoneId: 'UTC', reducedMotion: 'reduce', ...options });
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
        if (message.type() === 'error') visit.errors.push(`${message.text()} (${message.location().url})`);
      });
      return visit;
    },
  };
}

/** What of the page as it stands, or of the part that the selector names, breaks a rule of WCAG 2.2 AA, or a practice that axe counts among the best. */
export async function violationsOf(page: Page, part = 'html'): Promise<Violation[]> {
  await page.evaluate(axe.source);
  const found = await page.evaluate<{ id: string; nodes: { target: string[]; failureSummary?: string }[] }[]>(
    `axe.run(${JSON.stringify(part)}).then(({ violations }) => violations.map(({ id, nodes }) => ({ id, nodes: nodes.map(({ target, failureSummary }) => ({ target, failureSummary })) })))`,
  );
  return found.map(({ id, nodes }) => ({
    id,
    nodes: nodes.map(({ target, failureSummary = '' }) => `${target.join(' ')}: ${failureSummary}`),
  }));
}
