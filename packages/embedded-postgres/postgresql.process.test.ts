import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from '../../test/support/jest.ts';
import { withDirectory } from '../../test/support/directories.ts';
import { databaseIn, restoreBackup, startEmbedded, writeBackup } from './index.ts';

const log = { info: () => undefined, error: () => undefined };

test('a database is created, used by a second start that attaches, restarted, backed up and restored', async () => {
  await withDirectory(async (folder) => {
    const dataDir = join(folder, 'data');
    let onRestart = (): void => undefined;
    const restarted = new Promise<void>((done) => (onRestart = done));
    const database = await startEmbedded(dataDir, log, { onRestart });
    await run(database.url, 'create table note (text text)');
    await run(database.url, "insert into note values ('kept')");

    await expect(startEmbedded(dataDir, log)).rejects.toThrow(
      `The data directory ${dataDir} is in use by process ${process.pid}.`,
    );
    const attached = await startEmbedded(dataDir, log, { attach: true });
    expect(attached.url).toBe(database.url);
    await attached.stop();

    const [pid] = (await readFile(join(databaseIn(dataDir), 'postmaster.pid'), 'utf8')).split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await restarted;
    expect(await runUntilOpen(database.url, 'select text from note')).toEqual([{ text: 'kept' }]);

    const archive = join(folder, 'base.tar.gz');
    await writeBackup(database.adminUrl, archive);
    await run(database.url, 'delete from note');
    let checked: unknown;
    const replaced = await restoreBackup(dataDir, archive, async (copy) => {
      const restored = await startEmbedded(copy, log);
      checked = await run(restored.url, 'select text from note');
      await restored.stop();
    });
    expect(checked).toEqual([{ text: 'kept' }]);
    expect(replaced).toMatch(/postgresql\.replaced-\d+$/);
    expect(await runUntilOpen(database.url, 'select text from note')).toEqual([{ text: 'kept' }]);
    await database.stop();
    await expect(run(database.url, 'select 1')).rejects.toThrow(/ENOENT|ECONNREFUSED/);
  });
});

test('a stop during a restart leaves no process', async () => {
  await withDirectory(async (folder) => {
    const dataDir = join(folder, 'data');
    const restarting = Promise.withResolvers<void>();
    const database = await startEmbedded(dataDir, log, { onRestart: restarting.resolve });
    const pidFile = join(databaseIn(dataDir), 'postmaster.pid');
    const [pid] = (await readFile(pidFile, 'utf8')).split('\n');
    process.kill(Number(pid), 'SIGKILL');
    await restarting.promise;
    await database.stop();
    await expect(readFile(pidFile)).rejects.toThrow('ENOENT');
  });
});

async function run(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

async function runUntilOpen(url: string, statement: string): Promise<unknown[]> {
  for (;;) {
    try {
      return await run(url, statement);
    } catch {
      await once(AbortSignal.timeout(50), 'abort');
    }
  }
}
