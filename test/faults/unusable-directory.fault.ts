import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, chownSync, cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run, startServer, stopServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { mountSmallDisk } from './small-disk.ts';
import { tokenOf } from './shopper.ts';

/** Who owns nothing, on every Linux. */
const NOBODY = { uid: 65_534, gid: 65_534 };
const LOG_FILE = 'pg_wal/000000010000000000000001';

interface Case {
  /** What the sentence says. */
  says: RegExp;
  /** Ruins the data directory, which is as a killed server left it. */
  ruin: (path: string) => void;
  /** PostgreSQL finds out only once it has replayed its log. */
  late?: true;
  /** As another user, which takes root. */
  user?: typeof NOBODY;
}

const CASES: Readonly<Record<string, Case>> = {
  'a file': { says: /it is not a directory/, ruin: (path) => (rmSync(path, { recursive: true }), writeFileSync(path, 'a file')) },
  'a file as the database': {
    says: /it is not a directory/,
    ruin: (path) => (rmSync(join(path, 'postgres'), { recursive: true }), writeFileSync(join(path, 'postgres'), 'a file')),
  },
  'no version': { says: /lacks PG_VERSION/, ruin: (path) => rmSync(join(path, 'postgres/PG_VERSION')) },
  'no control file': { says: /lacks global\/pg_control/, ruin: (path) => rmSync(join(path, 'postgres/global/pg_control')) },
  'damaged control file': { says: /damaged/, ruin: (path) => damage(join(path, 'postgres/global/pg_control')) },
  'damaged log': { says: /damaged/, ruin: (path) => damage(join(path, 'postgres', LOG_FILE)) },
  'no log': { says: /damaged/, ruin: (path) => rmSync(join(path, 'postgres', LOG_FILE)) },
  'damaged tables': { late: true, says: /damaged/, ruin: (path) => globSync(join(path, 'postgres/base/5/[0-9]*')).forEach(damage) },
  "another user's": { says: /it belongs to another user/, ruin: (path) => chmodSync(path, 0o755), user: NOBODY },
  "another user's database": {
    says: /may not read and write/,
    ruin: (path) => (chownSync(path, NOBODY.uid, NOBODY.gid), chownSync(join(path, 'signing-secret'), NOBODY.uid, NOBODY.gid)),
    user: NOBODY,
  },
};

export const unusableDirectory: Fault = {
  name: 'unusable-directory',
  promise:
    'On a data directory that is not ours to write, cannot be written, or holds a damaged database, a start ends with 1 and one plain sentence, and nothing there is reset.',
  rows: ['F9'],
  on: ['embedded'],
  async run(world) {
    const isRoot = process.getuid?.() === 0;
    const whole = join(world.directory, 'whole');
    const server = await startServer({ DATA_DIR: whole });
    await stopServer(server, 'SIGKILL');
    // Its child ends by itself, and the next server would see to that; here nobody is next.
    await new Promise((done) => void setTimeout(done, 1_000));
    const tried = Object.entries(CASES).filter(([, { user }]) => isRoot || !user);
    for (const [name, { ruin, says, user, late }] of tried) {
      const path = join(world.directory, name.replace(/\W/g, '-'));
      cpSync(whole, path, { recursive: true });
      ruin(path);
      const before = imageOf(path);
      await refused(path, says, user);
      if (!late) assert.equal(imageOf(path), before, `${name}: left as it is`);
    }
    const small = await mountSmallDisk(world);
    if (small) {
      mkdirSync(join(small.path, 'data'));
      execFileSync('mount', ['-o', 'remount,ro', small.path]);
      await refused(join(small.path, 'data'), /it can only be read/);
    }
    if (isRoot) await serveNobody(join(world.directory, 'nobodys'));
    return {
      'directories refused': tried.length + (small ? 1 : 0),
      ...(!isRoot && { 'not tried': 'other users and a read-only disk, which take root' }),
    };
  },
};

async function refused(path: string, says: RegExp, user = {}): Promise<void> {
  const { code, stdout, stderr } = await run('main.js', [], { DATA_DIR: path, PORT: '0' }, '', user);
  assert.equal(code, 1, stderr);
  assert.equal(stdout, '');
  assert.match(stderr, /^The (data directory|database) [^\n]+\.\n$/);
  assert.match(stderr, says);
}

/** All that root may do, a user with a directory of its own may do too. */
async function serveNobody(path: string): Promise<void> {
  mkdirSync(path);
  chownSync(path, NOBODY.uid, NOBODY.gid);
  const server = await startServer({ DATA_DIR: path }, NOBODY);
  await tokenOf(server.url);
  assert.equal((await stopServer(server)).code, 0);
}

function damage(path: string): void {
  const { size } = statSync(path);
  writeFileSync(path, randomBytes(Math.min(size, 8_192)), { flag: 'r+' });
}

/** Of the database and the secret, without what says who has them open. */
function imageOf(path: string): string {
  const hash = createHash('sha256');
  for (const file of ['.', ...globSync('{postgres,signing-secret,postgres/**}', { cwd: path })].toSorted()) {
    if (file.endsWith('postmaster.pid')) continue;
    const name = join(path, file);
    hash.update(file).update(statSync(name).isFile() ? readFileSync(name) : '');
  }
  return hash.digest('hex');
}
