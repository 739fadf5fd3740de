import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
import { bearer, create, signIn } from '../support/shopper.ts';
import { querySql } from '../support/sql.ts';

const NAME = `shopfront_operations_${process.pid}`;
const RESTORED = `${NAME}_restored`;

const document = await readFile('docs/operations.md', 'utf8');

describe('docs/operations.md, sections that need a PostgreSQL server: the commands print the documented output', () => {
  let directory: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let restored: Record<string, string>;
  let token: Record<string, string>;
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
    token = await bearer(server.url);
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
    const server = process.env['TEST_DATABASE_URL'] ?? '';
    await querySql(server, `drop database if exists "${RESTORED}" with (force)`);
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
      const olga = { username: 'olga', password: 'a good long password' };
      const { status } = await signIn(server.url, olga);
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
      expect((await create(server.url, token, '5901234123457')).status).toBe(201);
      expect(
        await (await fetch(`${server.url}/api/v2/shop/products?limit=1`)).json(),
      ).toMatchObject({ count: 1201 });
    } finally {
      await stopServer(server);
    }
  });
});
