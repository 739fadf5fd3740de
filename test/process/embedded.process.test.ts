import { expect, test } from '../support/jest.ts';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withDataDir, withDirectory } from '../support/directories.ts';
import { run, startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

/** A pid above the maximum of Linux. */
const UNUSED_PID = 2 ** 22 + 1;

test('a database without PG_VERSION is rejected, not overwritten', async () => {
  await withDirectory(async (DATA_DIR) => {
    const path = join(DATA_DIR, 'postgres');
    await mkdir(join(path, 'base'), { recursive: true });
    const ended = await run('main.js', [], { DATA_DIR, PORT: '0', LOG_LEVEL: 'silent' });
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: `The database in ${path} cannot be opened: it lacks PG_VERSION. Nothing was reset. Put a backup in its place, or set DATA_DIR to another directory.\n`,
    });
    expect(await readdir(path)).toEqual(['base']);
  });
});

test('a database with an unfinished first start is created again', async () => {
  await withDirectory(async (DATA_DIR) => {
    const path = join(DATA_DIR, 'postgres');
    await mkdir(path);
    await writeFile(join(path, 'PG_VERSION'), '17');
    await writeFile(`${path}.unfinished`, '');
    const server = await startServer({ DATA_DIR });
    expect(await (await fetch(`${server.url}/api/v2/shop/products`)).json()).toMatchObject({
      count: 1200,
    });
    expect(existsSync(`${path}.unfinished`)).toBe(false);
    await stopServer(server);
  });
});

test('a truncated signing secret is rejected', async () => {
  await withDirectory(async (DATA_DIR) => {
    await writeFile(join(DATA_DIR, 'signing-secret'), '');
    const { code, stderr } = await run('main.js', [], { DATA_DIR, PORT: '0' });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^The signing secret in \S+ is truncated\. [^\n]+\n$/),
    });
  });
});

test('a hanging embedded database is replaced after DATABASE_STATEMENT_TIMEOUT_MS', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({
      DATA_DIR,
      LOG_LEVEL: 'silent',
      DATABASE_STATEMENT_TIMEOUT_MS: '100',
    });
    const hung = await childOf(DATA_DIR);
    process.kill(hung, 'SIGSTOP');
    const statuses = new Set<number>();
    await until(async () => {
      statuses.add((await fetch(`${server.url}/api/v2/shop/products`)).status);
      return (await childOf(DATA_DIR)) !== hung;
    });
    expect(statuses).toContain(503);
    await until(async () => (await fetch(`${server.url}/api/v2/shop/products`)).status === 200);
    expect(await stopServer(server)).toMatchObject({ code: 0 });
    expect([...statuses].filter((status) => status !== 200)).toEqual([503]);
  });
});

test('a data directory is locked while its server runs, also without a database process, and is free afterwards', async () => {
  await withDirectory(async (DATA_DIR) => {
    const lock = join(DATA_DIR, 'lock');
    const child = { pid: UNUSED_PID, started: '' };
    const start = () => run('main.js', [], { DATA_DIR, PORT: '0', SIGNING_SECRET: 'too short' });
    await writeFile(
      lock,
      JSON.stringify({ server: { pid: process.pid, started: await startOf(process.pid) }, child }),
    );
    expect(await start()).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`is in use by process ${process.pid}.`),
    });
    for (const server of [
      { pid: UNUSED_PID, started: '' },
      { pid: process.pid, started: 'at another time' },
    ]) {
      await writeFile(lock, JSON.stringify({ server, child }));
      expect(await start()).toMatchObject({ code: 78 });
    }
  });
});

async function childOf(dataDir: string): Promise<number> {
  const { child } = JSON.parse(await readFile(join(dataDir, 'lock'), 'utf8')) as {
    child: { pid: number };
  };
  return child.pid;
}

/**
 * The start time of a process as in the lock: clock ticks since boot, with the boot id (proc(5)).
 */
async function startOf(pid: number): Promise<string> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ').at(-1)?.split(' ');
  return `${(await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()}:${fields?.[19]}`;
}
