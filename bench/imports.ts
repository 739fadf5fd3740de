import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { Client } from 'pg';
import { checkDigit } from '../src/features/products/ean13.ts';
import type { Bench, Result } from './bench.ts';
import { makeDatabase } from './catalogue.ts';
import { inFolder } from './folder.ts';
import { median, whole } from './measure.ts';
import { memoryOf, production } from './processes.ts';

const DATABASE = 'shopfront_bench_import';
const ROWS = 1_000_000;
const PIECE = 1_000;
const SAMPLE_MS = 50;

/** The steps of a round, in order, with the minimum rate of those that have a goal. */
const STEPS = [
  { what: 'import into an empty catalogue', args: ['import', 'first.csv'], goal: 40_000 },
  { what: 'import of products that are there', args: ['import', 'first.csv'] },
  { what: 'dry run of new prices', args: ['import', 'dearer.csv', '--dry-run'] },
  { what: 'import of new prices', args: ['import', 'dearer.csv'] },
  { what: 'export as CSV', args: ['export', 'out.csv'] },
  { what: 'export as NDJSON, compressed', args: ['export', 'out.ndjson.gz'] },
  { what: 'import of that file', args: ['import', 'out.ndjson.gz'] },
  { what: 'import of as many new products', args: ['import', 'second.csv'], goal: 25_000 },
] as const;

interface Turn {
  /** Rows per second. */
  rate: number;
  /** Peak memory in MiB. */
  memory: number;
}

/** Measures imports and exports of a million products, in a database of their own. */
export async function measureImports(
  bench: Bench,
  print: (result: Result) => void,
): Promise<Result[]> {
  const client = new Client({ connectionString: bench.server });
  await client.connect();
  const drop = () => client.query(`drop database if exists ${DATABASE} with (force)`);
  const turns = STEPS.map((): Turn[] => []);
  try {
    await inFolder(async (folder) => {
      await write(join(folder, 'first.csv'), 0, 0);
      await write(join(folder, 'dearer.csv'), 0, 1);
      await write(join(folder, 'second.csv'), ROWS, 0);
      for (let round = 0; round < bench.pace.rounds; round++) {
        await drop();
        const url = await makeDatabase(bench.server, DATABASE);
        for (const [step, { args }] of STEPS.entries())
          turns[step]?.push(await measure(url, folder, args));
      }
    });
  } finally {
    await drop();
    await client.end();
  }
  const results = STEPS.map((step, index) => resultOf(step, index, turns[index] ?? []));
  for (const result of results) print(result);
  return results;
}

function resultOf(step: (typeof STEPS)[number], index: number, rounds: Turn[]): Result {
  const goal = 'goal' in step ? step.goal : 0;
  const rates = rounds.map(({ rate }) => rate);
  return {
    name: `import-${index + 1}`,
    what: step.what,
    goal: goal === 0 ? '' : `${whole(goal)} rows/s`,
    reached: `${whole(median(rates))} rows/s (${whole(Math.min(...rates))} to ${whole(Math.max(...rates))})`,
    met: median(rates) >= goal,
    beside: `${whole(median(rounds.map(({ memory }) => memory)))} MiB`,
    rounds,
  };
}

function write(path: string, first: number, dearerBy: number): Promise<void> {
  const pieces = function* () {
    yield 'name,barcode,price\n';
    for (let start = first; start < first + ROWS; start += PIECE)
      yield Array.from({ length: PIECE }, (_, index) => row(start + index, dearerBy)).join('');
  };
  return pipeline(Readable.from(pieces()), createWriteStream(path));
}

function row(number: number, dearerBy: number): string {
  const digits = `400${String(number).padStart(9, '0')}`;
  return `Product ${number} Classic Oak Table,${digits}${checkDigit(digits)},${((number % 10_000) / 100 + dearerBy).toFixed(2)}\n`;
}

async function measure(url: string, cwd: string, args: readonly string[]): Promise<Turn> {
  const begun = performance.now();
  const command = join(import.meta.dirname, '../src/cli/main.js');
  const child = spawn(process.execPath, [command, 'products', ...args], {
    cwd,
    env: { ...process.env, ...production(url) },
  });
  let memory = 0;
  const watch = setInterval(() => {
    // The memory of a process that has ended is unknown.
    if (child.exitCode === null) memory = Math.max(memory, memoryOf(child.pid ?? 0).peak || 0);
  }, SAMPLE_MS);
  const closed = once(child, 'close');
  const [, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  clearInterval(watch);
  await closed;
  if (child.exitCode !== 0) throw new Error(stderr);
  return { rate: ROWS / ((performance.now() - begun) / 1000), memory };
}
