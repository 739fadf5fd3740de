import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DataDirUnusable, openDataDir, access } from './directory.ts';

const BYTES = 32;

/**
 * Returns the signing secret of the embedded default. Creates it at the first start, in the data
 * directory, readable by the owner only.
 */
export function embeddedSigningSecret(dataDir: string): string {
  const path = pathIn(dataDir);
  openDataDir(dataDir);
  const secret = access(path, () => read(path) ?? create(path));
  if (secret.length < BYTES)
    throw new DataDirUnusable(
      `The signing secret in ${path} is truncated. Put back the file of a backup, or remove it: the next start creates another secret, which voids the access tokens of open sessions.`,
    );
  return secret;
}

/** Copies the signing secret of a data directory, if there is one. Keeps an existing copy. */
export function copySigningSecret(from: string, to: string): void {
  const [source, copy] = [pathIn(from), pathIn(to)];
  if (existsSync(source) && !existsSync(copy)) access(copy, () => copyFileSync(source, copy));
}

function pathIn(directory: string): string {
  return join(directory, 'signing-secret');
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

// Linked when complete: a start that is interrupted or finds no space leaves no partial secret.
function create(path: string): string {
  const temporary = `${path}.${process.pid}`;
  try {
    writeFileSync(temporary, randomBytes(BYTES).toString('base64url'), { mode: 0o600 });
    linkSync(temporary, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    rmSync(temporary, { force: true });
  }
  return readFileSync(path, 'utf8');
}
