import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../support/command.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { credentialsOf } from '../support/contract.ts';
import { freePort, run, startServer, stopServer, type Ended, type RunningServer } from '../support/process.ts';
import { spoiled, type Passing } from '../support/spoiler.ts';

const FOLDER = 'examples/legacy-client';
const WAYS = ['token', 'session', 'second version'];
const CATALOGUE =
  /^Reading the catalogue\n {2}at once: (\d+) products\n {2}by page: \1 products in 12\d answers\n {2}by limit and offset: \1 products in 1\d answers\n {2}the first: Classic Oak Table for 1\.99\n$/m;

let dataDir: string;
let server: RunningServer;

beforeAll(async () => {
  dataDir = await makeDataDir();
  // Its own port, for links in answers name it.
  server = await startServer({ DATA_DIR: dataDir, PORT: String(await freePort()) });
});
afterAll(async () => {
  await stopServer(server);
  await removeDirectory(dataDir);
});

test('by each way to sign in it reads profile, items and blog, adds a product once, and signs out', async () => {
  const { code, stdout, stderr } = await journey('alice');
  const [first = '', ...others] = WAYS.map((way) => partOf(stdout, way));
  for (const part of [first, ...others]) {
    expect(part).toContain(
      '  alice is Alice Archer\n  items: notebook, umbrella, bicycle, lantern, rucksack\n  blog: 5 entries, the newest by alice\n',
    );
    expect(part).toMatch(/ {2}Logout successful\n$/);
  }
  expect(first).toMatch(/^ {2}added Legacy lantern as (\d+), and sent again it is \1$/m);
  for (const part of others) expect(part).toContain('  not added: 409: Another product has this barcode\n');
  expect(stdout).toMatch(CATALOGUE);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('a user without the scope is told why nothing was added', async () => {
  const { code, stdout } = await journey('bob');
  expect(stdout.match(/^ {2}not added: .*$/gm)).toEqual(Array(3).fill('  not added: 403: This needs the scope products:write'));
  expect(stdout).toMatch(CATALOGUE);
  expect(code).toBe(0);
});

test.each(['alice', 'bob'])('it leaves no session of %s open', async (username) => {
  await journey(username);
  expect(await command(['session', 'list', username], { DATA_DIR: dataDir })).toMatchObject({ code: 0, stdout: '' });
});

test('where a credential has run out it signs in again, once', async () => {
  const asked: string[] = [];
  const { code, stdout } = await throughSpoiled((passing) => {
    const { method, path } = passing;
    const isFirst = !asked.includes(`${method} ${path}`);
    asked.push(`${method} ${path}`);
    if (path === '/users/me/' && isFirst) passing.status = 401;
  });
  expect(code).toBe(0);
  expect(asked.slice(0, 5)).toEqual(['POST /token', 'GET /users/me/', 'POST /token', 'GET /users/me/', 'GET /users/me/items/']);
  expect(stdout).toContain('alice is Alice Archer');
});

test('where the shop is busy it comes back when Retry-After says, and gives up after four times', async () => {
  const asked: string[] = [];
  const { code, stderr } = await throughSpoiled((passing) => {
    asked.push(passing.path);
    if (passing.path === '/blog' || (passing.path === '/token' && asked.length === 1)) {
      Object.assign(passing, { status: asked.length === 1 ? 429 : 503, body: '{"detail":"Busy"}' });
      passing.headers['retry-after'] = '0';
    }
  });
  expect(asked).toEqual(['/token', '/token', '/users/me/', '/users/me/items/', '/blog', '/blog', '/blog', '/blog', '/api/v2/auth/login']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'The shop refused: 503: Busy\n' });
});

test('a wrong password is refused with 1, and not shown', async () => {
  const { code, stdout, stderr } = await run(`../../${FOLDER}/main.js`, [server.url, 'alice'], { SHOP_PASSWORD: 'not-the-password' });
  expect({ code, stderr }).toEqual({ code: 1, stderr: 'The shop refused: 401: Incorrect username or password\n' });
  expect(stdout).not.toContain('not-the-password');
});

test('without an address and a name it tells how it is used', async () => {
  expect(await run(`../../${FOLDER}/main.js`, [], {})).toMatchObject({ code: 64, stderr: expect.stringMatching(/^usage: /) });
});

test('nothing of it knows GraphQL, or needs anything but node', async () => {
  const files = await readdir(FOLDER);
  const texts = await Promise.all(files.map((file) => readFile(join(FOLDER, file), 'utf8')));
  expect(files.toSorted()).toEqual(['README.md', 'main.js', 'package.json', 'shop.js']);
  for (const text of texts) {
    expect(text).not.toMatch(/graphql|apollo/i);
    for (const [, from = ''] of text.matchAll(/^import .* from '([^']+)'/gm)) expect(from).toMatch(/^(node:|\.\/)/);
  }
  expect(texts.join()).not.toMatch(/dependencies/i);
});

/** The journey of a user of the demo data, with the password by standard input. */
function journey(name: string, url = server.url): Promise<Ended> {
  const { username, password } = credentialsOf(name);
  return run(`../../${FOLDER}/main.js`, [url, username], {}, `${password}\n`);
}

async function throughSpoiled(spoil: (passing: Passing) => unknown): Promise<Ended> {
  const { url, stop } = await spoiled(server.url, spoil);
  try {
    return await journey('alice', url);
  } finally {
    await stop();
  }
}

/** What was printed of one way to sign in. */
function partOf(printed: string, way: string): string {
  return new RegExp(`^Signing in by ${way}\\n((?: {2}.*\\n)+)`, 'm').exec(printed)?.[1] ?? '';
}
