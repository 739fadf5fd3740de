import { describe, expect, test } from '../support/jest.ts';
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { freePort } from '../support/process.ts';
import { useShop } from '../support/shop.ts';

// Without building the image: `.ci/image` builds and runs it.
const dockerfile = (await readFile('Dockerfile', 'utf8')).replaceAll(/\\\n */g, '');
const stages = dockerfile.split(/^FROM /m).slice(1);
const final = stages.at(-1) ?? '';

describe('the health check of the image', () => {
  const shop = useShop({ BASE_PATH: '/shop' });

  test('succeeds while the server is ready', async () => {
    expect(await check({ PORT: String(shop.port), BASE_PATH: '/shop' })).toBe(0);
  });

  test('fails if the server is not ready, or does not run', async () => {
    // Without the prefix, the path does not exist.
    expect(await check({ PORT: String(shop.port) })).toBe(1);
    expect(await check({ PORT: String(await freePort()) })).toBe(1);
  });

  test('docker-compose.yml uses it', async () => {
    const compose = await readFile('docker-compose.yml', 'utf8');
    expect(compose.match(/healthcheck:/g)).toHaveLength(2);
    expect(compose.match(/readyz/g)).toBeNull();
  });
});

test('the image has the version and license of package.json', async () => {
  const { version, license, description } = JSON.parse(
    await readFile('package.json', 'utf8'),
  ) as Record<string, string>;
  const labels = [...final.matchAll(/org\.opencontainers\.image\.(\w+)="([^"]*)"/g)];
  expect(Object.fromEntries(labels.map(([, name, value]) => [name, value]))).toEqual({
    title: 'Shopfront',
    description,
    version,
    licenses: license,
  });
});

test('the image runs the server in production mode, as a user that is not root', () => {
  expect(final).toMatch(/^USER 1000:1000$/m);
  expect(final).toMatch(/^ENV NODE_ENV=production$/m);
  expect(JSON.parse(/^CMD (.*)$/m.exec(final)?.[1] ?? '')).toEqual(['node', 'dist/src/main.js']);
});

test('the image contains no development dependencies, and everything that it copies exists', async () => {
  expect(stages[0]).toContain('npm prune --omit=dev');
  const ignored = await readFile('.dockerignore', 'utf8');
  const copied = [...(stages[0] ?? '').matchAll(/^COPY (.*) \S+$/gm)].flatMap(([, names = '']) =>
    names.split(' '),
  );
  expect(copied.length).toBeGreaterThan(3);
  for (const name of copied) await stat(name);
  const outer = copied.filter((name) => !copied.some((other) => name.startsWith(`${other}/`)));
  expect(ignored.trim().split('\n')).toEqual(['*', ...outer.map((name) => `!${name}`)]);
});

// Runs the command as the builder does, with these settings, and returns its exit code.
async function check(env: Record<string, string>): Promise<number> {
  const [command, ...args] = JSON.parse(
    /^HEALTHCHECK .* CMD (.*)$/m.exec(final)?.[1] ?? '',
  ) as string[];
  expect(command).toBe('node');
  return promisify(execFile)(process.execPath, args, { env, timeout: 30_000 }).then(
    () => 0,
    ({ code }: { code: number }) => code,
  );
}
