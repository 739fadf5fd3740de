import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Returns a source file that is newer than the build, or undefined if there is none. An installed
 * package has no sources.
 */
export function newerSource(): string | undefined {
  const build = join(ROOT, 'dist/.tsbuildinfo');
  if (!existsSync(join(ROOT, 'src')) || !existsSync(build)) return undefined;
  const builtAt = statSync(build).mtimeMs;
  return readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join('src', name))
    .find((path) => statSync(join(ROOT, path)).mtimeMs > builtAt);
}
