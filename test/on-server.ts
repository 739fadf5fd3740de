import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeCluster } from './support/postgresql.ts';

// Runs a command with TEST_DATABASE_URL: its current value, or the URL of a PostgreSQL server that
// is started for the command.
//   node dist/test/on-server.js COMMAND [ARGUMENT...]
const [command = '', ...args] = process.argv.slice(2);
const server = process.env['TEST_DATABASE_URL'] ? undefined : await startServer();
try {
  const child = spawn(command, args, {
    stdio: 'inherit',
    env: { ...process.env, ...(server && { TEST_DATABASE_URL: server.url }) },
  });
  await once(child, 'close');
  process.exitCode = child.exitCode ?? 1;
} finally {
  await server?.stop();
}

async function startServer(): Promise<{ url: string; stop(): Promise<void> }> {
  const directory = await mkdtemp(join(tmpdir(), 'shopfront-server-'));
  // The apps of many tests have idle connections for a while.
  const cluster = await makeCluster(directory, { fsync: 'off', max_connections: '300' });
  return {
    url: cluster.url,
    async stop() {
      await cluster.stop('immediate');
      await rm(directory, { recursive: true, force: true });
    },
  };
}
