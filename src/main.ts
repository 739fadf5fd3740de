import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { requireNodeVersion } from './core/node-version.ts';

requireNodeVersion();
// A quarter of a start is compiling. Where the directory cannot be written, nothing is cached.
enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)));
const { runProcess } = await import('./process.ts');
await runProcess();
