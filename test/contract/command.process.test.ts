import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { sections } from '../../contract/promises/index.ts';
import { credentialsOf, stock } from '../support/contract.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { contract, freePort, launch } from '../support/process.ts';
import { Shop } from '../support/shop.ts';
import { spoiled } from '../support/spoiler.ts';

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
  await stock(shop);
});
afterAll(() => shop.stop());

test('it ends with 0 and a line that sums up, where everything is given and holds', async () => {
  const { code, stdout, stderr } = await contract([shop.url, '--write'], EVERYTHING);
  expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^\d{3} hold, 0 broken, 0 not tried; decisions: \d{3} hold, 0 differ, 2 not tried$/);
  expect(stdout).toMatch(/^Products created, named "Contract check of …, may be deleted": \d+(, \d+)+\.$/m);
  expect(stdout).toMatch(/^Logins opened: \d+, and all of them ended\.$/m);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
});

test('rows stand under their section, first what the interface promises, then decisions', async () => {
  const { stdout } = await contract([shop.url, '--only', '9']);
  const [, promised = '', decided = ''] = stdout.split(/^What the interface .*$/m);
  expect(promised).toContain('\n  9 Versioning\n    GET /api/v1/\n      holds      The prefix /api/v1/ carries the catalogue.\n');
  expect(decided).toContain('\n  9 Versioning\n    OPTIONS /api/v1/auth/login\n      holds      The first version has no session login.\n');
});

test('without credentials, what needs them is not tried, and it says what to give', async () => {
  const { code, stdout } = await contract([shop.url, '--only', '4.1', '4.3', '5.2']);
  expect(stdout).toContain('not tried  The bearer of a token gets the user whose token it is. (needs a user: --username and a password)');
  expect(stdout).toContain('answered 400 that the user is inactive. (needs a disabled user: --disabled-username)');
  expect(stdout).not.toMatch(/Logins opened|Products created/);
  expect(code).toBe(0);
});

test('without --write and the secret, what needs them is not tried', async () => {
  const { stdout } = await contract([shop.url, '--only', '4.3', '5.2'], ALICE);
  expect(stdout).toContain('(needs --write, for it may create a product)');
  expect(stdout).toContain('(needs the signing secret: CONTRACT_SIGNING_SECRET)');
});

test('a password by standard input is taken, and not shown', async () => {
  const { code, stdout, stderr } = await contract(
    [shop.url, '--only', '4', '--username', 'alice', '--password-stdin'],
    {},
    `${password}\n`,
  );
  expect(stdout).toContain('holds      A form with the right username and password is answered 200 with a token response.');
  expect(code).toBe(0);
  expect(stdout + stderr).not.toContain(password);
});

test('a wrong password breaks the logins, is not shown, and leaves what needs a token not tried', async () => {
  const env = { CONTRACT_USERNAME: 'alice', CONTRACT_PASSWORD: 'not-the-password' };
  const { code, stdout } = await contract([shop.url, '--only', '4.1'], env);
  expect(code).toBe(1);
  expect(stdout).toContain('[4.1:token-right]');
  expect(stdout).toContain('(there is no token: neither POST /token nor POST /login gave one)');
  expect(stdout).not.toContain('not-the-password');
});

test('a wrong signing secret is broken once, and leaves what needs it not tried', async () => {
  const { stdout } = await contract([shop.url, '--only', '5'], { ...ALICE, CONTRACT_SIGNING_SECRET: 'another'.repeat(8) });
  expect(stdout.match(/^ +broken .*$/gm)).toEqual(['      broken     Who shares the secret can verify the token. [5.1:secret]']);
  expect(stdout).toContain('(the signing secret that was given does not sign this deployment’s tokens)');
});

test('what is broken ends with 1, and is told by what was asked, expected and came', async () => {
  const { url, stop } = await spoiled(shop.url, ({ headers }) => delete headers['www-authenticate']);
  const { code, stdout } = await contract([url, '--only', '7']);
  await stop();
  expect(stdout).toContain(
    [
      '      broken     An invalid token: 401, detail, WWW-Authenticate: Bearer. [7:bad-token]',
      '                 asked     GET /users/me/ with a bearer token',
      '                 expected  the header WWW-Authenticate: in the form /^bearer\\b/i',
      '                 came      401 with no such header',
    ].join('\n'),
  );
  expect(code).toBe(1);
});

