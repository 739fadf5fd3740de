import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { ConfigError } from '../core/config.ts';

/** The files of pages, built by `npm run web`. */
export interface Bundle {
  directory: string;
  /** Path under BASE_PATH of its files. */
  path: string;
  /** Names of the files in `assets/`, each with a hash of its content. */
  assets: ReadonlySet<string>;
  /** Names of the files that are also in `br/` and `gzip/`, compressed. */
  compressed: ReadonlySet<string>;
  /** Returns the script and styles of a page, relative to the directory. */
  partsOf(entry: string): { script: string; styles: string[] };
}

/** Directories of the bundles. */
export const EXPLORERS = fileURLToPath(new URL('../../web', import.meta.url));
export const STOREFRONT = fileURLToPath(new URL('../../storefront', import.meta.url));

const chunk = z.object({
  file: z.string(),
  css: z.array(z.string()).default([]),
  imports: z.array(z.string()).default([]),
});
const manifest = z.record(z.string(), chunk);

/** Reads the bundle in a directory. Throws ConfigError if it is not built. */
export function readBundle(directory: string, path = ''): Bundle {
  try {
    const chunks = manifest.parse(JSON.parse(readFileSync(`${directory}/manifest.json`, 'utf8')));
    const assetsIn = (parent: string) => new Set(readdirSync(`${parent}/assets`));
    return {
      directory,
      path,
      assets: assetsIn(directory),
      compressed: assetsIn(`${directory}/br`),
      partsOf: (entry) => partsOf(chunks, entry),
    };
  } catch (error) {
    throw new ConfigError(
      [
        'GRAPHQL_EXPLORER is on, but its pages are not built: run `npm run web`, or set it to false',
      ],
      {
        cause: error,
      },
    );
  }
}

function partsOf(
  chunks: z.output<typeof manifest>,
  entry: string,
): { script: string; styles: string[] } {
  const visited = new Set<string>();
  const styles = (name: string): string[] => {
    const imported = chunks[name];
    if (!imported || visited.has(name)) return [];
    visited.add(name);
    // Imported styles come first, so that the page's own styles override them.
    return [...imported.imports.flatMap(styles), ...imported.css];
  };
  const entryChunk = chunks[entry];
  if (!entryChunk) throw new Error(`The bundle has no page ${entry}`);
  return { script: entryChunk.file, styles: styles(entry) };
}
