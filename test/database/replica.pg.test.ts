import { expect, test } from '../support/jest.ts';
import pg from 'pg';
import pino from 'pino';
import { Replica } from '../../src/database/replica.ts';
import { raw, type Statements } from '../../src/database/sql.ts';
import { workerDatabase } from '../support/shop.ts';

const config = { connectionString: workerDatabase().DATABASE_URL, max: 1 };
const primary: Statements = {
  commits: 0,
  read: async () => [['of the primary']],
  write: async () => [],
};

test('a replica whose connections are all in use is skipped for one read, and stays usable', async () => {
  const capabilities = { prepares: false, pipelineConnections: 0 };
  const replica = new Replica(
    'replica',
    { config, capabilities, maxLagMs: 1_000 },
    primary,
    pino({ level: 'silent' }),
  );
  // As if the replica had just caught up.
  const client = new pg.Client(config);
  await client.connect();
  const { rows } = await client.query('select pg_postmaster_start_time()::text as server');
  await client.end();
  Object.assign(replica, { asOf: Infinity, ...rows[0] });
  try {
    const long = replica.read(raw('select pg_sleep(3)::text'));
    expect(await replica.read(raw(`select 'of the replica'`))).toEqual([['of the primary']]);
    expect(replica.isUsable()).toBe(true);
    expect(await long).toEqual([['']]);
  } finally {
    await replica.close();
  }
});
