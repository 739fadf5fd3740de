import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect } from './jest.ts';
import type { BrowserContextOptions, Page } from 'playwright-core';
import send from 'send';
import { makeDataDir, removeDirectory } from './directories.ts';
import { useBrowser, type Visit } from './browser.ts';
import { startServer, stopServer, type RunningServer } from './process.ts';

const DIST = 'examples/storefront/dist';

/** The storefront in a browser, and a shop with demo data on another origin. */
export interface Storefront {
  readonly url: string;
  /** The URL of the GraphQL API. */
  readonly api: string;
  /**
   * Opens a page of the storefront in a new profile. Any error on it fails the test, unless it
   * matches `expected`.
   */
  open(path: string, options?: BrowserContextOptions, expected?: RegExp): Promise<Page>;
  /** Sends a query to the shop, with this access token or anonymously. */
  query(query: string, variables?: object, token?: string): Promise<Answer>;
}

/** A GraphQL response. */
interface Answer {
  // Untyped: tests assert its shape.
  data: any;
  errors?: { message: string; extensions: { code: string } }[];
}

/** Starts a shop and its storefront for the tests of a file. */
export function useStorefront(): Storefront {
  const browser = useBrowser();
  const visits: { visit: Visit; expected: RegExp | undefined }[] = [];
  let dataDir: string;
  let server: RunningServer;
  let host: Host;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    server = await startServer({
      DATA_DIR: dataDir,
      BCRYPT_COST: '10',
      LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3',
    });
    host = await serveStorefront(`${server.url}/graphql`);
  });

  afterEach(() => {
    for (const { visit, expected } of visits.splice(0)) {
      expect(visit.errors.filter((error) => !expected?.test(error))).toEqual([]);
      expect(visit.foreign).toEqual([]);
    }
  });

  afterAll(async () => {
    await host.close();
    await stopServer(server);
    await removeDirectory(dataDir);
  });

  return {
    get url() {
      return host.url;
    },
    get api() {
      return `${server.url}/graphql`;
    },
    async open(path, options, expected) {
      const visit = await browser.open([host.url, server.url], options);
      visits.push({ visit, expected });
      await visit.page.goto(host.url + path);
      return visit.page;
    },
    async query(query, variables = {}, token) {
      const answer = await fetch(this.api, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'User-Agent': 'till/1.0',
          ...(token !== undefined && { Authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ query, variables }),
      });
      return (await answer.json()) as Answer;
    },
  };
}

interface Host {
  url: string;
  close(): Promise<void>;
}

// Like a static host: every path without a file is the app's page, which contains the URL of the
// API.
async function serveStorefront(api: string): Promise<Host> {
  const page = (await readFile(`${DIST}/index.html`, 'utf8')).replace(
    /(<meta name="shop-api" content=)"[^"]*"/,
    `$1"${api}"`,
  );
  // Allows only our own code and styles, and the one API.
  const policy = `default-src 'self'; connect-src ${new URL(api).origin}; base-uri 'none'; frame-ancestors 'none'; form-action 'self'`;
  const server = createServer((req, res) => {
    res.setHeader('Content-Security-Policy', policy);
    const { pathname } = new URL(req.url ?? '/', 'http://storefront');
    if (/\.\w+$/.test(pathname)) return send(req, pathname, { root: DIST }).pipe(res);
    return res.setHeader('Content-Type', 'text/html; charset=utf-8').end(page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
