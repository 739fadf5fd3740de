import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import send from 'send';

const FOLDER = 'examples/storefront';
const DIST = join(FOLDER, 'dist');

/** The storefront, served from an origin of its own. */
export interface Storefront {
  url: string;
  close(): Promise<void>;
}

/** Builds the storefront where that has not been done, with its own dependencies. */
export async function buildStorefront(): Promise<void> {
  if (existsSync(join(DIST, 'index.html'))) return;
  const npm = (...args: string[]) => promisify(execFile)('npm', args, { cwd: FOLDER });
  if (!existsSync(join(FOLDER, 'node_modules'))) await npm('install', '--no-audit', '--no-fund');
  await npm('run', 'build');
}

/** Serves what was built, as a static host would: every path that is no file is the app's, and the page names this API. */
export async function serveStorefront(api: string): Promise<Storefront> {
  const page = (await readFile(join(DIST, 'index.html'), 'utf8')).replace(/(<meta name="shop-api" content=)"[^"]*"/, `$1"${api}"`);
  // Our own code and styles and nothing else, and the one API.
  const policy = `default-src 'self'; connect-src ${new URL(api).origin}; base-uri 'none'; frame-ancestors 'none'; form-action 'self'`;
  const server = createServer((req, res) => {
    res.setHeader('Content-Security-Policy', policy);
    const sendPage = () => {
      res.statusCode = 200;
      res.setHeader('Content-Type', 'text/html; charset=utf-8');
      res.end(page);
    };
    const { pathname } = new URL(req.url ?? '/', 'http://storefront');
    if (!/\.\w+$/.test(pathname)) return sendPage();
    send(req, pathname, { root: DIST, index: false }).pipe(res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
