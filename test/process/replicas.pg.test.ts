import { expect, test } from '../support/jest.ts';
import { run } from '../support/process.ts';

const SECRET = 'only-for-tests-only-for-tests-only';
const REPLICA = 'postgresql://reader@replica.example/shopfront';
// This file is only run where there is a server (jest.config.js).
const server = process.env['TEST_DATABASE_URL'] ?? '';

test.each<[string, Record<string, string>, string]>([
  [
    'replicas of no database',
    { DATABASE_REPLICA_URLS: REPLICA },
    'DATABASE_REPLICA_URLS names replicas of a database: set DATABASE_URL, too',
  ],
  [
    'a replica that is no URL',
    { DATABASE_URL: server, DATABASE_REPLICA_URLS: `${REPLICA},replica` },
    'DATABASE_REPLICA_URLS must be a URL such as postgresql://user@host/name',
  ],
  [
    'a lag that nobody can keep',
    { DATABASE_URL: server, DATABASE_REPLICA_MAX_LAG_MS: '100' },
    'DATABASE_REPLICA_MAX_LAG_MS must be from 500 to 600000',
  ],
  ['a pooler that nobody knows', { DATABASE_URL: server, DATABASE_POOLER: 'session' }, 'DATABASE_POOLER must be one of none, transaction'],
])('%s: the start is refused with 78', async (_what, env, problem) => {
  const ended = await run('main.js', [], { SIGNING_SECRET: SECRET, PORT: '0', ...env });
  expect(ended).toEqual({ code: 78, stdout: '', stderr: `The configuration cannot be used:\n  ${problem}\n` });
});
