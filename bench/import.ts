import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { Client } from 'pg';
import { checkDigit } from '../src/products/ean13.ts';
import { migrate } from './catalogue.ts';
import { production } from './processes.ts';

// How quick imports and exports are, and what memory they take: `npm run bench:import`, with how many rows, and a server that databases may be made on.

const [rows = '1000000', server = process.env['BENCH_DATABASE_URL'] ?? 'postgresql://postgres@127.0.0.1:5432/postgres'] =
  process.argv.slice(2);
const NAME = 'shopfront_bench_import';
const PIECE = 1_000;
const SAMPLE_MS = 50;

const count = Number(rows);
const folder = await mkdtemp(join(tmpdir(), 'shopfront-bench-'));
const client = new Client({ connectionString: server });
await client.connect();
try {
  await client.query(`drop database if exists ${NAME} with (force)`);
  await client.query(`create database ${NAME}`);
  const url = Object.assign(new URL(server), { pathname: `/${NAME}` }).href;
  await migrate(url);
  const [first, dearer] = [join(folder, 'first.csv'), join(folder, 'dearer.csv')];
  await write(first, 0);
  await write(dearer, 1);
  await measure('import, all of them new', url, ['import', first]);
  await measure('import, all of them the same', url, ['import', first]);
  await measure('dry run, all of them changed', url, ['import', dearer, '--dry-run']);
  await measure('import, all of them changed', url, ['import', dearer]);
  await measure('export as CSV', url, ['export', join(folder, 'out.csv')]);
  await measure('export as NDJSON, packed', url, ['export', join(folder, 'out.ndjson.gz')]);
  await measure('import of that, all of them the same', url, ['import', join(folder, 'out.ndjson.gz')]);
} finally {
  await client.query(`drop database if exists ${NAME} with (force)`);
  await client.end();
  await rm(folder, { recursive: true });
}

function write(path: string, dearerBy: number): Promise<void> {
  const pieces = function* () {
    yield 'name,barcode,price\n';
    for (let start = 0; start < count; start += PIECE) {
      yield Array.from({ length: Math.min(PIECE, count - start) }, (_, index) => row(start + index, dearerBy)).join('');
    }
  };
  return pipeline(Readable.from(pieces()), createWriteStream(path));
}

function row(number: number, dearerBy: number): string {
  const digits = `400${String(number).padStart(9, '0')}`;
  return `Product ${number} Classic Oak Table,${digits}${checkDigit(digits)},${((number % 10_000) / 100 + dearerBy).toFixed(2)}\n`;
}

async function measure(what: string, url: string, args: readonly string[]): Promise<void> {
  const begun = performance.now();
  const child = spawn(process.execPath, ['dist/src/cli/main.js', 'products', ...args], { env: { ...process.env, ...production(url) } });
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, peakOf(child.pid))), SAMPLE_MS);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  clearInterval(watch);
  if (child.exitCode !== 0) throw new Error(stderr);
  const seconds = (performance.now() - begun) / 1000;
  console.log(
    `${what}: ${(count / seconds).toFixed(0)} rows/s, ${seconds.toFixed(1)} s, ${peak.toFixed(0)} MiB. ${stdout.trim().replaceAll(folder, '')}`,
  );
}

// What has ended holds nothing any more.
function peakOf(pid: number | undefined): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}
