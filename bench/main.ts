import 'reflect-metadata';
import { execFileSync } from 'node:child_process';
import { Argument, Command } from 'commander';
import { measureAttacks } from './attacks.ts';
import { Bench, type Pace, type Result } from './bench.ts';
import { countUpTo, serverOption } from './options.ts';
import { measurePeers } from './peers.ts';
import { publish, surroundings, tableOf } from './report.ts';
import { rows } from './rows.ts';
import { measureSearches } from './searches.ts';
import { measureShortcuts } from './shortcuts.ts';

interface Options extends Pace {
  server: string;
}

/** Rounds, and seconds of each, at most. */
const MOST = 9_999;

/** What is measured beside the table, by name. */
const COMPARISONS = { peers: measurePeers, shortcuts: measureShortcuts, attacks: measureAttacks, searches: measureSearches };

type Comparison = keyof typeof COMPARISONS;

await new Command('bench')
  .description('Measures the server against a bare twin on PostgreSQL. With no name it measures every row and writes docs/benchmarks.md.')
  .addArgument(
    new Argument('[names...]', 'rows to measure, or one of: peers, shortcuts, attacks, searches').choices([
      ...Object.keys(COMPARISONS),
      ...rows.map(({ name }) => name),
    ]),
  )
  .addOption(serverOption())
  .option('--rounds <count>', 'how often each is measured', countUpTo(MOST), 3)
  .option('--seconds <count>', 'how long each load lasts', countUpTo(MOST), 4)
  .action(bench)
  .parseAsync();

async function bench(names: string[], { server, rounds, seconds }: Options): Promise<void> {
  requireWrk();
  const pace = { rounds, seconds };
  const place = new Bench(server, pace);
  const around = await surroundings(server);
  for (const [kind, measureAll] of Object.entries(COMPARISONS)) {
    if (!names.includes(kind)) continue;
    publish(kind as Comparison, { ...around, pace, results: await measureAll(place, say) });
    return;
  }
  const results: Result[] = [];
  for (const { name, measure } of rows.filter((row) => names.length === 0 || names.includes(row.name))) {
    try {
      const result = await measure(place);
      results.push(result);
      say(result);
    } catch (error) {
      throw new Error(`${name} cannot be measured`, { cause: error });
    } finally {
      await place.clear();
    }
  }
  console.log(`\n${tableOf(results)}`);
  if (names.length === 0) publish('table', { ...around, pace, results });
  console.log(`${results.filter(({ met }) => met).length} of ${results.length} rows met`);
}

function say({ name, goal, reached, met, beside }: Result): void {
  console.log(`${name}: ${reached}${goal === '' ? '' : `; goal ${goal}: ${met ? 'met' : 'NOT met'}`}; ${beside}`);
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
