import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Pace, Result } from './bench.ts';

const ROOT = join(import.meta.dirname, '../..');
const RAW = join(ROOT, 'bench/results.json');
const DOCUMENT = join(ROOT, 'docs/benchmarks.md');

/** One run: what was measured, on what, and how. */
export interface Run {
  date: string;
  machine: string;
  versions: string;
  pace: Pace;
  results: Result[];
}

type Runs = Partial<Record<'table' | 'peers' | 'shortcuts' | 'attacks' | 'searches', Run>>;

/** What is measured on: the machine and the versions of what takes part. */
export async function surroundings(server: string): Promise<Pick<Run, 'date' | 'machine' | 'versions'>> {
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

/** Keeps a whole run with its raw rounds, and writes the document anew from all that is kept. */
export function publish(kind: keyof Runs, run: Run): void {
  const runs = { ...known(), [kind]: run };
  writeFileSync(RAW, `${JSON.stringify(runs, undefined, 1)}\n`);
  writeFileSync(DOCUMENT, documentOf(runs));
}

/** The results as a table of Markdown. */
export function tableOf(results: readonly Result[]): string {
  const lines = results.map(
    ({ name, what, goal, reached, met, beside }) =>
      `| \`${name}\` | ${what} | ${goal} | ${reached} | ${met ? 'yes' : '**no**'} | ${beside} |`,
  );
  return ['| row | work | goal | reached | met | beside |', '| --- | --- | --- | --- | --- | --- |', ...lines].join('\n');
}

function known(): Runs {
  try {
    return JSON.parse(readFileSync(RAW, 'utf8')) as Runs;
  } catch {
    return {};
  }
}

function documentOf({ table, peers, shortcuts, attacks, searches }: Runs): string {
  const head = [
    '# Benchmarks',
    '',
    'Written by the commands named here. `bench/results.json` keeps every round. How to read and run them: [performance.md](performance.md).',
  ];
  const section = (title: string, command: string, run: Run, body: string) => [
    '',
    `## ${title}`,
    '',
    `\`${command} --rounds ${run.pace.rounds} --seconds ${run.pace.seconds}\`, ${run.date}: ${run.machine}; ${run.versions}. ${run.pace.rounds} rounds of ${run.pace.seconds} s each, in turn; medians, with the least and the most.`,
    '',
    body,
  ];
  const rival = ({ name, reached, beside }: Result) => `| ${name} | ${reached} | ${beside} |`;
  return [
    ...head,
    ...(table ? section('What is to be reached', 'npm run bench --', table, tableOf(table.results)) : []),
    ...(peers
      ? section(
          'Peers',
          'npm run bench -- peers',
          peers,
          ['| server | of bare | rates |', '| --- | --- | --- |', ...peers.results.map(rival)].join('\n'),
        )
      : []),
    ...(shortcuts ? section('What each shortcut brings', 'npm run bench -- shortcuts', shortcuts, tableOf(shortcuts.results)) : []),
    ...(searches ? section('What searches take', 'npm run bench -- searches', searches, tableOf(searches.results)) : []),
    ...(attacks ? section('What attacks take', 'npm run bench -- attacks', attacks, tableOf(attacks.results)) : []),
    '',
  ].join('\n');
}

function outputOf(command: string, args: readonly string[]): string {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    // It prints its version, and then ends as if something were wrong.
    return error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
  }
}
