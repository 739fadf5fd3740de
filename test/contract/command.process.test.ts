import { afterAll, afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { sections } from '../../packages/contract/index.ts';
import { credentialsOf, seedShop } from '../support/contract.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { contract, launch } from '../support/process.ts';
import { Shop } from '../support/shop.ts';
import { startCorruptor } from '../support/corruptor.ts';

const { password } = credentialsOf('alice');
const ALICE = { CONTRACT_USERNAME: 'alice', CONTRACT_PASSWORD: password };
const EVERYTHING = {
  ...ALICE,
  CONTRACT_DISABLED_USERNAME: 'zoe',
  CONTRACT_DISABLED_PASSWORD: credentialsOf('zoe').password,
  CONTRACT_SIGNING_SECRET: TEST_SECRET,
};
const OPEN_SESSIONS = 'select sid from session where ended_at is null';

const shop = new Shop();

beforeAll(async () => {
  await shop.start();
  await seedShop(shop);
});
// Those of which a corrupted response hid the key stay open.
afterEach(() => shop.sql('delete from session'));
afterAll(() => shop.stop());

test('exits with 0 and a summary if all options are given and all checks pass', async () => {
  const { code, stdout, stderr } = await contract([shop.url, '--write'], EVERYTHING);
  expect(stdout.trimEnd().split('\n').at(-1)).toMatch(
    /^\d{3} passed, 0 failed, 0 skipped; decisions: \d{3} passed, 0 differ, 2 skipped$/,
  );
  expect(stdout).toMatch(
    /^Products created, named "Contract check of …, may be deleted": \d+(, \d+)+\.$/m,
  );
  expect(stdout).toMatch(/^Logins opened: \d+, all ended\.$/m);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
});

test('without credentials, checks that need them are skipped, with the missing option', async () => {
  const { code, stdout } = await contract([shop.url, '--only', '4.1', '4.3', '5.2']);
  expect(stdout).toContain(
    'skipped  With a token, the response is the user of the token. (needs a user: --username and a password)',
  );
  expect(stdout).toContain(
    'returns 400 "Inactive user". (needs a disabled user: --disabled-username)',
  );
  expect(stdout).not.toMatch(/Logins opened|Products created/);
  expect(code).toBe(0);
});

test('a password on standard input is used, and not printed', async () => {
  const { code, stdout, stderr } = await contract(
    [shop.url, '--only', '4', '--username', 'alice', '--password-stdin'],
    {},
    `${password}\n`,
  );
  expect(stdout).toContain(
    'passed   A form with valid credentials returns 200 with a token response.',
  );
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain(password);
});

test('a user who cannot sign in ends it at once, with 77 and one sentence', async () => {
  let requests = 0;
  const { url, stop } = await startCorruptor(shop.url, () => requests++);
  const env = { CONTRACT_USERNAME: 'alice', CONTRACT_PASSWORD: 'not-the-password' };
  const { code, stdout, stderr } = await contract([url], env);
  await stop();
  expect({ code, stdout, stderr }).toEqual({
    code: 77,
    stdout: '',
    stderr: `alice cannot sign in at ${url}: no token: POST /token returned 401, POST /login returned 401; no session: POST /session/login returned 401\n`,
  });
  // One to see that the deployment responds, and one for each login.
  expect(requests).toBe(4);
});

test('a failed check exits with 1, and prints request, expected and actual response', async () => {
  const { url, stop } = await startCorruptor(
    shop.url,
    ({ headers }) => delete headers['www-authenticate'],
  );
  const { code, stdout } = await contract([url, '--only', '7']);
  await stop();
  expect(stdout).toContain(
    [
      '      failed   An invalid token: 401, detail, WWW-Authenticate: Bearer. [7:bad-token]',
      '               request   GET /users/me/ with a bearer token',
      '               expected  the header WWW-Authenticate: matching /^bearer\\b/i',
      '               response  401 with no such header',
    ].join('\n'),
  );
  expect(code).toBe(1);
});

test('--broken prints only the broken promises, by cause, and how to set the variables', async () => {
  const { url, stop } = await startCorruptor(
    shop.url,
    (passing) => passing.path === '/users/me/items/' && (passing.status = 500),
  );
  const { code, stdout } = await contract([url, '--broken', '--only', '4.1'], ALICE);
  await stop();
  expect(code).toBe(1);
  expect(stdout).toMatch(
    new RegExp(
      String.raw`^The contract at ${url}

Broken promises, by cause

  expected  status 200
  response  500 \[\{.*
  try       curl -i '${url}/users/me/items/' -H 'Authorization: Bearer '"\$TOKEN"
    failed   GET /users/me/items/  With a token, the response is an array of the items of the user\. \[4\.1:items\]

TOKEN is the access_token of a login\.
Every user of the machine can read the arguments of a running command\.

Logins opened: \d+, all ended\.
\d+ passed, 1 failed, .*\n$`,
    ),
  );
});

test('--html writes a page with the broken promises and all others, escaped', async () => {
  const { url, stop } = await startCorruptor(
    shop.url,
    (passing) => passing.path === '/users/me/' && (passing.body = '<script>alert(1)</script>'),
  );
  const directory = await makeDataDir();
  const file = `${directory}/report.html`;
  await contract([url, '--html', file], ALICE);
  await stop();
  const page = await readFile(file, 'utf8');
  expect(page).toContain('&lt;script&gt;alert(1)');
  expect(page).not.toContain('<script');
  for (const { promises } of sections)
    for (const { id } of promises) expect(page).toContain(`[${id}]`);
  await removeDirectory(directory);
});

test('a different decision differs, and fails only with --strict', async () => {
  const { url, stop } = await startCorruptor(shop.url, ({ headers }) => delete headers['allow']);
  const differing = await contract([url, '--only', '4.5']);
  const strict = await contract([url, '--only', '4.5', '--strict']);
  await stop();
  expect([differing.code, strict.code]).toEqual([0, 1]);
  expect(differing.stdout).toMatch(/^ {6}differs {2}Another method returns 405/m);
  expect(differing.stdout).toMatch(/ 0 failed, .*; decisions: \d+ passed, 26 differ/);
  expect(strict.stdout).toMatch(/^ {6}failed {3}Another method returns 405/m);
});

test('--json prints one document with every promise and the totals', async () => {
  const { stdout } = await contract([shop.url, '--json'], ALICE);
  const report = JSON.parse(stdout) as {
    summary: Record<string, Record<string, number>>;
    promises: { id: string; outcome: string }[];
  };
  expect(report).toMatchObject({
    baseUrl: shop.url,
    strict: false,
    created: [],
    logins: { remaining: 0 },
  });
  expect(report.promises.map(({ id }) => id)).toEqual(
    sections.flatMap(({ promises }) => promises.map(({ id }) => id)),
  );
  const totals = Object.values(report.summary).flatMap((counts) => Object.values(counts));
  expect(totals.reduce((sum, count) => sum + count)).toBe(report.promises.length);
});

test('--only selects a section with its subsections', async () => {
  const { stdout } = await contract([shop.url, '--only', '5', '--json']);
  const report = JSON.parse(stdout) as { promises: { section: string }[] };
  expect(new Set(report.promises.map(({ section }) => section))).toEqual(
    new Set(['5.1', '5.2', '5.3']),
  );
});

test('an interrupt ends the logins, and the process with 130', async () => {
  let interrupt = (): void => undefined;
  const { url, stop } = await startCorruptor(
    shop.url,
    ({ path }) => path === '/users/me/' && interrupt(),
  );
  const { child, ended } = launch('../packages/contract/main.js', [url], ALICE);
  interrupt = () => child.kill('SIGINT');
  const { code, stdout } = await ended;
  await stop();
  expect(code).toBe(130);
  expect(stdout).toContain('(interrupted)');
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
});
