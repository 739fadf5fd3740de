import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';

/** Files up to this length, in bytes, are not compressed. */
const MAX_PLAIN = 1_024;

/** How the pages' files are compressed, by content coding. Brotli's best quality, 11, takes twelve times as long for 8 % less. */
const CODINGS = {
  br: (plain: Buffer) => promisify(brotliCompress)(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (plain: Buffer) => promisify(gzip)(plain, { level: constants.Z_BEST_COMPRESSION }),
};

/** Writes each file of `assets/` a second time under `br/` and `gzip/`, compressed. The server chooses (src/server/pages). */
const precompress: Plugin = {
  name: 'precompress',
  async writeBundle({ dir = '' }) {
    const names = await readdir(`${dir}/assets`);
    for (const [coding, compress] of Object.entries(CODINGS)) {
      await mkdir(`${dir}/${coding}/assets`, { recursive: true });
      await Promise.all(
        names.map(async (name) => {
          const plain = await readFile(`${dir}/assets/${name}`);
          if (plain.length > MAX_PLAIN) await writeFile(`${dir}/${coding}/assets/${name}`, await compress(plain));
        }),
      );
    }
  },
};

/** Bundles the pages into dist/web: names with a hash of what is in them, and a manifest that says which page needs which. */
export default defineConfig({
  // What a file needs stands beside it, whatever BASE_PATH is.
  base: './',
  logLevel: 'warn',
  plugins: [precompress],
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    manifest: 'manifest.json',
    license: { fileName: 'licenses.md' },
    modulePreload: false,
    // Editors are large, and are loaded by those who came for them.
    chunkSizeWarningLimit: 5_000,
    rolldownOptions: {
      input: ['home.ts', 'graphql.ts', 'graphiql.ts', 'docs.ts'].map((entry) => fileURLToPath(new URL(entry, import.meta.url))),
      // Libraries that also run on servers say which of their modules do not.
      onLog: (level, log, handle) => void (log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log)),
    },
  },
});
