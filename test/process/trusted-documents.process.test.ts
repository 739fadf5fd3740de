import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';
import { run, startServer, stopServer } from '../support/process.ts';

test('a start with an unreadable manifest exits with 78 and one line, before it creates a database', async () => {
  await withDirectory(async (folder) => {
    const [file, data] = [join(folder, 'manifest.json'), join(folder, 'data')] as const;
    const env = {
      DATA_DIR: data,
      SIGNING_SECRET: TEST_SECRET,
      TRUSTED_DOCUMENTS: file,
      TRUSTED_DOCUMENTS_MODE: 'enforce',
    };
    expect(await run('main.js', [], env)).toEqual({
      code: 78,
      stdout: '',
      stderr: `Invalid configuration:\n  TRUSTED_DOCUMENTS: ${file} cannot be read (ENOENT)\n`,
    });
    expect(existsSync(data)).toBe(false);
  });
});

test('the mode off reads no manifest', async () => {
  await withDirectory(async (folder) => {
    const file = join(folder, 'manifest.json');
    const server = await startServer({ DATA_DIR: join(folder, 'data'), TRUSTED_DOCUMENTS: file });
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    await stopServer(server);
  });
});
