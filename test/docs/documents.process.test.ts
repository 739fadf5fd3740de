import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { readFileSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { features } from '../../src/features.ts';
import { readConfig, settingNames } from '../../src/core/config.ts';
import { makeSchema, schemaText } from '../../src/graphql/schema.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { pattern, printedBy, stepsOf } from '../support/documents.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';

/** The commands of one document run one after another, each in processes of its own. */
const A_WHILE = 300_000;

const readme = await readFile('README.md', 'utf8');

describe.each<[string, Record<string, string>]>([
  ['README.md', {}],
  ['docs/accounts.md', { REGISTRATION: 'on', PASSWORD_RESET: 'on' }],
  ['docs/audit.md', {}],
  ['docs/contract.md', {}],
  ['docs/import.md', {}],
  ['docs/webhooks.md', { WEBHOOK_PRIVATE_TARGETS: 'true' }],
  ['examples/legacy-client/README.md', {}],
])('%s: the commands of its examples print what it says', (path, settings) => {
  let server: RunningServer;
  let dataDir: string;
  let answers: string[];
  const steps = stepsOf(readFileSync(path, 'utf8'));

  beforeAll(async () => {
    dataDir = await makeDataDir();
    server = await startServer({ DATA_DIR: dataDir, PORT: String(await freePort()), ...settings });
    answers = await printedBy(steps, server.url, dataDir);
  }, A_WHILE);

  afterAll(async () => {
    await stopServer(server);
    await removeDirectory(dataDir);
  });

  test.each(steps.map(({ command, printed }, index) => ({ command, printed, index })))('$command', ({ printed, index }) => {
    expect(answers[index]).toMatch(pattern(printed));
  });
});

test('README: the table of configuration and .env.example name every setting', async () => {
  const example = await readFile('.env.example', 'utf8');
  const inTable = [...readme.matchAll(/^\| `([A-Z0-9_]+)` /gm)].map(([, name]) => name);
  const inExample = [...example.matchAll(/^#?([A-Z0-9_]+)=/gm)].map(([, name]) => name).filter((name) => name !== 'POSTGRES_PASSWORD');
  expect(new Set(inTable)).toEqual(new Set(settingNames));
  expect(new Set(inExample)).toEqual(new Set(settingNames));
});

test('README: the table of paths names every row', () => {
  const config = readConfig({ SIGNING_SECRET: TEST_SECRET }, () => undefined);
  const table = readme.slice(readme.indexOf('All paths:'), readme.indexOf('## The GraphQL door'));
  const missing = features
    .flatMap(({ routes }) => routes?.(config) ?? [])
    .filter(({ path, method }) => !new RegExp(`\`${path.replace(/[{}]/g, '\\$&')}\`.*\\| ${method} `).test(table));
  expect(missing.map(({ path }) => path)).toEqual([]);
});

test('SECURITY.md names every event of the log', async () => {
  const files = (await readdir('src', { recursive: true })).filter((path) => path.endsWith('.ts'));
  const sources = await Promise.all(files.map((path) => readFile(join('src', path), 'utf8')));
  const events = sources.flatMap((source) => [...source.matchAll(/\bevent: '([\w.-]+)'/g)].map(([, event]) => event));
  const security = await readFile('SECURITY.md', 'utf8');
  expect(events.length).toBeGreaterThan(30);
  expect([...new Set(events)].filter((event) => !security.includes(`\`${event}\``))).toEqual([]);
});

test('docs/dependencies.md gives each dependency of package.json, of the storefront and of the generated clients its line, and no other', async () => {
  const direct: string[] = [];
  for (const path of ['package.json', 'examples/storefront/package.json', 'test/clients/generators/package.json']) {
    const { dependencies, devDependencies } = JSON.parse(await readFile(path, 'utf8')) as Record<string, Record<string, string>>;
    direct.push(...Object.keys({ ...dependencies, ...devDependencies }));
  }
  const document = await readFile('docs/dependencies.md', 'utf8');
  const named = [...document.matchAll(/^\| `([^`]+)` /gm)].map(([, name]) => name);
  expect(new Set(named)).toEqual(new Set(direct));
});

test('schema.graphql is what the code says; npm run -s schema > schema.graphql brings it up to date', async () => {
  expect(await readFile('schema.graphql', 'utf8')).toBe(schemaText(await makeSchema()));
});
