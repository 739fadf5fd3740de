import { expect, test } from '../support/jest.ts';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { command } from '../support/command.ts';
import { makeDatabase, TEST_SECRET } from '../support/databases.ts';
import { withDirectory } from '../support/directories.ts';
import { insertingMany } from '../support/many-products.ts';
import { startPooler } from '../support/pgbouncer.ts';
import { startServer, stopServer } from '../support/process.ts';
import { useReceiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const receiver = useReceiver();

test('through PgBouncer in transaction mode, migrations run and events are delivered', async () => {
  const made = await makeDatabase(`shopfront_pooled_webhooks_${process.pid}`);
  try {
    await withDirectory(async (folder) => {
      // PgBouncer runs as another user, who needs access to the directory.
      await chmod(folder, 0o711);
      const { DATABASE_URL: url } = made.env;
      const pooler = await startPooler(join(folder, 'pgbouncer'), url, 2);
      const env = {
        DATABASE_URL: pooler.url,
        DATABASE_POOLER: 'transaction',
        SIGNING_SECRET: TEST_SECRET,
        WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true',
        HOST: '127.0.0.1',
      };
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        await client.query('drop schema public, pgboss cascade; create schema public');
        expect(await command(['migrate'], env)).toMatchObject({ code: 0 });
        expect(await command(['webhooks', 'add', receiver.url], env)).toMatchObject({ code: 0 });
        const server = await startServer(env);
        await client.query(insertingMany(20));
        await until(() => receiver.received.length === 20, 'the messages');
        expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
      } finally {
        await client.end();
        await pooler.stop();
      }
    });
  } finally {
    await made.drop();
  }
});
