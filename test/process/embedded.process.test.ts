import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rename, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { isRunning } from '../../packages/embedded-postgres/running.ts';
import { commandFor, findPrograms } from '../../packages/embedded-postgres/programs.ts';
import { withDataDir, withDirectory } from '../support/directories.ts';
import {
  cli,
  databaseProcessOf,
  launch,
  run,
  shell,
  startServer,
  stopServer,
  type RunningServer,
} from '../support/process.ts';
import { querySql } from '../support/sql.ts';
import { until } from '../support/until.ts';

/** A pid above the maximum of Linux. */
const UNUSED_PID = 2 ** 22 + 1;

test('the rest of an interrupted first start is removed', async () => {
  await withDirectory(async (DATA_DIR) => {
    const rest = join(DATA_DIR, `postgresql.new-${UNUSED_PID}`);
    await mkdir(rest);
    const server = await startServer({ DATA_DIR });
    await expectProducts(server);
    expect(existsSync(rest)).toBe(false);
    await stopServer(server);
  });
});

test('a database is not created beside one that a restore was about to replace', async () => {
  await withDirectory(async (DATA_DIR) => {
    const replaced = join(DATA_DIR, 'postgresql.replaced-10');
    for (const path of [join(DATA_DIR, 'postgresql.replaced-9'), replaced]) await mkdir(path);
    expect(await start(DATA_DIR)).toMatchObject({
      code: 1,
      stderr: `The restore of ${join(DATA_DIR, 'postgresql')} was interrupted. Rename ${replaced} back to it.\n`,
    });
  });
});

test.each([`'c' %41,"`])(
  'a data directory may have the name %j, and a backup the name a:b',
  async (name) => {
    await withDataDir(async (path) => {
      const DATA_DIR = join(path, name);
      await mkdir(DATA_DIR);
      await rename(join(path, 'postgresql'), join(DATA_DIR, 'postgresql'));
      for (const command of ['backup', 'restore'])
        expect(
          await shell(`cd ${path} && node ${resolve('dist/src/cli/main.js')} ${command} a:b`, {
            DATA_DIR,
          }),
        ).toMatchObject({ code: 0, stderr: '' });
    });
  },
);

test('a database that others may read is closed to them, and served', async () => {
  await withDataDir(async (DATA_DIR) => {
    await chmod(join(DATA_DIR, 'postgresql'), 0o777);
    expect(await cli(['migrate'], { DATA_DIR })).toMatchObject({ code: 0, stderr: '' });
    expect((await stat(join(DATA_DIR, 'postgresql'))).mode & 0o777).toBe(0o700);
  });
});

test('a truncated signing secret is rejected', async () => {
  await withDirectory(async (DATA_DIR) => {
    await writeFile(join(DATA_DIR, 'signing-secret'), '');
    const { code, stderr } = await start(DATA_DIR);
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^The signing secret in \S+ is truncated\. [^\n]+\n$/),
    });
  });
});

test('no statement of the app reads files or runs programs: its role is no superuser', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    const rows = await querySql(
      { host: DATA_DIR, user: 'postgres', database: 'postgres' },
      `select distinct usename, rolsuper, pg_has_role(usename, 'pg_execute_server_program', 'usage') as runs
      from pg_stat_activity join pg_roles on rolname = usename where application_name = 'shopfront'`,
    );
    expect(rows).toEqual([{ usename: 'shopfront', rolsuper: false, runs: false }]);
    await stopServer(server);
  });
});

test('the database ends with its server, also with a killed one', async () => {
  await withDataDir(async (DATA_DIR) => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const server = await startServer({ DATA_DIR });
      const pid = await databaseProcessOf(DATA_DIR);
      await stopServer(server, signal);
      await until(() => !isRunning(pid), 'the exit of the database');
    }
  });
});

test('a database that was left running without its server is stopped by the next start', async () => {
  await withDataDir(async (DATA_DIR) => {
    const abandoned = await startDatabase(DATA_DIR);
    const ended = once(abandoned, 'exit');
    const server = await startServer({ DATA_DIR });
    await ended;
    await expectProducts(server);
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});

test('a lock file whose process is another program now does not prevent a start', async () => {
  await withDataDir(async (DATA_DIR) => {
    const lines = [process.pid, join(DATA_DIR, 'postgresql'), 0, 5432, DATA_DIR, '', 0, 'ready'];
    await writeFile(join(DATA_DIR, 'postgresql', 'postmaster.pid'), `${lines.join('\n')}\n`);
    const server = await startServer({ DATA_DIR });
    await expectProducts(server);
    await stopServer(server);
  });
});

test('commands use the database of another command, and a server leaves it alone', async () => {
  await withDataDir(async (DATA_DIR) => {
    const { child, ended } = launch('cli/main.js', ['products', 'import', '-', '--format', 'csv'], {
      DATA_DIR,
    });
    await until(
      () => databaseProcessOf(DATA_DIR).then(Boolean, () => false),
      'the database of the command',
    );
    await until(
      async () => (await cli(['migrate'], { DATA_DIR })).code === 0,
      'a command that uses it',
    );
    expect(await start(DATA_DIR)).toMatchObject({
      code: 1,
      stderr: `The data directory ${DATA_DIR} is in use by process ${child.pid}. Stop it first, or set DATA_DIR to another directory.\n`,
    });
    child.stdin?.end('name,barcode,price\nInk,5901234123457,1\n');
    expect((await ended).code).toBe(0);
  });
});

function start(dataDir: string) {
  return run('main.js', [], { DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'silent' });
}

async function expectProducts({ url }: RunningServer): Promise<void> {
  expect(await (await fetch(`${url}/api/v2/shop/products`)).json()).toMatchObject({ count: 1200 });
}

/** Starts the database alone, as if its server had gone. */
async function startDatabase(dataDir: string) {
  const { postgres } = await findPrograms();
  const path = join(dataDir, 'postgresql');
  const settings = ['listen_addresses=', `unix_socket_directories=${dataDir}`];
  const args = ['-D', path, ...settings.flatMap((setting) => ['-c', setting])];
  const child = spawn(...commandFor(postgres, args, (await stat(path)).uid), { stdio: 'ignore' });
  await until(async () => {
    const pid = await databaseProcessOf(dataDir).catch(() => undefined);
    return pid === child.pid;
  }, 'the database');
  return child;
}
