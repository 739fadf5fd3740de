import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { faults } from './catalogue.ts';
import type { DatabaseKind, Fault, Figures } from './fault.ts';

const ROOT = join(import.meta.dirname, '../../..');
const KEPT = join(ROOT, 'test/faults/results.json');
const DOCUMENT = join(ROOT, 'docs/reliability.md');
const START = '<!-- Written by npm run faults -->';
const END = '<!-- to here -->';

/** The last whole run of a fault on one database. */
interface Run {
  date: string;
  machine: string;
  figures: Figures;
}

type Runs = Record<string, Partial<Record<DatabaseKind, Run>>>;

/** Keeps what a whole run has found. */
export function keep({ name }: Fault, kind: DatabaseKind, figures: Figures): void {
  const runs = known();
  const run: Run = { date: new Date().toISOString().slice(0, 10), machine: `${cpus().length} cores, Node ${process.version}`, figures };
  writeFileSync(KEPT, `${JSON.stringify({ ...runs, [name]: { ...runs[name], [kind]: run } }, undefined, 1)}\n`);
}

/** Writes the table of docs/reliability.md anew from all that is kept. */
export function publish(): void {
  writeFileSync(DOCUMENT, published());
}

/** Whether the table says what is kept, and every fault was tried on each of its databases. */
export function isPublished(): boolean {
  const runs = known();
  const all = faults.every(({ name, on }) => on.every((kind) => runs[name]?.[kind] !== undefined));
  return all && readFileSync(DOCUMENT, 'utf8') === published();
}

function published(): string {
  const text = readFileSync(DOCUMENT, 'utf8');
  const [before, after] = [text.indexOf(START), text.indexOf(END)];
  if (before < 0 || after < 0) throw new Error('docs/reliability.md has lost the marks of its table');
  return `${text.slice(0, before)}${START}\n\n${sections()}\n\n${text.slice(after)}`;
}

function sections(): string {
  const runs = known();
  return faults.map((fault) => sectionOf(fault, runs[fault.name] ?? {})).join('\n\n');
}

function sectionOf({ name, promise, rows }: Fault, runs: Partial<Record<DatabaseKind, Run>>): string {
  const lines = Object.entries(runs).map(([kind, { date, machine, figures }]) => {
    const found = Object.entries(figures).map(([figure, value]) => `${figure} ${value}`);
    return `- on ${kind === 'embedded' ? 'the embedded database' : 'PostgreSQL'} (${date}, ${machine}): ${found.join('; ')}.`;
  });
  return [`### ${name}`, rows.length === 0 ? promise : `${promise} (${rows.join(', ')})`, lines.join('\n')].filter(Boolean).join('\n\n');
}

function known(): Runs {
  try {
    return JSON.parse(readFileSync(KEPT, 'utf8')) as Runs;
  } catch {
    return {};
  }
}
