import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataDirUnusable, openDataDir, usable } from './directory.ts';

const BYTES = 32;

/** The embedded default's own signing secret: made at the first start, kept in its data directory, readable by the owner only. */
export function embeddedSigningSecret(dataDir: string): string {
  const path = join(dataDir, 'signing-secret');
  openDataDir(dataDir);
  const secret = usable(path, () => kept(path) ?? make(path));
  if (secret.length < BYTES)
    throw new DataDirUnusable(`The signing secret in ${path} is cut short. Remove it: the next start makes another.`);
  return secret;
}

function kept(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

// Linked when it is whole: a start that ends midway, or finds no space, leaves none rather than a part.
function make(path: string): string {
  const whole = `${path}.${process.pid}`;
  try {
    writeFileSync(whole, randomBytes(BYTES).toString('base64url'), { mode: 0o600 });
    linkSync(whole, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(whole, { force: true });
  }
  return readFileSync(path, 'utf8');
}
