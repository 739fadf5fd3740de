import { expect, test } from '../../test/support/jest.ts';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { Secrets } from './secrets.ts';

const execFileAsync = promisify(execFile);

/** Nothing listens at this port, which is below those that systems assign. */
const URL_OF_NOBODY = 'http://127.0.0.1:1023';

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

test('without a response, it exits with 69', async () => {
  const { code, stdout, stderr } = await contract([URL_OF_NOBODY], {
    CONTRACT_USERNAME: 'alice',
    CONTRACT_PASSWORD: 'secret',
  });
  expect({ code, stdout }).toEqual({ code: 69, stdout: '' });
  expect(stderr).toMatch(
    /^Cannot reach http:\/\/127\.0\.0\.1:\d+: no response \(ECONNREFUSED\)\n$/,
  );
});

test('a page that cannot be written ends it with 73, before any request', async () => {
  const { code, stdout, stderr } = await contract([
    URL_OF_NOBODY,
    '--html',
    '/nowhere/report.html',
  ]);
  expect({ code, stdout, stderr }).toEqual({
    code: 73,
    stdout: '',
    stderr: 'Cannot write /nowhere/report.html: ENOENT\n',
  });
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

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the command with these arguments. */
function contract(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const main = new URL('main.js', import.meta.url).pathname;
  return new Promise((done) => {
    execFile(process.execPath, [main, ...args], { env }, (error, stdout, stderr) =>
      done({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}
