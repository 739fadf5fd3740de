import { expect, test } from '../support/jest.ts';
import pino from 'pino';
import { Replica } from '../../src/database/replica.ts';
import { raw, type Statements } from '../../src/database/sql.ts';
import { workerDatabase } from '../support/shop.ts';

const config = { connectionString: workerDatabase()['DATABASE_URL'] ?? '', max: 1 };
const primary: Statements = { commits: 0, read: async () => [['of the primary']], write: async () => [] };

test('a replica whose connections are all in use is left out of one read, and not given up', async () => {
  const abilities = { prepares: false, shared: 0, cancels: true };
  const replica = new Replica('replica', { config, abilities, maxLagMs: 1_000 }, primary, pino({ level: 'silent' }));
  // As if it had only just been found to have come far enough.
  Object.assign(replica, { asOf: Infinity });
  try {
    const long = replica.read(raw('select pg_sleep(3)::text'));
    expect(await replica.read(raw(`select 'of the replica'`))).toEqual([['of the primary']]);
    expect(replica.serves()).toBe(true);
    expect(await long).toEqual([['']]);
  } finally {
    await replica.close();
  }
});
