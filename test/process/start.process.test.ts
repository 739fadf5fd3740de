import { expect, test } from '../support/jest.ts';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { VERSION } from '../../src/core/version.ts';
import { withDataDir, withDirectory } from '../support/directories.ts';
import { until } from '../support/until.ts';
import { bearer, create, signIn, WRITER } from '../support/shopper.ts';
import {
  cli,
  databaseProcessOf,
  launch,
  run,
  shell,
  startServer,
  stopServer,
} from '../support/process.ts';

test('a start on an empty data directory serves demo data, and prints the URL and the users', async () => {
  await withDirectory(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    expect(server.banner).toContain(`Shopfront ${VERSION} listens on ${server.url},`);
    expect(server.banner).toMatch(/alice +\/ alice-demo-1 +products:write, blog:write/);

    const page = await fetch(`${server.url}/api/v2/shop/products?page=1`);
    expect(await page.json()).toMatchObject({ count: 1200, previous: null });
    expect((await signIn(server.url, WRITER)).status).toBe(200);
    expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
  });
});

test.each(['main.js', 'cli/main.js'])(
  '%s on an unsupported Node.js version exits with 1 and one line, before it loads other modules',
  async (entry) => {
    await withDirectory(async (folder) => {
      const preload = join(folder, 'preload.mjs');
      await writeFile(
        preload,
        `import { registerHooks } from 'node:module';
       Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });
       registerHooks({ resolve: (name, context, next) => {
         if (context.parentURL && !/^node:|node-version/.test(name)) throw new SyntaxError(name);
         return next(name, context);
       } });`,
      );
      expect(
        await run(entry, [], { NODE_OPTIONS: `--import=${preload}`, DATA_DIR: folder }),
      ).toEqual({
        code: 1,
        stdout: '',
        stderr:
          'Shopfront requires Node.js 24.18.1 or newer, but this is 20.20.2; npm start and npm run use the version in node_modules\n',
      });
    });
  },
);

test('npm install creates .env from .env.example, readable by the owner alone, and keeps an existing one', async () => {
  await withDirectory(async (folder) => {
    const program = resolve('.ci/env-file.js');
    await writeFile(join(folder, '.env.example'), '#PORT=4000\n');
    await Promise.all([1, 2].map(() => shell(`cd '${folder}' && node '${program}'`, {})));
    expect(await readFile(join(folder, '.env'), 'utf8')).toBe('#PORT=4000\n');
    expect((await stat(join(folder, '.env'))).mode & 0o777).toBe(0o600);
    await writeFile(join(folder, '.env'), 'PORT=1\n');
    expect(await shell(`cd '${folder}' && node '${program}'`, {})).toEqual({
      code: 0,
      stdout: '',
      stderr: '',
    });
    expect(await readFile(join(folder, '.env'), 'utf8')).toBe('PORT=1\n');
  });
});

test('a restart keeps the data, and tokens stay valid', async () => {
  await withDataDir(async (DATA_DIR) => {
    const first = await startServer({ DATA_DIR });
    const headers = await bearer(first.url);
    const made = await create(first.url, headers, '5901234123457', 'Kept');
    await stopServer(first);

    const second = await startServer({ DATA_DIR });
    const found = await fetch(second.url + String(made.headers.get('Location')));
    expect(await found.json()).toMatchObject({ name: 'Kept' });
    expect((await fetch(`${second.url}/users/me/`, { headers })).status).toBe(200);
    await stopServer(second);
  });
});

test('the embedded default stores its signing secret in the data directory, readable by the owner alone', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    await stopServer(server);
    const secret = await readFile(join(DATA_DIR, 'signing-secret'), 'utf8');
    expect(Buffer.byteLength(secret)).toBeGreaterThanOrEqual(32);
    expect((await stat(join(DATA_DIR, 'signing-secret'))).mode & 0o777).toBe(0o600);
    expect((await stat(DATA_DIR)).mode & 0o777).toBe(0o700);
    expect(server.banner).not.toContain(secret);
  });
});

// Invalid settings: test/core/config.test.ts.
test('a start with an invalid configuration exits with 78 and a line for each problem, without secrets', async () => {
  expect(await run('main.js', [], { SIGNING_SECRET: 'short-secret', BCRYPT_COST: '9' })).toEqual({
    code: 78,
    stdout: '',
    stderr:
      'Invalid configuration:\n  SIGNING_SECRET must have 32 bytes or more\n  BCRYPT_COST must be from 10 to 16\n',
  });
});

test('a start on a port in use exits with 1 and one line', async () => {
  await withDataDir(async (DATA_DIR) => {
    const first = await startServer({ DATA_DIR });
    const PORT = new URL(first.url).port;
    const second = await withDataDir(async (other) => {
      const ended = await run('main.js', [], { DATA_DIR: other, PORT });
      await expect(databaseProcessOf(other)).rejects.toThrow('ENOENT');
      return ended;
    });
    expect(second).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${PORT}: .*\\n$`),
      ),
    });
    await stopServer(first);
  });
});

test('SIGTERM while the first database is prepared ends the server with 0, and its database', async () => {
  await withDirectory(async (DATA_DIR) => {
    const { child, ended } = launch('main.js', [], { DATA_DIR, PORT: '0', LOG_LEVEL: 'error' });
    await until(() => databaseProcessOf(DATA_DIR).then(Boolean, () => false), 'a database');
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
    await expect(databaseProcessOf(DATA_DIR)).rejects.toThrow('ENOENT');
  });
});

test('APOLLO_KEY does not report operations to Apollo', async () => {
  await withDataDir(async (DATA_DIR) => {
    const apollo = { APOLLO_KEY: 'service:shop:key', APOLLO_GRAPH_REF: 'shop@current' };
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'info', ...apollo });
    const { stderr } = await stopServer(server);
    expect(server.banner + stderr).not.toMatch(/report/i);
  });
});

test('the package has the command line as shopfront, and --version prints the version of the package', async () => {
  const { version, bin } = JSON.parse(await readFile('package.json', 'utf8')) as {
    version: string;
    bin: Record<string, string>;
  };
  expect(await readFile(String(bin['shopfront']), 'utf8')).toMatch(/^#!\/usr\/bin\/env -S node /);
  expect(await cli(['--version'], {})).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});
