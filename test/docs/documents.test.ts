import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { features } from '../../src/features.ts';
import { readConfig, settingNames } from '../../src/kit/config.ts';
import { makeSchema, schemaText } from '../../src/server/schema.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';

const ADDRESS = 'http://127.0.0.1:4000';
const END = '--- end of one command ---';

const readme = await readFile('README.md', 'utf8');

/** A command of a document and what the document says that it prints. */
interface Step {
  command: string;
  printed: string;
}

describe('README: the commands of its examples print what it says', () => {
  let server: RunningServer;
  let dataDir: string;
  let answers: string[];
  const steps = stepsOf(readme);

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'shopfront-readme-'));
    server = await startServer({ DATA_DIR: dataDir, PORT: String(await freePort()) });
    // One shell for all of them, for later ones use what earlier ones have set.
    const script = steps.map(({ command }) => `${command.replaceAll(ADDRESS, server.url)}\necho; echo '${END}'`).join('\n');
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { ...process.env, DATA_DIR: dataDir, DATABASE_URL: '' } });
    answers = stdout.split(END).map((answer) => answer.trim().replaceAll(server.url, ADDRESS));
  });

  afterAll(async () => {
    await stopServer(server);
    await rm(dataDir, { recursive: true, force: true });
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

test('docs/dependencies.md gives each dependency of package.json its line, and no other', async () => {
  const { dependencies, devDependencies } = JSON.parse(await readFile('package.json', 'utf8')) as Record<string, Record<string, string>>;
  const document = await readFile('docs/dependencies.md', 'utf8');
  const named = [...document.matchAll(/^\| `([^`]+)` /gm)].map(([, name]) => name);
  expect(new Set(named)).toEqual(new Set(Object.keys({ ...dependencies, ...devDependencies })));
});

test('schema.graphql is what the code says; npm run -s schema > schema.graphql brings it up to date', async () => {
  expect(await readFile('schema.graphql', 'utf8')).toBe(schemaText(await makeSchema()));
});

function stepsOf(document: string): Step[] {
  const blocks = [...document.matchAll(/^```console\n(.*?)^```/gms)].map(([, block = '']) => block);
  return blocks.flatMap((block) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((step) => {
        const [command = '', ...printed] = step.split('\n');
        return { command, printed: printed.join('\n').trim() };
      }),
  );
}

// An ellipsis stands for what differs from run to run.
function pattern(printed: string): RegExp {
  return new RegExp(
    `^${printed
      .split('…')
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^"]*?')}$`,
  );
}
