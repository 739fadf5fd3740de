import { randomBytes } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { access, DataDirUnusable, openDataDir } from '../../packages/embedded-postgres/index.ts';

const FILE = 'signing-secret';
const BYTES = 32;

/**
 * Returns the signing secret of the embedded default. Creates it at the first start, in the data
 * directory, readable by the owner only.
 */
export function embeddedSigningSecret(dataDir: string): string {
  const path = join(dataDir, FILE);
  openDataDir(dataDir);
  const secret = access(path, () => {
    const created = randomBytes(BYTES).toString('base64url');
    if (!existsSync(path)) writeFileSync(path, created, { mode: 0o600, flag: 'wx' });
    return readFileSync(path, 'utf8');
  });
  if (secret.length < BYTES)
    throw new DataDirUnusable(
      `The signing secret in ${path} is truncated. Put back the file of a backup, or remove it: the next start creates another secret, which voids the access tokens of open sessions.`,
    );
  return secret;
}

/** Copies the signing secret of a data directory, if there is one. Keeps an existing copy. */
export function copySigningSecret(from: string, to: string): void {
  const [source, copy] = [join(from, FILE), join(to, FILE)];
  if (existsSync(source) && !existsSync(copy)) access(copy, () => copyFileSync(source, copy));
}
