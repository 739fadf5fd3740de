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
\`npm run faults -- NAME\` runs one, \`--list\` describes them, and \`npm run faults\` runs all, which takes
hours, and writes this page. They need PostgreSQL, nginx and PgBouncer installed; \`cluster\`, which runs
only if named, also needs Patroni, etcd and HAProxy.

| program | promise | last full run, and its figures |
| --- | --- | --- |`;

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
  const runs = storedRuns();
  return `${[INTRODUCTION, ...faults.map((fault) => rowOf(fault, runs[fault.name] ?? {}))].join('\n')}\n`;
}

function rowOf({ name, promise }: Fault, runs: Partial<Record<DatabaseKind, Run>>): string {
  const found = Object.entries(runs).map(([kind, { date, machine, figures }]) => {
    const values = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
    return `**${kind}** (${date}, ${machine}): ${values.join('; ')}`;
  });
  return `| \`${name}\` | ${promise} | ${found.join('<br>')} |`;
}

function storedRuns(): Runs {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8')) as Runs;
  } catch {
    return {};
  }
}