test('a decision that another deployment has made otherwise differs, and is broken only with --strict', async () => {
  const { url, stop } = await spoiled(shop.url, ({ headers }) => delete headers['allow']);
  const differing = await contract([url, '--only', '4.5']);
  const strict = await contract([url, '--only', '4.5', '--strict']);
  await stop();
  expect([differing.code, strict.code]).toEqual([0, 1]);
  expect(differing.stdout).toMatch(/^ {6}differs {4}A method that the path lacks/m);
  expect(differing.stdout).toMatch(/ 0 broken, .*; decisions: \d+ hold, 26 differ/);
  expect(strict.stdout).toMatch(/^ {6}broken {5}A method that the path lacks/m);
});

test('--json prints one document with every promise, and its sums', async () => {
  const { stdout } = await contract([shop.url, '--json'], ALICE);
  const report = JSON.parse(stdout) as { summary: Record<string, Record<string, number>>; promises: { id: string; outcome: string }[] };
  expect(report).toMatchObject({ baseUrl: shop.url, strict: false, created: [], logins: { left: 0 } });
  expect(report.promises.map(({ id }) => id)).toEqual(sections.flatMap(({ promises }) => promises.map(({ id }) => id)));
  const sums = Object.values(report.summary).flatMap((counts) => Object.values(counts));
  expect(sums.reduce((sum, count) => sum + count)).toBe(report.promises.length);
});

test('--only takes a section with all that are in it', async () => {
  const { stdout } = await contract([shop.url, '--only', '5', '--json']);
  const report = JSON.parse(stdout) as { promises: { section: string }[] };
  expect(new Set(report.promises.map(({ section }) => section))).toEqual(new Set(['5.1', '5.2', '5.3']));
});

test('where nobody answers it ends with 69', async () => {
  const { code, stdout, stderr } = await contract([`http://127.0.0.1:${await freePort()}`], ALICE);
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toMatch(/^Nobody answers at http:\/\/127\.0\.0\.1:\d+: there is no answer \(ECONNREFUSED\)\n$/);
});

test('an interrupt ends the logins, and 130 the process', async () => {
  let interrupt = (): void => undefined;
  const { url, stop } = await spoiled(shop.url, ({ path }) => path === '/users/me/' && interrupt());
  const { child, ended } = launch('../contract/main.js', [url], ALICE);
  interrupt = () => child.kill('SIGINT');
  const { code, stdout } = await ended;
  await stop();
  expect(code).toBe(130);
  expect(stdout).toContain('(interrupted)');
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
});

test('--help tells what it does, where secrets come from, and what it ends with', async () => {
  const { code, stdout } = await contract(['--help']);
  expect(code).toBe(0);
  for (const word of ['<base-url>', '--password-stdin', '--write', 'CONTRACT_PASSWORD', 'CONTRACT_SIGNING_SECRET', '69']) {
    expect(stdout).toContain(word);
  }
});

test.each<[string, string[], Record<string, string>]>([
  ['no address', [], {}],
  ['what is no address', ['shop'], {}],
  ['an address of another kind', ['ftp://shop.example'], {}],
  ['an address with a query', ['http://shop.example/?a=1'], {}],
  ['an unknown option', ['http://shop.example', '--password', 'x'], {}],
  ['an unknown section', ['http://shop.example', '--only', '3'], {}],
  ['a prefix that is no path', ['http://shop.example', '--session-prefix', 'session'], {}],
  ['a username without a password', ['http://shop.example', '--username', 'alice'], {}],
  ['a password without a username', ['http://shop.example'], { CONTRACT_PASSWORD: 'x' }],
])('%s is wrong usage, 64', async (_what, args, env) => {
  const { code, stdout, stderr } = await contract(args, env);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toMatch(/^error: /);
});

test('it is a command of the package', async () => {
  const { bin } = JSON.parse(await readFile('package.json', 'utf8')) as { bin: Record<string, string> };
  expect(await readFile(String(bin['shopfront-contract']), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
});
