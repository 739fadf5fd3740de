import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { globSync, readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { ApolloServerErrorCode } from '@apollo/server/errors';
import { features } from '../../src/features.ts';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { ERRORS } from '../../src/http/error-map.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { TEST_SECRET } from '../support/databases.ts';
import {
  pattern,
  POSTGRESQL_SECTIONS,
  runSteps,
  splitSections,
  stepsOf,
} from '../support/documents.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';

/** Timeout of all commands of one document, in ms. */
const TIMEOUT_MS = 420_000;

/** Log events whose names are not literals. */
const COMPOSED_EVENTS = [
  'auth.refresh',
  'auth.token',
  'database.down',
  'database.moved',
  'database.up',
  'request',
];

describe.each<[string, Record<string, string>]>([
  ['README.md', {}],
  ['docs/rest.md', {}],
  ['docs/graphql.md', {}],
  ['docs/operations.md', { REGISTRATION: 'on', PASSWORD_RESET: 'on' }],
  ['docs/migrate.md', {}],
  ['docs/events.md', { WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true' }],
  ['examples/legacy-client/README.md', {}],
])('%s: the commands of its examples print the documented output', (path, settings) => {
  let dataDir: string;
  const answers: string[] = [];
  const whole = readFileSync(path, 'utf8');
  const document =
    path === 'docs/operations.md' ? splitSections(whole, POSTGRESQL_SECTIONS).rest : whole;
  const steps = stepsOf(document);

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const PORT = String(await freePort());
    // Commands run with the settings of all blocks before them.
    const parts = path === 'docs/migrate.md' ? document.split(/^```env\n(.*?)^```/gms) : [document];
    for (let at = 0, env = settings; at < parts.length; at += 2) {
      const server = await startServer({ DATA_DIR: dataDir, PORT, ...env });
      answers.push(...(await runSteps(stepsOf(parts[at] ?? ''), server.url, dataDir, env)));
      await stopServer(server);
      env = { ...env, ...(parseEnv(parts[at + 1] ?? '') as Record<string, string>) };
    }
  }, TIMEOUT_MS);

  afterAll(() => removeDirectory(dataDir));

  test.each(steps.map(({ command, printed }, index) => ({ command, printed, index })))(
    '$command',
    ({ printed, index }) => {
      expect(answers[index]).toMatch(pattern(printed));
    },
  );
});

test('docs/configuration.md and .env.example name every setting', async () => {
  const document = await readFile('docs/configuration.md', 'utf8');
  const example = await readFile('.env.example', 'utf8');
  const inTable = [...document.matchAll(/^\| `([A-Z0-9_]+)` /gm)].map(([, name]) => name);
  const inExample = [...example.matchAll(/^#?([A-Z0-9_]+)=/gm)]
    .map(([, name]) => name)
    .filter((name) => name !== 'POSTGRES_PASSWORD');
  expect(new Set(inTable)).toEqual(new Set(settingNames));
  expect(new Set(inExample)).toEqual(new Set(settingNames));
});

test('docs/rest.md: the table of endpoints is complete', async () => {
  const document = await readFile('docs/rest.md', 'utf8');
  const config = readConfig({ SIGNING_SECRET: TEST_SECRET }, () => undefined);
  const table = document.split(/^## /m).find((section) => section.startsWith('Endpoints')) ?? '';
  const missing = features
    .flatMap(({ routes }) => routes?.(config) ?? [])
    .filter(
      ({ path, method }) =>
        !new RegExp(`\`${path.replace(/[{}]/g, '\\$&')}\`.*\\| ${method} `).test(table),
    );
  expect(missing.map(({ path }) => path)).toEqual([]);
});

test('docs/graphql.md: the table of errors is complete', async () => {
  const document = await readFile('docs/graphql.md', 'utf8');
  const inTable = new Set(
    [...document.matchAll(/^\| `([A-Z_]+)` /gm)].map(([, code]) => code ?? ''),
  );
  const codes = Object.entries(ERRORS).map(([code, { graphql = code }]) => graphql);
  expect(
    [...codes, ...Object.values(ApolloServerErrorCode)].filter((code) => !inTable.has(code)),
  ).toEqual([]);
});

test('docs/observability.md: the table of log events has exactly our events', async () => {
  const files = globSync(['src/**/*.ts', 'packages/*/*.ts']);
  const sources = await Promise.all(files.map((path) => readFile(path, 'utf8')));
  const events = sources.flatMap((source) =>
    [...source.matchAll(/\bevent: '([\w.-]+)'/g)].map(([, event]) => event),
  );
  const document = await readFile('docs/observability.md', 'utf8');
  const [, section = ''] = document.split(/^### Log events$/m);
  const inTable = [...(section.split(/^## /m)[0] ?? '').matchAll(/^\| `([\w.-]+)` /gm)].map(
    ([, event]) => event,
  );
  expect(events.length).toBeGreaterThan(30);
  expect(new Set(inTable)).toEqual(new Set([...events, ...COMPOSED_EVENTS]));
  expect(inTable).toHaveLength(new Set(inTable).size);
});

test('docs/architecture.md: each name on the path of a request is in the file beside it', async () => {
  const document = (await readFile('docs/architecture.md', 'utf8')).replaceAll(/\n\s+/g, ' ');
  const paths = (await readdir('src', { recursive: true })).map((path) => join('src', path));
  const steps = [...document.matchAll(/`([\w./-]+\.ts)`: ((?:`[\w.]+`(?:, | to )?)+)/g)];
  expect(steps.length).toBeGreaterThan(30);
  for (const [, file = '', names = ''] of steps) {
    const found = paths.filter((path) => path.endsWith(`/${file}`));
    expect({ file, found }).toEqual({ file, found: [expect.any(String)] });
    const source = await readFile(found[0] ?? '', 'utf8');
    for (const [, name = ''] of names.matchAll(/(\w+)`/g))
      expect({ file, name, isInFile: new RegExp(`\\b${name}\\b`).test(source) }).toEqual({
        file,
        name,
        isInFile: true,
      });
  }
});
