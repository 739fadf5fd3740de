import { describe, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { demoUsers } from '../../src/features/demo-data.ts';
import { withDirectory } from '../support/directories.ts';

/** Environment with the project's own Node first in PATH. */
const ENV = {
  ...process.env,
  PATH: `${resolve('node_modules/.bin')}:${process.env['PATH'] ?? ''}`,
};

describe('the tarball', () => {
  test('X7 the tarball holds the built code and the documentation: no .env, keys, tests, benchmarks, data or sources', async () => {
    const files = await packed('.');
    const expected =
      /^(dist\/(src|packages)\/[\w./-]+(?<!\.test)\.js|dist\/(web|storefront)\/((br\/|gzip\/)?assets\/[\w.-]+\.(js|css|ttf)|favicon\.svg|licenses\.md|manifest\.json)|docs\/(generated\/)?[\w-]+\.md|(README|CHANGELOG|SECURITY)\.md|LICENSE|package\.json|schema\.graphql|openapi\.json)$/;
    expect(files.filter((file) => !expected.test(file))).toEqual([]);
    expect(files).toEqual(
      expect.arrayContaining([
        'dist/src/main.js',
        'dist/src/cli/main.js',
        'dist/packages/contract/main.js',
        'dist/packages/embedded-postgres/index.js',
        'dist/packages/pages/index.js',
        'dist/src/features/auth/passwords/hash-worker.js',
        'dist/web/manifest.json',
        'dist/storefront/manifest.json',
      ]),
    );
  });

  test('X7 files with secrets are not packed, from any folder', async () => {
    const folders = [
      '',
      'dist/',
      'dist/src/',
      'dist/src/auth/',
      'dist/web/',
      'dist/web/assets/',
      'docs/',
      'docs/generated/',
      'data/',
      'src/',
      'test/',
    ];
    const names = [
      '.env',
      '.env.production',
      'server.key',
      'server.pem',
      'signing-secret',
      'id_rsa',
      '.npmrc',
      'dump.sql',
      'seed.json',
    ];
    await withDirectory(async (folder) => {
      await cp('package.json', join(folder, 'package.json'));
      for (const path of [
        'dist/src/main.js',
        ...folders.flatMap((below) => names.map((name) => below + name)),
      ]) {
        await mkdir(dirname(join(folder, path)), { recursive: true });
        await writeFile(join(folder, path), 'x');
      }
      expect(await packed(folder)).toEqual(['dist/src/main.js', 'package.json']);
    });
  });

  test('X7 the tarball holds no key, no hash of a password, no token, and no known password but those of the demo users', async () => {
    const files = await packed('.');
    const texts = await Promise.all(
      files.map(async (file) => ({ file, text: await readFile(file, 'utf8') })),
    );
    const holding = (pattern: RegExp): string[] =>
      texts.filter(({ text }) => pattern.test(text)).map(({ file }) => file);
    expect(holding(/-----BEGIN [A-Z ]*PRIVATE KEY/)).toEqual([]);
    expect(holding(/\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}/)).toEqual([]);
    expect(holding(/eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{20,}/)).toEqual([]);
    // The web pages are mostly libraries, with words such as `password` in their texts.
    const code = texts.filter(({ file }) => /^dist\/(src|packages)\//.test(file));
    const literals = code.flatMap(({ text }) =>
      [...text.matchAll(/(?:password|secret)['"]?\s*[:=]\s*(['"`])([^'"`$]{6,})\1/gi)].map(
        ([, , literal]) => literal,
      ),
    );
    expect(new Set(literals)).toEqual(new Set(demoUsers.map(({ password }) => password)));
  });
});

test('X7 the shipped packages install from the lock file alone', async () => {
  const [manifest, lock] = await Promise.all(
    ['package.json', 'package-lock.json'].map(async (path) =>
      JSON.parse(await readFile(path, 'utf8')),
    ),
  );
  delete manifest.devDependencies;
  delete lock.packages['']?.devDependencies;
  const packages = Object.fromEntries(
    Object.entries<{ dev?: boolean }>(lock.packages).filter(([, { dev }]) => !dev),
  );
  await withDirectory(async (folder) => {
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    await writeFile(join(folder, 'package-lock.json'), JSON.stringify({ ...lock, packages }));
    // npm checks that both files agree. Offline, with an empty cache, it cannot query a registry.
    const cache = ['--offline', '--cache', join(folder, 'cache')];
    const { stdout } = await promisify(execFile)(
      'npm',
      ['ci', '--dry-run', '--ignore-scripts', ...cache],
      { cwd: folder, env: ENV },
    );
    expect(stdout).toMatch(/^added \d+ packages/m);
  });
});

/** Returns the files that `npm pack` would include for a folder. */
async function packed(folder: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(
    'npm',
    ['pack', '--dry-run', '--json', '--ignore-scripts'],
    {
      cwd: folder,
      env: ENV,
      maxBuffer: 16 * 1024 * 1024,
    },
  );
  const [tarball] = JSON.parse(stdout) as { files: { path: string }[] }[];
  return (tarball?.files ?? []).map(({ path }) => path);
}
