import { afterAll, beforeAll } from './jest.ts';
import pg from 'pg';
import { workerDatabase } from './shop.ts';

/** A second connection to the shop's PostgreSQL database, open during the tests of a file. */
export function useSecondSession(): pg.Client {
  const client = new pg.Client({ connectionString: workerDatabase().DATABASE_URL });
  beforeAll(async () => void (await client.connect()));
  afterAll(() => client.end());
  return client;
}
