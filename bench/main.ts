import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { Argument, Command } from 'commander';
import { measureAttacks } from './attacks.ts';
import { Bench, type Pace, type Result } from './bench.ts';
import { measureCores } from './cores.ts';
import { measureImports } from './imports.ts';
import { countUpTo, serverOption } from './options.ts';
import { measurePeers } from './peers.ts';
import { publish, environmentOf, tableOf } from './report.ts';
import { benchmarks } from './rows.ts';
import { measureSearches } from './searches.ts';

interface Options extends Pace {
  server: string;
  beside?: string;
}

/** Maximum number of rounds, and of seconds of each. */
const MAX_COUNT = 9_999;

/** Comparisons that are not part of the table, by name. */
const COMPARISONS = {
  peers: measurePeers,
  attacks: measureAttacks,
  searches: measureSearches,
  imports: measureImports,
  cores: measureCores,
};

type Comparison = keyof typeof COMPARISONS;

await new Command('bench')
  .description(
    'Measures the server against a baseline on PostgreSQL. Without a name it runs every benchmark and writes docs/generated/benchmarks.md.',
  )
  .addArgument(
    new Argument(
      '[names...]',
      `benchmarks to run, or one of: ${Object.keys(COMPARISONS).join(', ')}`,
    ).choices([...Object.keys(COMPARISONS), ...benchmarks.map(({ name }) => name)]),
  )
  .addOption(serverOption())
  .option('--rounds <count>', 'number of rounds', countUpTo(MAX_COUNT), 3)
  .option('--seconds <count>', 'length of each load', countUpTo(MAX_COUNT), 4)
  .option(
    '--beside <folder>',
    "another checkout's folder with its build, measured in the same rounds as the kinds of requests",
    (folder) => resolve(folder),
  )
  .action(bench)
  .parseAsync();

async function bench(names: string[], { server, rounds, seconds, beside }: Options): Promise<void> {
  requireWrk();
  const pace = { rounds, seconds };
  const target = new Bench(server, pace, beside);
  const around = await environmentOf(server);
  for (const [kind, measureAll] of Object.entries(COMPARISONS)) {
    if (!names.includes(kind)) continue;
    publish(kind as Comparison, { ...around, pace, results: await measureAll(target, print) });
    return;
  }
  const results: Result[] = [];
  for (const { name, measure } of benchmarks.filter(
    (benchmark) => names.length === 0 || names.includes(benchmark.name),
  )) {
    try {
      const result = await measure(target);
      results.push(result);
      print(result);
    } catch (error) {
      throw new Error(`${name} failed`, { cause: error });
    } finally {
      await target.clear();
    }
  }
  console.log(`\n${tableOf(results)}`);
  if (names.length === 0) publish('table', { ...around, pace, results });
  console.log(`${results.filter(({ met }) => met).length} of ${results.length} goals met`);
}

function print({ name, goal, reached, met, beside }: Result): void {
  console.log(
    `${name}: ${reached}${goal === '' ? '' : `; goal ${goal}: ${met ? 'met' : 'NOT met'}`}; ${beside}`,
  );
}

function requireWrk(): void {
  try {
    execFileSync('wrk', ['-v'], { stdio: 'ignore' });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      console.error('The benchmark needs wrk, the load generator: apt-get install wrk');
      process.exit(1);
    }
  }
}
