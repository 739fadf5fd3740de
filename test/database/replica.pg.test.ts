import { expect, test } from '../support/jest.ts';
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
  Object.assign(replica, { asOf: Infinity });
  try {
    const long = replica.read(raw('select pg_sleep(3)::text'));
    expect(await replica.read(raw(`select 'of the replica'`))).toEqual([['of the primary']]);
    expect(replica.isUsable()).toBe(true);
    expect(await long).toEqual([['']]);
  } finally {
    await replica.close();
  }
});
