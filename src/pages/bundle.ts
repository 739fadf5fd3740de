import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { ConfigError } from '../core/config.ts';

/** The files of the pages, as `npm run web` has made them. */
export interface Bundle {
  directory: string;
  /** What stands under `assets/`; each name holds a hash of what is in it. */
  assets: ReadonlySet<string>;
  /** Those of them that are also there compressed, under the same name under `br/` and `gzip/`. */
  compressed: ReadonlySet<string>;
  /** What a page is made of, relative to the directory. */
  partsOf(entry: string): { script: string; styles: string[] };
}

const OURS = fileURLToPath(new URL('../../web', import.meta.url));

const chunk = z.object({ file: z.string(), css: z.array(z.string()).default([]), imports: z.array(z.string()).default([]) });
const manifest = z.record(z.string(), chunk);

/** Reads what there is. Throws ConfigError where nothing has been made. */
export function readBundle(directory: string = OURS): Bundle {
  try {
    const chunks = manifest.parse(JSON.parse(readFileSync(`${directory}/manifest.json`, 'utf8')));
    const assetsIn = (below: string) => new Set(readdirSync(`${below}/assets`));
    return { directory, assets: assetsIn(directory), compressed: assetsIn(`${directory}/br`), partsOf: (entry) => partsOf(chunks, entry) };
  } catch (error) {
    throw new ConfigError(['GRAPHQL_EXPLORER is on, but its pages are not there: make them with `npm run web`, or set it to false'], {
      cause: error,
    });
  }
}

function partsOf(chunks: z.output<typeof manifest>, entry: string): { script: string; styles: string[] } {
  const seen = new Set<string>();
  const styles = (name: string): string[] => {
    const found = chunks[name];
    if (!found || seen.has(name)) return [];
    seen.add(name);
    // What is imported comes first, so that the page's own styles win.
    return [...found.imports.flatMap(styles), ...found.css];
  };
  const own = chunks[entry];
  if (!own) throw new Error(`the bundle has no page ${entry}`);
  return { script: own.file, styles: styles(entry) };
}
