// Builds after `npm install`. The first `npx shopfront` runs this, too, and has nothing to build.
import { execSync } from 'node:child_process';

if (process.env.npm_command !== 'exec')
  execSync('npm run build && npm run web', { stdio: 'inherit' });
