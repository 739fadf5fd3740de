import { afterAll, beforeAll } from './jest.ts';
import pg from 'pg';
import { workerDatabase } from './shop.ts';

/** A connection to the shop's PostgreSQL database beside the shop's own, open for as long as the tests of the file run. */
export function useSecondSession(): pg.Client {
  const client = new pg.Client({ connectionString: workerDatabase()['DATABASE_URL'] });
  beforeAll(async () => void (await client.connect()));
  afterAll(() => client.end());
  return client;
}
