import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { command as runCommand } from '../support/command.ts';
import { makeDatabase, TEST_SECRET, type TestDatabase } from '../support/databases.ts';
import {
  pattern,
  POSTGRESQL_SECTIONS,
  runSteps,
  splitSections,
  stepsOf,
} from '../support/documents.ts';
import { startServer, stopServer } from '../support/process.ts';

const NAME = `shopfront_operations_${process.pid}`;
const RESTORED = `${NAME}_restored`;
const SIGN_IN = {
  method: 'POST',
  body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
};

const document = await readFile('docs/operations.md', 'utf8');

describe('docs/operations.md, sections that need a PostgreSQL server: the commands print the documented output', () => {
  let directory: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let restored: Record<string, string>;
  let token: string;
  let before: unknown;
  let answers: string[];
  const steps = stepsOf(splitSections(document, POSTGRESQL_SECTIONS).sections);

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'shopfront-operations-'));
    database = await makeDatabase(NAME);
    env = { ...database.env, SIGNING_SECRET: TEST_SECRET, HOST: '127.0.0.1' };
    restored = { ...env, DATABASE_URL: env['DATABASE_URL']?.replace(NAME, RESTORED) ?? '' };
    await runCommand(['seed'], env);
    const server = await startServer(env);
    token = (
      (await (await fetch(`${server.url}/token`, SIGN_IN)).json()) as { access_token: string }
    ).access_token;
    before = await (await fetch(`${server.url}/api/v2/shop/products?limit=1000`)).json();
    await stopServer(server);
    const settings = { ...env, RESTORED_URL: restored['DATABASE_URL'] ?? '' };
    const localSteps = steps.map(({ command, printed }) => ({
      command: command
        .replaceAll('shopfront.dump', join(directory, 'shopfront.dump'))
        .replaceAll('shopfront_restored', RESTORED),
      printed,
    }));
    answers = await runSteps(localSteps, 'http://127.0.0.1:4000', directory, settings);
  }, 300_000);

  afterAll(async () => {
    await rm(directory, { recursive: true, force: true });
    await database.drop();
    const client = new pg.Client({ connectionString: process.env['TEST_DATABASE_URL'] });
    await client.connect();
    await client.query(`drop database if exists "${RESTORED}" with (force)`);
    await client.end();
  });

  test.each(steps.map(({ command, printed }, index) => ({ command, printed, index })))(
    '$command',
    ({ printed, index }) => {
      expect(answers[index]).toMatch(pattern(printed));
    },
  );

  test('the first user of an empty server is created as the document says, and can sign in', async () => {
    const empty = await makeDatabase(`${NAME}_empty`);
    try {
      const settings = { ...empty.env, SIGNING_SECRET: TEST_SECRET, HOST: '127.0.0.1' };
      const [step] = steps;
      expect(step?.command).toContain('user create');
      expect(
        await runSteps(steps.slice(0, 1), 'http://127.0.0.1:4000', directory, settings),
      ).toEqual([step?.printed]);
      const server = await startServer(settings);
      const body = new URLSearchParams({ username: 'olga', password: 'a good long password' });
      const { status } = await fetch(`${server.url}/token`, { method: 'POST', body });
      await stopServer(server);
      expect(status).toBe(200);
    } finally {
      await empty.drop();
    }
  });

  test('a restored database serves the catalogue and its count, accepts earlier tokens, and accepts writes', async () => {
    const server = await startServer(restored);
    try {
      expect(await (await fetch(`${server.url}/api/v2/shop/products?limit=1000`)).json()).toEqual(
        before,
      );
      const made = await fetch(`${server.url}/api/v1/shop/product/`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ name: 'Ink', barcode: '5901234123457', price: 12.5 }),
      });
      expect(made.status).toBe(201);
      expect(
        await (await fetch(`${server.url}/api/v2/shop/products?limit=1`)).json(),
      ).toMatchObject({ count: 1201 });
    } finally {
      await stopServer(server);
    }
  });
});
