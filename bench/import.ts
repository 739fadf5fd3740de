import 'reflect-metadata';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { Command } from 'commander';
import { Client } from 'pg';
import { checkDigit } from '../src/features/products/check-digit.ts';
import { makeDatabase } from './catalogue.ts';
import { whole } from './measure.ts';
import { countUpTo, serverOption } from './options.ts';
import { production } from './processes.ts';

interface Options {
  server: string;
  rows: number;
}

const NAME = 'shopfront_bench_import';
/** Maximum number of barcodes with our prefix. */
const MAX_ROWS = 999_999_999;
const PIECE = 1_000;
const SAMPLE_MS = 50;

await new Command('bench:import')
  .description('Measures the speed and memory of imports and exports, in a separate database.')
  .addOption(serverOption())
  .option('--rows <count>', 'number of products', countUpTo(MAX_ROWS), 1_000_000)
  .action(bench)
  .parseAsync();

async function bench({ server, rows }: Options): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'shopfront-bench-'));
  const client = new Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`drop database if exists ${NAME} with (force)`);
    const url = await makeDatabase(server, NAME);
    const [first, dearer] = [join(folder, 'first.csv'), join(folder, 'dearer.csv')];
    await write(first, rows, 0);
    await write(dearer, rows, 1);
    const measured = async (what: string, ...args: readonly string[]) => {
      const { seconds, peak, output } = await measure(url, args);
      console.log(
        `${what}: ${whole(rows / seconds)} rows/s, ${seconds.toFixed(1)} s, ${peak.toFixed(0)} MiB. ${output.replaceAll(folder, '')}`,
      );
    };
    await measured('import, all of them new', 'import', first);
    await measured('import, all of them the same', 'import', first);
    await measured('dry run, all of them changed', 'import', dearer, '--dry-run');
    await measured('import, all of them changed', 'import', dearer);
    await measured('export as CSV', 'export', join(folder, 'out.csv'));
    await measured('export as NDJSON, packed', 'export', join(folder, 'out.ndjson.gz'));
    await measured('import of that, all of them the same', 'import', join(folder, 'out.ndjson.gz'));
  } finally {
    await client.query(`drop database if exists ${NAME} with (force)`);
    await client.end();
    await rm(folder, { recursive: true });
  }
}

function write(path: string, count: number, dearerBy: number): Promise<void> {
  const pieces = function* () {
    yield 'name,barcode,price\n';
    for (let start = 0; start < count; start += PIECE) {
      yield Array.from({ length: Math.min(PIECE, count - start) }, (_, index) =>
        row(start + index, dearerBy),
      ).join('');
    }
  };
  return pipeline(Readable.from(pieces()), createWriteStream(path));
}

function row(number: number, dearerBy: number): string {
  const digits = `400${String(number).padStart(9, '0')}`;
  return `Product ${number} Classic Oak Table,${digits}${checkDigit(digits)},${((number % 10_000) / 100 + dearerBy).toFixed(2)}\n`;
}

async function measure(
  url: string,
  args: readonly string[],
): Promise<{ seconds: number; peak: number; output: string }> {
  const begun = performance.now();
  const child = spawn(process.execPath, ['dist/src/cli/main.js', 'products', ...args], {
    env: { ...process.env, ...production(url) },
  });
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, peakOf(child.pid))), SAMPLE_MS);
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  clearInterval(watch);
  if (child.exitCode !== 0) throw new Error(stderr);
  return { seconds: (performance.now() - begun) / 1000, peak, output: stdout.trim() };
}

// Returns 0 after the process has exited.
function peakOf(pid: number | undefined): number {
  try {
    return (
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
    );
  } catch {
    return 0;
  }
}
