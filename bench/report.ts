import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Pace, Result } from './bench.ts';

const ROOT = join(import.meta.dirname, '../..');
const RAW = join(ROOT, 'bench/results.json');
const DOCUMENT = join(ROOT, 'docs/generated/benchmarks.md');

/** One run: its results, machine, versions and pace. */
export interface Run {
  date: string;
  machine: string;
  versions: string;
  pace: Pace;
  results: Result[];
}

/** The sections of the document, in its order. */
const SECTIONS = [
  { kind: 'table', title: 'Results', args: '', tableOf },
  {
    kind: 'peers',
    title: 'Peers',
    args: ' peers',
    tableOf: comparisonOf('| server | work | of the baseline | rates |'),
  },
  {
    kind: 'cores',
    title: 'Instances behind nginx',
    args: ' cores',
    tableOf: comparisonOf('| work, place | what | two instances to one | rates, CPU per request |'),
  },
  { kind: 'searches', title: 'Search', args: ' searches', tableOf },
  { kind: 'imports', title: 'Imports and exports', args: ' imports', tableOf },
  { kind: 'attacks', title: 'Attacks', args: ' attacks', tableOf },
] as const;

type Runs = Partial<Record<(typeof SECTIONS)[number]['kind'], Run>>;

/** Returns the machine, and the versions of all participants. */
export async function environmentOf(
  server: string,
): Promise<Pick<Run, 'date' | 'machine' | 'versions'>> {
  const client = new Client({ connectionString: server });
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('show server_version');
  await client.end();
  const [core] = cpus();
  const wrk = /wrk (\S+)/.exec(outputOf('wrk', ['-v']))?.[1] ?? 'of unknown version';
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} cores (${core?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB`,
    versions: `Node ${process.version}, PostgreSQL ${rows[0]?.server_version.split(' ')[0]}, wrk ${wrk}`,
  };
}

/** Stores a complete run with its raw rounds, and writes the document from all stored runs. */
export function publish(kind: keyof Runs, run: Run): void {
  const runs = { ...storedRuns(), [kind]: run };
  writeFileSync(RAW, `${JSON.stringify(runs, undefined, 1)}\n`);
  writeFileSync(DOCUMENT, documentOf(runs));
}

/** The results as a table of Markdown. */
export function tableOf(results: readonly Result[]): string {
  const lines = results.map(
    ({ name, what, goal, reached, met, beside }) =>
      `| \`${name}\` | ${what} | ${goal} | ${reached} | ${met ? 'yes' : '**no**'} | ${beside} |`,
  );
  return [
    '| name | work | goal | reached | met | beside |',
    '| --- | --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n');
}

function storedRuns(): Runs {
  try {
    return JSON.parse(readFileSync(RAW, 'utf8')) as Runs;
  } catch {
    return {};
  }
}

function documentOf(runs: Runs): string {
  const sections = SECTIONS.flatMap(({ kind, title, args, tableOf: table }) => {
    const run = runs[kind];
    return run ? [{ run, title, args, table }] : [];
  });
  const places = new Set(sections.map(({ run }) => `${run.machine}; ${run.versions}.`));
  return [
    '# Benchmarks',
    `Written by the commands below: medians of rounds in turn, with the least and the most. \`bench/results.json\` has every round. How to run and read them: [performance.md](../performance.md). ${[...places].join(' ')}`,
    ...sections.flatMap(({ run: { pace, date, results }, title, args, table }) => [
      `## ${title}: \`npm run bench --${args} --rounds ${pace.rounds} --seconds ${pace.seconds}\`, ${date}`,
      table(results),
    ]),
    '',
  ].join('\n');
}

// Of results without goals.
function comparisonOf(head: string): (results: readonly Result[]) => string {
  const row = ({ name, what, reached, beside }: Result) =>
    `| ${name} | ${what} | ${reached} | ${beside} |`;
  return (results) => [head, '| --- | --- | --- | --- |', ...results.map(row)].join('\n');
}

function outputOf(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    // It prints its version and exits with an error.
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
  }
}
