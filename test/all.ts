import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Command, Option } from 'commander';

/**
 * Tags in the names of test files. `npm test` runs the files without one. slow: long waits and
 * large amounts. timing: compares durations. clients: runs third-party GraphQL clients. process:
 * starts the app as a process, on the embedded database. pg: needs a PostgreSQL server. browser:
 * needs Chromium (`npm run test:browser`).
 */
const TAGS = ['slow', 'timing', 'clients', 'process', 'pg', 'browser'] as const;
type Tag = (typeof TAGS)[number];

interface Run {
  title: string;
  /** Tags whose files are excluded. */
  without: readonly Tag[];
  env: Record<string, string>;
}

const server = process.env['TEST_DATABASE_URL'] ?? '';
const RUNS: Record<string, Run> = {
  embedded: {
    title: 'on the embedded database',
    without: ['pg', 'browser'],
    env: { TEST_DATABASE_URL: '' },
  },
  postgresql: { title: 'on PostgreSQL', without: ['process', 'browser'], env: {} },
};

interface Options {
  on: string[];
  only?: Tag[];
  without: Tag[];
}

const program = new Command('test:all')
  .description(
    'Runs every test but those in a browser, in full, on the embedded database and on the server of TEST_DATABASE_URL.',
  )
  .addOption(
    new Option('--on <RUN...>', 'these runs only')
      .choices(Object.keys(RUNS))
      .default(Object.keys(RUNS)),
  )
  .addOption(new Option('--only <TAG...>', 'only files with one of these tags').choices(TAGS))
  .addOption(
    new Option('--without <TAG...>', 'no files with one of these tags').choices(TAGS).default([]),
  )
  .argument('[PATTERN...]', 'only files whose path matches one of these regular expressions')
  .showHelpAfterError('(add --help for help)')
  .parse();
const { on, only, without } = program.opts<Options>();

let failed = false;
for (const [name, run] of Object.entries(RUNS))
  if (on.includes(name) && !(await passes(run))) failed = true;
process.exitCode = failed ? 1 : 0;

async function passes({ title, without: own, env }: Run): Promise<boolean> {
  if (env['TEST_DATABASE_URL'] === undefined && server === '')
    program.error('TEST_DATABASE_URL names no PostgreSQL server');
  console.log(`== the tests ${title}`);
  // An option with several values must not be followed by a positional argument.
  const args = [
    ...program.args,
    ...(only ? [filesTagged(only)] : []),
    `--testPathIgnorePatterns=${filesTagged([...own, ...without])}`,
  ];
  const child = spawn(process.execPath, ['node_modules/jest/bin/jest.js', ...args], {
    stdio: 'inherit',
    env: { TEST_FULL: 'true', ...process.env, ...env },
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return code === 0;
}

function filesTagged(tags: readonly Tag[]): string {
  return `\\.(${tags.join('|')})\\.(\\w+\\.)*test\\.js$`;
}
