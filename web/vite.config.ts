import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** Bundles the pages into dist/web: names with a hash of what is in them, and a manifest that says which page needs which. */
export default defineConfig({
  // What a file needs stands beside it, whatever BASE_PATH is.
  base: './',
  logLevel: 'warn',
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
