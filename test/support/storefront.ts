import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from './jest.ts';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { makeDataDir, removeDirectory } from './directories.ts';
import { useBrowser, type Visit } from './browser.ts';
import { freePort, startServer, stopServer, type RunningServer } from './process.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { until } from './until.ts';

/** The storefront of a shop with demo data, in a browser. */
export interface Storefront {
  readonly url: string;
  /** The URL of the GraphQL API, as the pages reach it. */
  readonly api: string;
  /** The URL of the shop, without the connection that `cut` cuts. */
  readonly server: string;
  /**
   * Opens a page of the storefront in a new profile. Any error on it fails the test, unless it
   * matches `expected`.
   */
  open(path: string, options?: BrowserContextOptions, expected?: RegExp): Promise<Page>;
  /** Sends a query to the shop, with this access token or anonymously. */
  query(query: string, variables?: object, token?: string): Promise<Answer>;
  /** Ends all connections of browsers, and rejects new ones until `restore`. */
  cut(): Promise<void>;
  restore(): void;
  /** Returns the link in the last mail to this address, once it is there. */
  linkTo(address: string): Promise<string>;
}

/** A GraphQL response. */
interface Answer {
  // Untyped: tests assert its shape.
  data: any;
  errors?: { message: string; extensions: { code: string } }[];
}

/** Starts a shop with its storefront for the tests of a file. */
export function useStorefront(): Storefront {
  const browser = useBrowser();
  const visits: { visit: Visit; expected: RegExp | undefined }[] = [];
  let dataDir: string;
  let server: RunningServer;
  let port: number;
  let proxy: TcpProxy;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    port = await freePort();
    server = await startServer({
      DATA_DIR: dataDir,
      PORT: String(port),
      BCRYPT_COST: '10',
      LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3',
      REGISTRATION: 'on',
      PASSWORD_RESET: 'on',
    });
    proxy = await startTcpProxy(port);
  });

  afterEach(() => {
    proxy.turn(port, false);
    for (const { visit, expected } of visits.splice(0)) {
      expect(visit.errors.filter((error) => !expected?.test(error))).toEqual([]);
      expect(visit.foreign).toEqual([]);
    }
  });

  afterAll(async () => {
    proxy.close();
    await stopServer(server);
    await removeDirectory(dataDir);
  });

  const origin = () => `http://127.0.0.1:${proxy.port}`;
  return {
    get url() {
      return `${origin()}/shop`;
    },
    get api() {
      return `${origin()}/graphql`;
    },
    get server() {
      return server.url;
    },
    async open(path, options, expected) {
      const visit = await browser.open([origin(), server.url], options);
      visits.push({ visit, expected });
      await visit.page.goto(this.url + path);
      return visit.page;
    },
    async query(query, variables = {}, token) {
      const answer = await fetch(`${server.url}/graphql`, {
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
    async cut() {
      proxy.turn(await freePort(), true);
    },
    restore: () => proxy.turn(port, false),
    async linkTo(address) {
      let link = '';
      await until(async () => {
        link = await lastLinkTo(join(dataDir, 'mail'), address);
        return link !== '';
      }, 'the mail');
      return link;
    },
  };
}

async function lastLinkTo(directory: string, address: string): Promise<string> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith('.txt'));
  const mails = await Promise.all(
    names.toSorted().map((name) => readFile(join(directory, name), 'utf8')),
  );
  const own = mails.findLast((mail) => mail.includes(`To: ${address}\n`)) ?? '';
  return /^http.*#.*$/m.exec(own)?.[0] ?? '';
}
