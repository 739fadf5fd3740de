import { expect, test } from '../support/jest.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { VERSION } from '../../src/core/version.ts';
import { withDataDir, withDirectory } from '../support/directories.ts';
import { cli, npm, run, shell, startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

test('a start on an empty data directory serves demo data, and prints working URLs, curl commands and users', async () => {
  await withDirectory(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    const lines = server.banner.split('\n').map((line) => line.trim());
    for (const path of ['/', '/graphiql', '/docs', '/shop', '/graphql'])
      expect(lines).toContain(server.url + path);
    expect(lines.filter((line) => line.startsWith('curl '))).toHaveLength(3);
    expect(server.banner).toContain(`Shopfront ${VERSION} listens on ${server.url},`);
    expect(server.banner).toMatch(/alice +\/ alice-demo-1 +products:write, blog:write/);

    const page = await fetch(`${server.url}/api/v2/shop/products?page=1`);
    expect(await page.json()).toMatchObject({ count: 1200, previous: null });
    const login = await fetch(`${server.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
    });
    expect(login.status).toBe(200);
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
          'Shopfront requires Node.js 22.17.0 or newer, but this is 20.20.2; npm start and npm run use the version in node_modules\n',
      });
    });
  },
);

test('the scripts of package.json run in every shell', async () => {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
    scripts: Record<string, string>;
  };
  const perShell = /[$`'](?!")|(^|&& )(\w+=|(rm|cp|mkdir|test|export) )/;
  expect(Object.entries(scripts).filter(([, script]) => perShell.test(script))).toEqual([]);
  // On Windows npm runs this file for exec.
  expect(await readFile('exec.cmd', 'utf8')).toMatch(/^@%\*\r$/m);
});

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

test('npm start serves, and a signal to npm stops the server', async () => {
  await withDataDir(async (DATA_DIR) => {
    const statuses: number[] = [];
    const work = async (printed: string): Promise<void> => {
      const url = String(/listens on (http:[^,]+),/.exec(printed)?.[1]);
      statuses.push((await fetch(`${url}/api/v1/shop/product/1`)).status);
    };
    const { stderr } = await npm(
      ['start'],
      { DATA_DIR, PORT: '0', LOG_LEVEL: 'error' },
      { prints: /zoe +\/ zoe-demo-1 +disabled/, work },
    );
    expect(statuses).toEqual([200]);
    expect(stderr).not.toMatch(/^\{|\.env/m);
  });
});

test.each<[string, Record<string, string>, number]>([
  ['warns once if it listens on every address', { HOST: '0.0.0.0' }, 1],
  ['does not warn with PUBLIC_URL', { HOST: '0.0.0.0', PUBLIC_URL: 'http://localhost:4000' }, 0],
  ['does not warn if it listens on the loopback interface', {}, 0],
])('a start without settings for a proxy %s', async (_name, env, warnings) => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'warn', ...env });
    const { stderr } = await stopServer(server);
    const lines = stderr.split('\n').filter(Boolean);
    expect(lines.map((line) => (JSON.parse(line) as { event: unknown }).event)).toEqual(
      Array(warnings).fill('config.public_url'),
    );
  });
});

test('a restart keeps the data, and tokens stay valid', async () => {
  await withDataDir(async (DATA_DIR) => {
    const first = await startServer({ DATA_DIR });
    const login = await fetch(`${first.url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
    });
    const { access_token: token } = (await login.json()) as { access_token: string };
    const product = JSON.stringify({ name: 'Kept', barcode: '5901234123457', price: 1 });
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const made = await fetch(`${first.url}/api/v1/shop/product/`, {
      method: 'POST',
      headers,
      body: product,
    });
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

test('a second process on the same data directory exits with 1 and names the first, which is not affected', async () => {
  await withDataDir(async (DATA_DIR) => {
    const first = await startServer({ DATA_DIR });
    const second = await run('main.js', [], { DATA_DIR, PORT: '0' });
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(
      `The data directory ${DATA_DIR} is in use by process ${first.child.pid}. Stop it first, or set DATA_DIR to another directory.\n`,
    );
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
    await stopServer(first);
  });
});

test('a start after a kill takes over the data directory, with all acknowledged writes', async () => {
  await withDataDir(async (DATA_DIR) => {
    const first = await startServer({ DATA_DIR });
    await stopServer(first, 'SIGKILL');
    const second = await startServer({ DATA_DIR });
    expect(await (await fetch(`${second.url}/api/v2/shop/products`)).json()).toMatchObject({
      count: 1200,
    });
    await stopServer(second);
  });
});

test('a start on an unusable data directory exits with 1 and one sentence, and changes nothing', async () => {
  await withDirectory(async (DATA_DIR) => {
    await writeFile(join(DATA_DIR, 'postgresql'), 'not a database');
    const ended = await run('main.js', [], { DATA_DIR, PORT: '0', LOG_LEVEL: 'silent' });
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: `The data directory cannot be used, because of ${join(DATA_DIR, 'postgresql')}: it is not a directory.\n`,
    });
    expect(await readFile(join(DATA_DIR, 'postgresql'), 'utf8')).toBe('not a database');
  });
});

test('a data directory may have a path that is longer than a socket path', async () => {
  await withDirectory(async (path) => {
    const server = await startServer({ DATA_DIR: join(path, 'a'.repeat(120)) });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    await stopServer(server);
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
    const second = await withDataDir((other) => run('main.js', [], { DATA_DIR: other, PORT }));
    expect(second).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${PORT}: .*\\n$`),
      ),
    });
    await stopServer(first);
  });
});

test('a start warns if a source is newer than the build, and not after the next build', async () => {
  await withDirectory(async (folder) => {
    for (const path of ['src', 'node_modules']) await symlink(resolve(path), join(folder, path));
    for (const path of [
      'dist/src',
      'dist/mikro-orm.config.js',
      'dist/.tsbuildinfo',
      'package.json',
    ])
      await cp(path, join(folder, path), { recursive: true });
    const build = join(folder, 'dist/.tsbuildinfo');
    const { mtime } = await stat('src/server.ts');
    const entry = relative(resolve('dist/src'), join(folder, 'dist/src/main.js'));
    const warnings = async (builtAt: Date): Promise<string[]> => {
      await utimes(build, builtAt, builtAt);
      const DATA_DIR = join(folder, 'data');
      const env = { DATA_DIR, LOG_LEVEL: 'warn', GRAPHQL_EXPLORER: 'false' };
      const server = await startServer(env, {}, entry);
      const { stderr } = await stopServer(server);
      return stderr.match(/src\/.*\.ts is newer than the build; run npm run build/g) ?? [];
    };
    expect(await warnings(new Date(mtime.getTime() - 1000))).toHaveLength(1);
    expect(await warnings(new Date())).toEqual([]);
  });
});

test('CONTRIBUTING.md: `npm run dev` restarts the server after a change, and ends with its terminal', async () => {
  await withDirectory(async (DATA_DIR) => {
    const child = spawn('npm', ['run', 'dev'], {
      detached: true,
      env: { ...process.env, DATA_DIR, PORT: '0', LOG_LEVEL: 'error' },
    });
    const closed = once(child, 'close');
    let printed = '';
    child.stdout.on('data', (piece: Buffer) => (printed += piece.toString()));
    const starts = () => printed.match(/listens on/g)?.length;
    await until(() => starts() === 1, 'the first start');
    const now = new Date();
    await utimes(resolve('dist/src/core/version.js'), now, now);
    await until(() => starts() === 2, 'the restart');
    // Ctrl-C on a terminal sends it to the whole group.
    process.kill(-Number(child.pid), 'SIGINT');
    await closed;
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
