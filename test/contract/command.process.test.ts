import { afterAll, afterEach, beforeAll, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { sections } from '../../contract/promises/index.ts';
import { Deployment } from '../../contract/deployment.ts';
import { Secrets } from '../../contract/secrets.ts';
import { credentialsOf, fullDeployment, seedShop } from '../support/contract.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { contract, freePort, launch } from '../support/process.ts';
import { Shop } from '../support/shop.ts';
import { startCorruptor } from '../support/corruptor.ts';

const execFileAsync = promisify(execFile);

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

test('endpoints are grouped by section, first of the interface, then of decisions', async () => {
  const { stdout } = await contract([shop.url, '--only', '9']);
  const [, promised = '', decided = ''] = stdout.split(/^(?:Interface|Decisions .*)$/m);
  expect(promised).toContain(
    '\n  9 Versioning\n    GET /api/v1/\n      passed   The catalogue is under /api/v1/.\n',
  );
  expect(decided).toContain(
    '\n  9 Versioning\n    OPTIONS /api/v1/auth/login\n      passed   The first version has no session login.\n',
  );
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

test('without --write and the secret, checks that need them are skipped', async () => {
  const { stdout } = await contract([shop.url, '--only', '4.3', '5.2'], ALICE);
  expect(stdout).toContain('(needs --write, because it may create a product)');
  expect(stdout).toContain('(needs the signing secret: CONTRACT_SIGNING_SECRET)');
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

test('a user who gets a session but no token does not end it', async () => {
  const { url, stop } = await startCorruptor(
    shop.url,
    (passing) => ['/token', '/login'].includes(passing.path) && (passing.status = 500),
  );
  const { code, stdout } = await contract([url, '--only', '4.1', '5.3'], ALICE);
  await stop();
  expect(stdout).toContain('[4.1:token-right]');
  expect(stdout).toMatch(/passed {3}A session key authenticates/);
  expect(code).toBe(1);
});

test('with a wrong signing secret, one check fails, and checks that need it are skipped', async () => {
  const { stdout } = await contract([shop.url, '--only', '5'], {
    ...ALICE,
    CONTRACT_SIGNING_SECRET: 'another'.repeat(8),
  });
  expect(stdout.match(/^ {6}failed .*$/gm)).toEqual([
    '      failed   The token can be verified with the signing secret. [5.1:secret]',
  ]);
  expect(stdout).toContain(
    '(the given signing secret does not sign the tokens of this deployment)',
  );
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

test('broken promises are grouped by cause, each with a command that returns the same status', async () => {
  const { url, stop } = await startCorruptor(shop.url, (passing) => {
    delete passing.headers['www-authenticate'];
    if (passing.path === '/users/me/items/') passing.status = 500;
  });
  const { stdout } = await contract([url, '--json'], EVERYTHING);
  const { causes, promises } = JSON.parse(stdout) as {
    causes: { expected: string; response: string; command: string; promises: string[] }[];
    promises: { id: string; outcome: string }[];
  };
  const broken = promises.filter(({ outcome }) => outcome === 'failed').map(({ id }) => id);
  expect(causes.flatMap((cause) => cause.promises).toSorted()).toEqual(broken.toSorted());
  expect(causes.length).toBeLessThan(broken.length / 2);
  expect(causes[0]).toMatchObject({
    expected: 'the header WWW-Authenticate: matching /^bearer\\b/i',
    response: '401 with no such header',
  });
  const at = new Deployment(fullDeployment(shop));
  const variables = { ...EVERYTHING, TOKEN: await at.token() };
  for (const { command, response } of causes) {
    const { stdout: answer } = await execFileAsync('sh', ['-c', command], {
      env: { ...process.env, ...variables },
    });
    expect(`${command}: ${answer.slice(0, 12)}`).toBe(
      `${command}: HTTP/1.1 ${response.slice(0, 3)}`,
    );
  }
  await at.logOutAll();
  await stop();
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

test('--broken says so if no promise is broken', async () => {
  const { code, stdout } = await contract([shop.url, '--broken', '--only', '9']);
  expect(stdout).toMatch(/^The contract at .*\n\nNo promise is broken\.\n\n6 passed, 0 failed/);
  expect(code).toBe(0);
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

test('a page that cannot be written ends it with 73, before any request', async () => {
  const { code, stdout, stderr } = await contract([shop.url, '--html', '/nowhere/report.html']);
  expect({ code, stdout, stderr }).toEqual({
    code: 73,
    stdout: '',
    stderr: 'Cannot write /nowhere/report.html: ENOENT\n',
  });
});

test.each(['plain', 'it’s', "it's", '$HOME `id` \\ "quoted"', "a'b c"])(
  'the password %j is a variable in commands, and other text is one word',
  async (secret) => {
    const secrets = new Secrets();
    secrets.add(secret, 'CONTRACT_PASSWORD');
    const text = `user's="$x"&secret=${secret}`;
    const word = String(secrets.shellWord(text));
    expect(word).not.toContain(secret);
    const { stdout } = await execFileAsync('sh', ['-c', `printf %s ${word}`], {
      env: { ...process.env, CONTRACT_PASSWORD: secret },
    });
    expect(stdout).toBe(text);
  },
);

test.each<[string, string, string]>([
  ['an encoded password', 'it is', 'password=it+is'],
  ['a password in JSON', 'a"bcd', String.raw`{"password":"a\"bcd"}`],
  ['an unknown token', 'secret', 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'],
  ['a control character', 'secret', '/product/7\u001B[2J'],
])('there is no command with %s', (_what, secret, text) => {
  const secrets = new Secrets();
  secrets.add(secret, 'CONTRACT_PASSWORD');
  expect(secrets.shellWord(text)).toBeUndefined();
});

test('there is no command with a password that is too short to be found', async () => {
  const short = 'abc';
  const { url, stop } = await startCorruptor(shop.url, (passing) => {
    if (passing.path === '/token') Object.assign(passing, { status: 200, body: '{}' });
  });
  await shop.makeUser({ username: 'shorty', password: short });
  const env = { CONTRACT_USERNAME: 'shorty', CONTRACT_PASSWORD: short };
  const { stdout } = await contract([url, '--only', '4.1', '--broken'], env);
  await stop();
  expect(stdout).toContain('try       POST /token with a form of username, password');
  expect(stdout).not.toContain(`password=${short}`);
});

test('HTTP Basic credentials are a variable in commands', async () => {
  const { url, stop } = await startCorruptor(shop.url, ({ path, headers }) => {
    if (path.startsWith('/api/v2/auth/login')) delete headers['cache-control'];
  });
  const { stdout } = await contract([url, '--only', '4.2'], ALICE);
  await stop();
  expect(stdout).toContain(`-H 'Authorization: Basic '"$BASIC"`);
  expect(stdout).not.toContain(btoa(`alice:${password}`));
  expect(stdout).toContain('\nBASIC is username:password in Base64.\n');
  expect(stdout).toContain(
    '\nEvery user of the machine can read the arguments of a running command.\n',
  );
});

test('a login that is rejected with 429 ends it, and prints no password', async () => {
  const { url, stop } = await startCorruptor(
    shop.url,
    (passing) => passing.method === 'POST' && (passing.status = 429),
  );
  const { code, stderr } = await contract([url], ALICE);
  await stop();
  expect(code).toBe(77);
  expect(stderr).toMatch(
    /^alice cannot sign in at .*POST \/token .* returned 429, too many requests/,
  );
  expect(stderr).not.toContain(password);
});

test('an interrupt while the user signs in ends the logins, and the process with 130', async () => {
  let interrupt = (): void => undefined;
  const { url, stop } = await startCorruptor(
    shop.url,
    ({ path }) => path === '/session/login' && interrupt(),
  );
  const { child, ended } = launch('../contract/main.js', [url], ALICE);
  interrupt = () => child.kill('SIGINT');
  const { code } = await ended;
  await stop();
  expect(code).toBe(130);
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
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

test('without a response, it exits with 69', async () => {
  const { code, stdout, stderr } = await contract([`http://127.0.0.1:${await freePort()}`], ALICE);
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toMatch(
    /^Cannot reach http:\/\/127\.0\.0\.1:\d+: no response \(ECONNREFUSED\)\n$/,
  );
});

test('an interrupt ends the logins, and the process with 130', async () => {
  let interrupt = (): void => undefined;
  const { url, stop } = await startCorruptor(
    shop.url,
    ({ path }) => path === '/users/me/' && interrupt(),
  );
  const { child, ended } = launch('../contract/main.js', [url], ALICE);
  interrupt = () => child.kill('SIGINT');
  const { code, stdout } = await ended;
  await stop();
  expect(code).toBe(130);
  expect(stdout).toContain('(interrupted)');
  expect(await shop.sql(OPEN_SESSIONS)).toEqual([]);
});

test('--help describes options, secrets and exit statuses', async () => {
  const { code, stdout } = await contract(['--help']);
  expect(code).toBe(0);
  for (const word of [
    '<base-url>',
    '--password-stdin',
    '--write',
    'CONTRACT_PASSWORD',
    'CONTRACT_SIGNING_SECRET',
    '69',
  ]) {
    expect(stdout).toContain(word);
  }
});

test.each<[string, string[], Record<string, string>]>([
  ['no URL', [], {}],
  ['a text that is not a URL', ['shop'], {}],
  ['a URL of another scheme', ['ftp://shop.example'], {}],
  ['a URL with a query', ['http://shop.example/?a=1'], {}],
  ['an unknown option', ['http://shop.example', '--password', 'x'], {}],
  ['an unknown section', ['http://shop.example', '--only', '3'], {}],
  ['a prefix that is not a path', ['http://shop.example', '--session-prefix', 'session'], {}],
  ['--broken with --json', ['http://shop.example', '--broken', '--json'], {}],
  ['a username without a password', ['http://shop.example', '--username', 'alice'], {}],
  ['a password without a username', ['http://shop.example'], { CONTRACT_PASSWORD: 'x' }],
])('%s is invalid usage, 64', async (_what, args, env) => {
  const { code, stdout, stderr } = await contract(args, env);
  expect({ code, stdout }).toEqual({ code: 64, stdout: '' });
  expect(stderr).toMatch(/^error: /);
});

test('it is an executable of the package', async () => {
  const { bin } = JSON.parse(await readFile('package.json', 'utf8')) as {
    bin: Record<string, string>;
  };
  expect(await readFile(String(bin['shopfront-contract']), 'utf8')).toMatch(
    /^#!\/usr\/bin\/env node\n/,
  );
});
