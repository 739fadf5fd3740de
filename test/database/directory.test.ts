import { chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../support/jest.ts';
import { openPrivateDir } from '../../src/database/embedded/directory.ts';
import { withDirectory } from '../support/directories.ts';

const NOBODY = 65_534;

test('a directory in a world-writable place is created for this user only, and reused', async () => {
  await withDirectory(async (folder) => {
    const path = join(folder, 'own');
    openPrivateDir(path);
    openPrivateDir(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });
});

test.each(['a directory of another user', 'a link to a directory', 'a file'])(
  'it is rejected if it is %s',
  async (what) => {
    await withDirectory(async (folder) => {
      let path = join(folder, 'foreign');
      if (what === 'a file') writeFileSync(path, '');
      else if (what === 'a link to a directory') symlinkSync(folder, path);
      else if (process.getuid?.() === 0) {
        mkdirSync(path);
        chownSync(path, NOBODY, NOBODY);
      } else path = '/';
      expect(() => openPrivateDir(path)).toThrow(/it is not a directory( of this user)?\./);
    });
  },
);
