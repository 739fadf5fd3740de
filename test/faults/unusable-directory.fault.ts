import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { run, startServer, stopServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { mountSmallDisk } from './small-disk.ts';
import { tokenOf } from '../support/shopper.ts';

/** A user without files, on every Linux. */
const NOBODY = { uid: 65_534, gid: 65_534 };
const OTHER = { uid: 1, gid: 1 };
const LOG_FILE = 'pg_wal/000000010000000000000001';

interface Case {
  /** Pattern of the error message. */
  says: RegExp;
  /** Damages the data directory of a killed server. */
  damage: (path: string) => void;
  /** PostgreSQL detects the damage only after it has replayed its WAL. */
  late?: true;
  /** Runs as another user, which requires root. */
  user?: typeof NOBODY;
}

const CASES: Readonly<Record<string, Case>> = {
  'a file': {
    says: /it is not a directory/,
    damage: (path) => (rmSync(path, { recursive: true }), writeFileSync(path, 'a file')),
  },
  'damaged control file': {
    says: /cannot be opened: [a-z].*\. Nothing was changed/,
    damage: (path) => overwriteStart(join(path, 'postgresql/global/pg_control')),
  },
  'damaged log': {
    says: /cannot be opened: [a-z].*\. Nothing was changed/,
    damage: (path) => overwriteStart(join(path, 'postgresql', LOG_FILE)),
  },
  'damaged tables': {
    late: true,
    says: /cannot be opened: [a-z].*\. Nothing was changed/,
    damage: (path) => globSync(join(path, 'postgresql/base/5/[0-9]*')).forEach(overwriteStart),
  },
  "another user's": {
    says: /it belongs to another user/,
    damage: (path) => chmodSync(path, 0o755),
    user: NOBODY,
  },
  "another user's database": {
    says: /may not read and write/,
    damage: (path) => (
      chownSync(path, NOBODY.uid, NOBODY.gid),
      chownSync(join(path, 'postgresql'), OTHER.uid, OTHER.gid),
      chownSync(join(path, 'signing-secret'), NOBODY.uid, NOBODY.gid)
    ),
    user: NOBODY,
  },
};

export const unusableDirectory: Fault = {
  name: 'unusable-directory',
  promise:
    'If the data directory belongs to another user, is read-only or contains a damaged database, the server exits with 1 and a message, and changes nothing there.',
  on: ['embedded'],
  async run(context) {
    const isRoot = process.getuid?.() === 0;
    const whole = join(context.directory, 'whole');
    const server = await startServer({ DATA_DIR: whole });
    await stopServer(server, 'SIGKILL');
    // Waits for the exit of its database process, which the next server would do otherwise.
    await new Promise((done) => void setTimeout(done, 1_000));
    const tried = Object.entries(CASES).filter(([, { user }]) => isRoot || !user);
    for (const [name, { damage, says, user, late }] of tried) {
      const path = join(context.directory, name.replace(/\W/g, '-'));
      // Unlike cpSync, it keeps the owner.
      execFileSync('cp', ['-a', whole, path]);
      damage(path);
      const before = hashOf(path);
      await assertRejected(path, says, user);
      if (!late) assert.equal(hashOf(path), before, `${name}: unchanged`);
    }
    const small = await mountSmallDisk(context);
    if (small) {
      mkdirSync(join(small.path, 'data'));
      execFileSync('mount', ['-o', 'remount,ro', small.path]);
      await assertRejected(join(small.path, 'data'), /it is read-only/);
    }
    if (isRoot) await assertServesUnprivileged(join(context.directory, 'nobodys'));
    return {
      'directories rejected': tried.length + (small ? 1 : 0),
      ...(!isRoot && { 'not tried': 'other users and a read-only disk, which take root' }),
    };
  },
};

async function assertRejected(path: string, says: RegExp, user = {}): Promise<void> {
  const { code, stdout, stderr } = await run(
    'main.js',
    [],
    { DATA_DIR: path, PORT: '0', LOG_LEVEL: 'silent' },
    '',
    user,
  );
  assert.equal(code, 1, stderr);
  assert.equal(stdout, '');
  assert.match(stderr, /^The (data directory|database) [^\n]+\.\n$/);
  assert.match(stderr, says);
}

/** A server runs as any user that owns its directory. */
async function assertServesUnprivileged(path: string): Promise<void> {
  mkdirSync(path);
  chownSync(path, NOBODY.uid, NOBODY.gid);
  const server = await startServer({ DATA_DIR: path }, NOBODY);
  await tokenOf(server.url);
  assert.equal((await stopServer(server)).code, 0);
}

function overwriteStart(path: string): void {
  const { size } = statSync(path);
  writeFileSync(path, randomBytes(Math.min(size, 8_192)), { flag: 'r+' });
}

/** Returns a hash of the database and the secret, without lock files. */
function hashOf(path: string): string {
  const hash = createHash('sha256');
  for (const file of [
    '.',
    ...globSync('{postgresql,signing-secret,postgresql/**}', { cwd: path }),
  ].toSorted()) {
    if (/postmaster\.(pid|opts)$/.test(file)) continue;
    const name = join(path, file);
    hash.update(file).update(statSync(name).isFile() ? readFileSync(name) : '');
  }
  return hash.digest('hex');
}
