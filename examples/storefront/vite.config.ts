import react from '@vitejs/plugin-react';
import { defineConfig, loadEnv } from 'vite';

const DEFAULT_API = 'http://127.0.0.1:4000/graphql';

export default defineConfig(({ mode }) => ({
  plugins: [react()],
  define: {
    'import.meta.env.VITE_API_URL': JSON.stringify(
      loadEnv(mode, '.')['VITE_API_URL'] ?? DEFAULT_API,
    ),
  },
  server: { host: '127.0.0.1' },
  preview: { host: '127.0.0.1' },
}));
