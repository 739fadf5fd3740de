import { expect, test } from '../support/jest.ts';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';
import { freePort, untilResponding } from '../support/process.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);

const HOME = '/opt/shopfront';
const CREDENTIALS = '${CREDENTIALS_DIRECTORY}';

const unit = await readFile('deploy/systemd/shopfront.service', 'utf8');

test('systemd accepts the unit', async () => {
  await withDirectory(async (directory) => {
    const copy = join(directory, 'shopfront.service');
    await writeFile(copy, here(unit));
    expect(await execute('systemd-analyze', ['verify', copy])).toEqual({ stdout: '', stderr: '' });
  });
});

test('its commands start the server with the settings and secrets of both files', async () => {
  await withDirectory(async (directory) => {
    const [DATA_DIR, CREDENTIALS_DIRECTORY] = [join(directory, 'data'), join(directory, 'secrets')];
    const PORT = String(await freePort());
    await mkdir(CREDENTIALS_DIRECTORY);
    await writeFile(join(CREDENTIALS_DIRECTORY, 'secrets.env'), `SIGNING_SECRET=${TEST_SECRET}\n`);
    // Those of shopfront.env too.
    const settings = { PORT, GRAPHQL_EXPLORER: 'false' };
    const env = { PATH: process.env['PATH'], ...environment(), ...settings, DATA_DIR };
    const start = (line: string) => {
      const [command = '', ...args] = here(line)
        .replace(CREDENTIALS, CREDENTIALS_DIRECTORY)
        .split(' ');
      return spawn(command, args, { env, stdio: 'ignore' });
    };
    const [migrate] = await once(start(only('ExecStartPre')), 'exit');
    expect(migrate).toBe(0);
    const server = start(only('ExecStart'));
    const url = `http://127.0.0.1:${PORT}`;
    const ended = once(server, 'exit');
    await Promise.race([untilResponding(url), ended]);
    expect(server.exitCode).toBe(null);
    await until(async () => (await fetch(`${url}/readyz`)).ok);
    // The given secret is used: none was generated.
    expect(await readdir(DATA_DIR)).not.toContain('signing-secret');
    server.kill('SIGTERM');
    const [code] = await ended;
    expect(code).toBe(0);
  });
});

test('it runs the files of the package, keeps its data, and has no privileges', async () => {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as {
    scripts: Record<'start' | 'migrate', string>;
  };
  for (const [key, script] of [
    ['ExecStart', scripts.start],
    ['ExecStartPre', scripts.migrate],
  ] as const) {
    const [node = '', , ...command] = only(key).split(' ');
    expect(command.join(' ')).toBe(script.split(' ').slice(3).join(' '));
    await stat(node.replace(HOME, '.'));
  }
  expect(environment()['DATA_DIR']).toBe(`/var/lib/${only('StateDirectory')}`);
  expect([only('DynamicUser'), only('NoNewPrivileges'), only('CapabilityBoundingSet')]).toEqual([
    'yes',
    'yes',
    '',
  ]);
});

function only(key: string): string {
  const values = [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value);
  if (values.length !== 1) throw new Error(`Expected one ${key}`);
  return values[0] ?? '';
}

function environment(): Record<string, string> {
  return Object.fromEntries(
    only('Environment')
      .split(' ')
      .map((assignment) => assignment.split('=', 2)),
  ) as Record<string, string>;
}

// Uses this checkout instead of the installed one.
function here(text: string): string {
  return text.replaceAll(HOME, process.cwd());
}
