import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import { precompress } from './precompress.ts';

/** Bundles the pages into dist/web: files with a content hash in the name, and a manifest. */
export default defineConfig({
  // Files refer to each other by relative paths, whatever BASE_PATH is.
  base: './',
  logLevel: 'warn',
  plugins: [precompress],
  build: {
    outDir: '../../../dist/web',
    emptyOutDir: true,
    manifest: 'manifest.json',
    license: { fileName: 'licenses.md' },
    modulePreload: false,
    // Editors are large, and only loaded on their pages.
    chunkSizeWarningLimit: 5_000,
    rolldownOptions: {
      input: ['home.ts', 'usage.ts', 'graphql.ts', 'graphiql.ts', 'docs.ts'].map((entry) =>
        fileURLToPath(new URL(entry, import.meta.url)),
      ),
      // Ignores the directives of libraries that also run on servers.
      onLog: (level, log, handle) =>
        void (log.code !== 'MODULE_LEVEL_DIRECTIVE' && handle(level, log)),
    },
  },
});
