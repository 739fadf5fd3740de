import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** Files up to this length, in bytes, are not compressed. */
const MAX_PLAIN = 1_024;

/** Compression by content coding. Brotli quality 11 takes twelve times as long for 8 % less. */
const CODINGS = {
  br: (plain: Buffer) =>
    promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (plain: Buffer) => promisify(gzip)(plain, { level: constants.Z_BEST_COMPRESSION }),
};

/** Writes compressed copies of `assets/` to `br/` and `gzip/`, for the server to choose from. */
const precompress: Plugin = {
  name: 'precompress',
  async writeBundle({ dir = '' }) {
    const names = await readdir(`${dir}/assets`);
    for (const [coding, compress] of Object.entries(CODINGS)) {
      await mkdir(`${dir}/${coding}/assets`, { recursive: true });
      await Promise.all(
        names.map(async (name) => {
          const plain = await readFile(`${dir}/assets/${name}`);
          if (plain.length > MAX_PLAIN)
            await writeFile(`${dir}/${coding}/assets/${name}`, await compress(plain));
        }),
      );
    }
  },
};

/** Removes the style attributes that Scalar writes as text: the policy of its page forbids them. */
const withoutStyleAttributes: Plugin = {
  name: 'without-style-attributes',
  transform: {
    filter: { id: /@scalar\/(themes|highlight|code-highlight)\/dist\/.*\.js$/ },
    handler: (code) =>
      code
        .replaceAll(/\.setAttribute\("style", /g, '.style.cssText = (')
        .replaceAll('properties.style = `--line-count', 'properties.dataLines = `--line-count')
        .replaceAll(' style="--line-count', ' data-lines="--line-count'),
  },
};

/** Bundles the pages into dist/web: files with a content hash in the name, and a manifest. */
export default defineConfig({
  // Files refer to each other by relative paths, whatever BASE_PATH is.
  base: './',
  logLevel: 'warn',
  plugins: [withoutStyleAttributes, precompress],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    manifest: 'manifest.json',
    license: { fileName: 'licenses.md' },
    modulePreload: false,
    // Editors are large, and only loaded on their pages.
    chunkSizeWarningLimit: 5_000,
    rolldownOptions: {
      input: ['home.ts', 'graphql.ts', 'graphiql.ts', 'docs.ts'].map((entry) =>
        fileURLToPath(new URL(entry, import.meta.url)),
      ),
      // Ignores the directives of libraries that also run on servers.
      onLog: (level, log, handle) =>
        void (log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log)),
    },
  },
});
