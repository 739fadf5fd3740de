import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '../../test/support/jest.ts';
import { withDirectory } from '../../test/support/directories.ts';
import { access, openPrivateDir, unusableDatabase } from './directory.ts';

test('a directory in a world-writable place is created for this user only, and reused', async () => {
  await withDirectory(async (folder) => {
    const path = join(folder, 'own');
    openPrivateDir(path);
    openPrivateDir(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
  });
});

// Texts of PostgreSQL 18 (miscinit.c, postmaster.c, xlog.c, fd.c).
test.each([
  'data directory "/srv/it\'s" has wrong ownership',
  'data directory "/srv/it\'s" has invalid permissions',
  'could not open file "global/pg_control": Permission denied',
])('whole data with other permissions is mended, and not replaced: %s', (reason) => {
  const { message } = unusableDatabase("/srv/it's", reason);
  expect(message).toContain(`${reason}. Nothing was changed. Mend it as root with: chown -R `);
  expect(message).toContain(String.raw`chmod -R u+rwX,go= '/srv/it'\''s'`);
  expect(message).not.toMatch(/backup|remove|DATA_DIR/i);
});

test.each(['EACCES', 'EPERM'])(
  'a directory that may not be used (%s) says how to mend it',
  (code) => {
    const opening = () =>
      access('/srv/shop', () => {
        throw Object.assign(new Error(), { code });
      });
    expect(opening).toThrow(/ Mend it as root with: chown -R \d+ '\/srv\/shop' && chmod /);
  },
);

test.each([
  'could not locate a valid checkpoint record',
  'could not write lock file "postmaster.pid": No space left on device',
  'it lacks PG_VERSION',
])('no advice loses data: %s', (reason) => {
  expect(unusableDatabase('/srv/shop', reason).message).toMatch(
    /Nothing was changed\. Remove this cause and start again, or restore a backup .* keeps this database/,
  );
});
