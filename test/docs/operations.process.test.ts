import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { withDirectory } from '../support/directories.ts';
import { bearer, create } from '../support/shopper.ts';
import { shell, startServer, stopServer, type RunningServer } from '../support/process.ts';

const document = await readFile('docs/operations.md', 'utf8');
const [backup = '', restore = ''] =
  /^```sh\n(npm run -s cli -- backup .*?)^```/ms.exec(document)?.[1]?.split('\n') ?? [];

test('docs/operations.md: the embedded database is backed up and restored while it serves', async () => {
  await withDirectory(async (home) => {
    const DATA_DIR = join(home, 'data');
    const runDocumented = (command: string, dataDir: string) =>
      shell(command.replace('shopfront-backup', join(home, 'copy')), { DATA_DIR: dataDir });
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    const token = await bearer(server.url);
    const add = async (barcode: string) =>
      (await create(server.url, token, barcode)).headers.get('Location') ?? '';
    const before = await add('5901234123457');
    expect(await runDocumented(backup, DATA_DIR)).toMatchObject({ code: 0, stderr: '' });
    const after = await add('4006381333931');
    expect(await runDocumented(restore, DATA_DIR)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^Restored \S+ to \S+\.\nThe replaced database is in \S+postgresql\.replaced-\d+; /,
      ),
    });
    expect([await statusOf(server, before), await statusOf(server, after)]).toEqual([200, 404]);
    expect(await statusOf(server, '/users/me/', token)).toBe(200);
    await stopServer(server);

    const elsewhere = join(home, 'elsewhere');
    expect(await runDocumented(restore, elsewhere)).toMatchObject({ code: 0, stderr: '' });
    const second = await startServer({ DATA_DIR: elsewhere });
    expect(await statusOf(second, before)).toBe(200);
    expect(await statusOf(second, '/users/me/', token)).toBe(200);
    await stopServer(second);
  });
});

test('backup rejects an existing directory, and restore a directory without a backup', async () => {
  await withDirectory(async (home) => {
    const env = { DATA_DIR: join(home, 'data') };
    const run = (command: string) => shell(`npm run -s cli -- ${command} ${home}/data`, env);
    expect(await run('backup')).toMatchObject({
      code: 1,
      stderr: `There is no database in ${home}/data\n`,
    });
    const server = await startServer(env);
    expect(await run('backup')).toMatchObject({
      code: 1,
      stderr: `${home}/data cannot be written (EEXIST)\n`,
    });
    expect(await run('restore')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^\S+base\.tar\.gz cannot be restored: [^\n]+\n$/),
    });
    expect(await statusOf(server, '/api/v2/shop/products')).toBe(200);
    await stopServer(server);
  });
});

test('with DATABASE_URL, backup and restore refer to the tools of PostgreSQL', async () => {
  const env = { DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nothing' };
  for (const command of ['backup', 'restore'])
    expect(await shell(`npm run -s cli -- ${command} nowhere`, env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('pg_dump'),
    });
});

/** Returns the status, once the database is used again. */
async function statusOf({ url }: RunningServer, path: string, headers = {}): Promise<number> {
  for (;;) {
    const { status } = await fetch(url + path, { headers });
    if (status !== 503) return status;
  }
}
