import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command, Option } from 'commander';

/**
 * Tags in the names of test files. Files without one are what `npm test` runs.
 * slow: long waits and large amounts. timing: compares durations. process: starts the app as a process of its own, on the embedded
 * database. pg: needs a PostgreSQL server. browser: needs Chromium (`npm run test:browser`).
 */
const TAGS = ['slow', 'timing', 'process', 'pg', 'browser'] as const;
type Tag = (typeof TAGS)[number];

interface Run {
  title: string;
  /** Tags whose files are left out. */
  without: readonly Tag[];
  env: Record<string, string>;
}

const server = process.env['TEST_DATABASE_URL'] ?? '';
const RUNS: Record<string, Run> = {
  embedded: { title: 'on the embedded database', without: ['pg', 'browser'], env: { TEST_DATABASE_URL: '' } },
  postgresql: { title: 'on PostgreSQL', without: ['process', 'browser'], env: {} },
  ordinary: { title: 'on PostgreSQL, without any shortcut', without: TAGS, env: { TEST_SHORTCUTS: 'none' } },
};

interface Options {
  on: string[];
  only?: Tag[];
  without: Tag[];
}

const program = new Command('test:all')
  .description('Runs every test but those in a browser, in full, on the embedded database and on the server of TEST_DATABASE_URL.')
  .addOption(new Option('--on <RUN...>', 'these runs only').choices(Object.keys(RUNS)).default(Object.keys(RUNS)))
  .addOption(new Option('--only <TAG...>', 'only files with one of these tags').choices(TAGS))
  .addOption(new Option('--without <TAG...>', 'no files with one of these tags').choices(TAGS).default([]))
  .showHelpAfterError('(add --help for help)')
  .parse();
const { on, only, without } = program.opts<Options>();

let failed = 0;
for (const [name, run] of Object.entries(RUNS)) if (on.includes(name) && (await jest(run)) !== 0) failed++;
process.exitCode = failed === 0 ? 0 : 1;

async function jest({ title, without: own, env }: Run): Promise<number | null> {
  if (env['TEST_DATABASE_URL'] === undefined && server === '') program.error('TEST_DATABASE_URL names no PostgreSQL server');
  console.log(`== the tests ${title}`);
  const args = [`--testPathIgnorePatterns=${filesTagged([...own, ...without])}`, ...(only ? [filesTagged(only)] : [])];
  const child = spawn(process.execPath, ['node_modules/jest/bin/jest.js', ...args], {
    stdio: 'inherit',
    env: { TEST_FULL: 'true', ...process.env, ...env },
  });
  await once(child, 'close');
  return child.exitCode;
}

function filesTagged(tags: readonly Tag[]): string {
  return `\\.(${tags.join('|')})\\.(\\w+\\.)*test\\.js$`;
}
