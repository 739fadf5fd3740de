import { readFile } from 'node:fs/promises';
import { describe, expect, test } from '../support/jest.ts';

describe('the image', () => {
  test('X7 the image copies named paths only, and sets no secret', async () => {
    const lines = (await readFile('Dockerfile', 'utf8'))
      .split('\n')
      .filter((line) => /^[A-Z]+ /.test(line));
    const copied = lines
      .filter((line) => line.startsWith('COPY '))
      .map((line) => line.split(' ').slice(1, -1));
    const [fromBuild, fromContext] = [true, false].map((build) =>
      copied.filter(([first]) => (first === '--from=build') === build).flat(),
    );
    expect(fromContext).toEqual([
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'mikro-orm.config.ts',
      'src',
      'web',
    ]);
    expect(fromBuild?.filter((source) => source !== '--from=build')).toEqual([
      '/app/package.json',
      '/app/node_modules',
      '/app/dist',
    ]);
    expect(
      lines.filter((line) => /^(ADD|ARG) |^ENV .*(SECRET|PASSWORD|DATABASE_URL|TOKEN)/.test(line)),
    ).toEqual(['ARG BASE=docker.io/library/node:24.21.0-bookworm-slim']);
    expect(lines).toContain('USER 1000:1000');
  });

  test('X7 the build context holds only those paths: no .env, data or .git', async () => {
    const [first, ...rest] = (await readFile('.dockerignore', 'utf8')).trim().split('\n');
    expect(first).toBe('*');
    expect(rest).toEqual([
      '!package.json',
      '!package-lock.json',
      '!tsconfig.json',
      '!mikro-orm.config.ts',
      '!src',
      '!web',
    ]);
  });
});

describe('the lock file', () => {
  test('X7 a lock file exists, and git does not ignore it', async () => {
    expect(
      (JSON.parse(await readFile('package-lock.json', 'utf8')) as { lockfileVersion: number })
        .lockfileVersion,
    ).toBe(3);
    expect((await readFile('.gitignore', 'utf8')).split('\n')).not.toContain('package-lock.json');
  });
});
