import { expect, test } from '../support/jest.ts';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../support/command.ts';
import { credentialsOf } from '../support/contract.ts';
import { run, type ProcessResult } from '../support/process.ts';
import { startCorruptor, type Exchange } from '../support/corruptor.ts';
import { useServer } from '../support/use-server.ts';

const FOLDER = 'examples/legacy-client';
const LOGINS = ['token', 'session', 'second version'];
const CATALOGUE =
  /^Reading the catalogue\n {2}at once: (\d+) products\n {2}by page: \1 products in 12\d responses\n {2}by limit and offset: \1 products in 1\d responses\n {2}the first: Classic Oak Table for 383\.95\n$/m;

const server = useServer();

test('by each login endpoint it reads profile, items and blog, adds a product once, and signs out', async () => {
  const { code, stdout, stderr } = await runClient('alice');
  const [first = '', ...others] = LOGINS.map((way) => partOf(stdout, way));
  for (const part of [first, ...others]) {
    expect(part).toContain(
      '  alice is Alice Archer\n  items: notebook, umbrella, bicycle, lantern, rucksack\n  blog: 3 entries, the newest by alice\n',
    );
    expect(part).toMatch(/ {2}Logout successful\n$/);
  }
  expect(first).toMatch(/^ {2}created Legacy lantern: (\d+), after a retry: \1$/m);
  for (const part of others)
    expect(part).toContain('  not created: 409: A product with this barcode already exists\n');
  expect(stdout).toMatch(CATALOGUE);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('a user without the scope gets the reason why no product was added', async () => {
  const { code, stdout } = await runClient('bob');
  expect(stdout.match(/^ {2}not created: .*$/gm)).toEqual(
    Array(3).fill('  not created: 403: Missing scope: products:write'),
  );
  expect(stdout).toMatch(CATALOGUE);
  expect(code).toBe(0);
});

test.each(['alice', 'bob'])('it ends all sessions of %s', async (username) => {
  await runClient(username);
  expect(await command(['session', 'list', username], { DATA_DIR: server.dataDir })).toMatchObject({
    code: 0,
    stdout: '',
  });
});

test('it signs in again once after a credential expired', async () => {
  const requests: string[] = [];
  const { code, stdout } = await throughCorruptor((exchange) => {
    const { method, path } = exchange;
    const isFirst = !requests.includes(`${method} ${path}`);
    requests.push(`${method} ${path}`);
    if (path === '/users/me/' && isFirst) exchange.status = 401;
  });
  expect(code).toBe(0);
  expect(requests.slice(0, 5)).toEqual([
    'POST /token',
    'GET /users/me/',
    'POST /token',
    'GET /users/me/',
    'GET /users/me/items/',
  ]);
  expect(stdout).toContain('alice is Alice Archer');
});

test('it retries 429 and 503 after Retry-After, at most four times', async () => {
  const requests: string[] = [];
  const { code, stderr } = await throughCorruptor((exchange) => {
    requests.push(exchange.path);
    if (exchange.path === '/blog' || (exchange.path === '/token' && requests.length === 1)) {
      Object.assign(exchange, {
        status: requests.length === 1 ? 429 : 503,
        body: '{"detail":"Busy"}',
      });
      exchange.headers['retry-after'] = '0';
    }
  });
  expect(requests).toEqual([
    '/token',
    '/token',
    '/users/me/',
    '/users/me/items/',
    '/blog',
    '/blog',
    '/blog',
    '/blog',
    '/api/v2/auth/login',
  ]);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'Request failed: 503: Busy\n' });
});

test('a wrong password exits with 1, and is not printed', async () => {
  const { code, stdout, stderr } = await run(`../../${FOLDER}/main.js`, [server.url, 'alice'], {
    SHOP_PASSWORD: 'not-the-password',
  });
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'Request failed: 401: Incorrect username or password\n',
  });
  expect(stdout).not.toContain('not-the-password');
});

test('it uses neither GraphQL nor dependencies', async () => {
  const files = await readdir(FOLDER);
  const texts = await Promise.all(files.map((file) => readFile(join(FOLDER, file), 'utf8')));
  expect(files.toSorted()).toEqual(['README.md', 'main.js', 'package.json', 'shop.js']);
  for (const text of texts) {
    expect(text).not.toMatch(/graphql|apollo/i);
    for (const [, from = ''] of text.matchAll(/^import .* from '([^']+)'/gm))
      expect(from).toMatch(/^(node:|\.\/)/);
  }
  expect(texts.join()).not.toMatch(/dependencies/i);
});

/** Runs the client for a demo user, with the password on standard input. */
function runClient(name: string, url = server.url): Promise<ProcessResult> {
  const { username, password } = credentialsOf(name);
  return run(`../../${FOLDER}/main.js`, [url, username], {}, `${password}\n`);
}

async function throughCorruptor(corrupt: (exchange: Exchange) => unknown): Promise<ProcessResult> {
  const { url, stop } = await startCorruptor(server.url, corrupt);
  try {
    return await runClient('alice', url);
  } finally {
    await stop();
  }
}

/** Returns the output of one way to sign in. */
function partOf(printed: string, way: string): string {
  return new RegExp(`^Signing in by ${way}\\n((?: {2}.*\\n)+)`, 'm').exec(printed)?.[1] ?? '';
}
