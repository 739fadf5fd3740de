import { readFileSync } from 'node:fs';
import { z } from 'zod';

/** The files of pages, built by `npm run web`. */
export interface Bundle {
  directory: string;
  /** Path under BASE_PATH of its files. */
  path: string;
  /** Returns the script and styles of a page, relative to the directory. */
  partsOf(entry: string): { script: string; styles: string[] };
}

const chunk = z.object({
  file: z.string(),
  css: z.array(z.string()).default([]),
  imports: z.array(z.string()).default([]),
});
const manifest = z.record(z.string(), chunk);

/** Reads the bundle in a directory. Throws if it is not built. */
export function readBundle(directory: string, path = ''): Bundle {
  try {
    const chunks = manifest.parse(JSON.parse(readFileSync(`${directory}/manifest.json`, 'utf8')));
    return { directory, path, partsOf: (entry) => partsOf(chunks, entry) };
  } catch (error) {
    throw new Error(
      `The pages in ${directory} are not built: run \`npm run web\`, or set GRAPHQL_EXPLORER=false`,
      { cause: error },
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
