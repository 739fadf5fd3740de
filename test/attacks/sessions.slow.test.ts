import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { readConfig } from '../../src/core/config.ts';
import { withDataDir } from '../support/directories.ts';
import { expect, test } from '../support/jest.ts';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';

test('S13 the running server deletes expired sessions, and only those', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    const config = readConfig({ DATA_DIR }, () => 'x'.repeat(32));
    const database = await openDatabase(config, options, pino({ level: 'silent' }), true);
    const query = (statement: string) =>
      database.fork().execute<Record<string, unknown>[]>(statement);
    const holders = async () =>
      (await query('select username from session join "user" on pk = user_pk order by 1')).map(
        ({ username }) => username,
      );
    try {
      await query(`
        insert into session (sid, user_pk, key_hash, created_at, last_seen_at, expires_at)
        select gen_random_uuid(), pk, sha256(username::bytea), now() - interval '20 days', now() - interval '20 days',
          now() + case username when 'alice' then interval '-1 minute' else interval '1 day' end
        from "user" where username in ('alice', 'bob')`);
      expect(await holders()).toEqual(['alice', 'bob']);
      await until(async () => (await holders()).length < 2, 'the sweep');
      expect(await holders()).toEqual(['bob']);
    } finally {
      await database.close();
      await stopServer(server);
    }
  });
});
