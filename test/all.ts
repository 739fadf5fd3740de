import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Command, Option } from 'commander';

/**
 * Tags in the names of test files. `npm test` runs the files without one. slow: long waits and
 * large amounts. timing: compares durations. clients: runs third-party GraphQL clients. process:
 * starts the app as a process, on the embedded database. pg: needs a PostgreSQL server. browser:
 * needs Chromium (`npm run test:browser`).
 */
const TAGS = ['slow', 'timing', 'clients', 'process', 'pg', 'browser'] as const;
type Tag = (typeof TAGS)[number];

/** The page of the last complete run. */
const RECORD = 'docs/generated/tests.md';

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
    'Runs every test but those in a browser, in full, on the embedded database and on the server of TEST_DATABASE_URL. Without options, ' +
      `writes what was run to ${RECORD}.`,
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

const chosen = Object.entries(RUNS).filter(([name]) => on.includes(name));
const results: Results[] = [];
for (const [name, run] of chosen) results.push(await jest(name, run));
if (
  chosen.length === Object.keys(RUNS).length &&
  !only &&
  without.length === 0 &&
  program.args.length === 0
)
  await record(results);
process.exitCode = results.every(({ success }) => success) ? 0 : 1;

/** The used part of jest's JSON results. */
interface Results {
  success: boolean;
  testResults: {
    name: string;
    startTime: number;
    endTime: number;
    assertionResults: { status: string }[];
  }[];
}

async function jest(name: string, { title, without: own, env }: Run): Promise<Results> {
  if (env['TEST_DATABASE_URL'] === undefined && server === '')
    program.error('TEST_DATABASE_URL names no PostgreSQL server');
  console.log(`== the tests ${title}`);
  const file = `dist/test-results/${name}.json`;
  await mkdir('dist/test-results', { recursive: true });
  const excluded = [...own, ...without];
  // An option with several values must not be followed by a positional argument.
  const args = [
    ...program.args,
    ...(only ? [filesTagged(only)] : []),
    '--json',
    `--outputFile=${file}`,
    `--testPathIgnorePatterns=${filesTagged(excluded)}`,
  ];
  const child = spawn(process.execPath, ['node_modules/jest/bin/jest.js', ...args], {
    stdio: 'inherit',
    env: { TEST_FULL: 'true', ...process.env, ...env },
  });
  await once(child, 'close');
  return JSON.parse(await readFile(file, 'utf8')) as Results;
}

function filesTagged(tags: readonly Tag[]): string {
  return `\\.(${tags.join('|')})\\.(\\w+\\.)*test\\.js$`;
}

async function record(found: readonly Results[]): Promise<void> {
  const rows = chosen.flatMap(([, { title }], index) =>
    ['', ...TAGS].flatMap((tag) => {
      const files = (found[index]?.testResults ?? []).filter(
        ({ name }) => (TAGS.find((known) => name.includes(`.${known}.`)) ?? '') === tag,
      );
      const tests = files.flatMap(({ assertionResults }) =>
        assertionResults.map(({ status }) => status),
      );
      const count = (wanted: string) => tests.filter((status) => status === wanted).length;
      const seconds = files.reduce(
        (sum, { startTime, endTime }) => sum + (endTime - startTime) / 1000,
        0,
      );
      return files.length === 0
        ? []
        : [
            `| ${title} | ${tag || 'none'} | ${files.length} | ${count('passed')} | ${count('failed')} | ${seconds.toFixed(0)} |`,
          ];
    }),
  );
  const machine = `${availableParallelism()} cores, Node ${process.version}`;
  await mkdir('docs/generated', { recursive: true });
  await writeFile(
    RECORD,
    [
      '# The last whole run of the tests',
      '',
      `\`npm run test:all\` wrote this page on ${new Date().toISOString().slice(0, 10)} (${machine}). Two files run at a time; their seconds are added up.`,
      '',
      '| run | tag | files | passed | failed | seconds |',
      '| --- | --- | --- | --- | --- | --- |',
      ...rows,
      '',
    ].join('\n'),
  );
}
