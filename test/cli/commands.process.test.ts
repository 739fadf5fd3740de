import { describe, expect, test } from '../support/jest.ts';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { cli } from '../support/process.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

// Everything else of the commands is tested in this process (support/command.ts).

const shop = useShop();

describe('the command line as a process', () => {
  test('reads a password from standard input, prints its result to standard output, and ends with 0', async () => {
    expect(
      await cli(['user', 'create', 'carol'], workerDatabase(), 'carol has a secret\n'),
    ).toEqual({
      code: 0,
      stdout: 'User carol created.\n',
      stderr: '',
    });
    const login = await shop.rest('POST', '/token', {
      form: { username: 'carol', password: 'carol has a secret' },
    });
    expect(login.status).toBe(200);
  });

  test('prints an error to standard error, and ends with 1', async () => {
    expect(await cli(['session', 'list', 'nobody'], workerDatabase())).toEqual({
      code: 1,
      stdout: '',
      stderr: 'User nobody does not exist\n',
    });
  });

  test('--help prints the usage, loads no command, and ends with 0', async () => {
    const NODE_V8_COVERAGE = await makeDataDir();
    expect(await cli(['--help'], { NODE_V8_COVERAGE })).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^Usage: shopfront /),
      stderr: '',
    });
    const [file = ''] = await readdir(NODE_V8_COVERAGE);
    const coverage = JSON.parse(await readFile(join(NODE_V8_COVERAGE, file), 'utf8')) as {
      result: { url: string }[];
    };
    const loaded = coverage.result.map(({ url }) => url);
    expect(
      loaded
        .filter((url) => url.includes('/dist/'))
        .map((url) => basename(url))
        .toSorted(),
    ).toEqual([
      'command-context.js',
      'exit.js',
      'main.js',
      'node-version.js',
      'program.js',
      'version.js',
    ]);
    await removeDirectory(NODE_V8_COVERAGE);
  });
});
