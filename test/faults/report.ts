import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { faults } from './catalogue.ts';
import type { DatabaseKind, Fault, Figures } from './fault.ts';

const ROOT = join(import.meta.dirname, '../../..');
const RESULTS = join(ROOT, 'test/faults/results.json');
const PAGE = join(ROOT, 'docs/generated/faults.md');
const INTRODUCTION = `# Fault tests

Each program breaks a real process and compares what the server acknowledged with what it stored.
The last full run of each program is in \`test/faults/results.json\`; \`npm run faults\` writes this page
from it.

\`\`\`sh
npm run faults -- --list
npm run faults -- two-processes
npm run faults
\`\`\`

- \`--short\` runs fewer rounds, as CI does, and stores no results.
- \`soak\` can run on both databases at the same time if \`--capacity N\` gives the capacity of each,
  measured alone (responses per second).
- The programs start their own PostgreSQL servers. They need PostgreSQL, nginx and PgBouncer installed.
- \`cluster\` also needs Patroni, etcd and HAProxy. It runs only if named; \`CLUSTER_ROUNDS\` is its
  number of rounds with synchronous replication.`;

/** The last full run of a fault on one database. */
interface Run {
  date: string;
  machine: string;
  figures: Figures;
}

type Runs = Record<string, Partial<Record<DatabaseKind, Run>>>;

/** Stores the result of a full run. */
export function storeResult({ name }: Fault, kind: DatabaseKind, figures: Figures): void {
  const runs = storedRuns();
  const run: Run = {
    date: new Date().toISOString().slice(0, 10),
    machine: `${cpus().length} cores, Node ${process.version}`,
    figures,
  };
  writeFileSync(
    RESULTS,
    `${JSON.stringify({ ...runs, [name]: { ...runs[name], [kind]: run } }, undefined, 1)}\n`,
  );
}

/** Writes docs/generated/faults.md from the stored results. */
export function publish(): void {
  writeFileSync(PAGE, page());
}

/**
 * Returns whether docs/generated/faults.md is up to date and has each fault on each of its
 * databases, without those that run only if named.
 */
export function isPublished(): boolean {
  const runs = storedRuns();
  const all = faults.every(
    ({ name, on, missingPackages }) =>
      missingPackages !== undefined || on.every((kind) => runs[name]?.[kind] !== undefined),
  );
  return all && readFileSync(PAGE, 'utf8') === page();
}

function page(): string {
  return `${INTRODUCTION}\n\n${sections()}\n`;
}

function sections(): string {
  const runs = storedRuns();
  return faults.map((fault) => sectionOf(fault, runs[fault.name] ?? {})).join('\n\n');
}

function sectionOf({ name, promise }: Fault, runs: Partial<Record<DatabaseKind, Run>>): string {
  const lines = Object.entries(runs).map(([kind, { date, machine, figures }]) => {
    const found = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
    return `- on ${kind === 'embedded' ? 'the embedded database' : 'PostgreSQL'} (${date}, ${machine}): ${found.join('; ')}.`;
  });
  return [`## ${name}`, promise, lines.join('\n')].filter(Boolean).join('\n\n');
}

function storedRuns(): Runs {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8')) as Runs;
  } catch {
    return {};
  }
}
