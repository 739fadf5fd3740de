import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';
import { precompress } from '../../packages/pages/web/precompress.ts';

/** The running shop, for `npm run dev`. */
const SHOP = 'http://127.0.0.1:4000';

/** Bundles the storefront into dist/storefront, which the server has at `/shop`. */
export default defineConfig(({ command }) => ({
  // Built files refer to each other by relative paths, whatever BASE_PATH is.
  base: command === 'build' ? './' : '/shop/',
  logLevel: command === 'build' ? 'warn' : 'info',
  plugins: [react(), precompress],
  server: { host: '127.0.0.1', proxy: { '/graphql': SHOP } },
  build: {
    outDir: '../../dist/storefront',
    emptyOutDir: true,
    manifest: 'manifest.json',
    license: { fileName: 'licenses.md' },
    modulePreload: false,
    rolldownOptions: { input: 'src/main.tsx' },
  },
}));
