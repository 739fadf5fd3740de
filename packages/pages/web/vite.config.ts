import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { precompress } from './precompress.ts';

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
