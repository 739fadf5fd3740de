import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { countUpTo } from '../../bench/options.ts';
import { faults } from './catalogue.ts';
import type { DatabaseKind, Fault, Figures } from './fault.ts';
import { isPublished, storeResult, publish } from './report.ts';

const KINDS: readonly DatabaseKind[] = ['embedded', 'postgresql'];
/** Upper limit of --capacity, in responses per second. */
const MAX_CAPACITY = 1_000_000;

interface Options {
  short: boolean;
  on?: DatabaseKind;
  capacity?: number;
  list: boolean;
  check: boolean;
}

const program = new Command('faults')
  .description('Injects faults into real processes, and checks that the guarantees hold.')
  .argument('[NAME...]', 'the faults to run; default: all')
  .option(
    '--short',
    'run fewer and shorter rounds on one database, as in CI; store no results',
    false,
  )
  .addOption(new Option('--on <KIND>', 'run on this database only').choices(KINDS))
  .addOption(
    new Option(
      '--capacity <N>',
      'capacity of the server in responses per second, instead of measuring it',
    ).argParser(countUpTo(MAX_CAPACITY)),
  )
  .option('--list', 'list the faults and their guarantees, and run none', false)
  .option(
    '--check',
    'check that docs/generated/faults.md has the last results, and run none',
    false,
  )
  .showHelpAfterError('(add --help for help)');
program.parse();
const { short, on, capacity, list, check } = program.opts<Options>();
const unknown = program.args.filter((name) => !faults.some((fault) => fault.name === name));
if (unknown.length > 0)
  program.error(`There is no fault named ${unknown.join(', ')}; --list names them.`);
const chosen = faults.filter(
  ({ name, missingPackages }) =>
    program.args.includes(name) || (program.args.length === 0 && (list || !missingPackages)),
);

if (list) {
  for (const { name, promise } of chosen) console.log(`${name}\n  ${promise}`);
} else if (check) {
  if (!isPublished()) program.error('docs/generated/faults.md is out of date: npm run faults');
} else {
  await runAll();
}

async function runAll(): Promise<void> {
  for (const { name, missingPackages } of chosen) {
    const missing = (await missingPackages?.()) ?? [];
    if (missing.length > 0) program.error(`${name} needs these packages: ${missing.join(' ')}`);
  }
  const counts = { passed: 0, failed: 0 };
  let unhandled = 0;
  // Pending work of a failed fault fails too, once its server is gone; the other faults still run.
  process.on('unhandledRejection', (error) => {
    console.error(error);
    unhandled++;
  });
  for (const fault of chosen) {
    const kinds = short && on === undefined ? fault.on.slice(0, 1) : fault.on;
    for (const kind of kinds.filter((known) => on === undefined || on === known)) {
      counts[(await runOne(fault, kind)) ? 'passed' : 'failed']++;
    }
  }
  if (!short) publish();
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  // Does not wait for leftovers of a failed fault.
  process.exit(counts.failed + unhandled === 0 ? 0 : 1);
}

async function runOne(fault: Fault, kind: DatabaseKind): Promise<boolean> {
  const title = `${fault.name} (${kind})`;
  const root = await mkdtemp(join(tmpdir(), 'shopfront-fault-'));
  // PostgreSQL runs as another user.
  await chmod(root, 0o711);
  const directory = join(root, 'work');
  await mkdir(directory, { mode: 0o711 });
  // The database of a killed server writes until it exits.
  const undo: (() => unknown)[] = [
    () => rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }),
  ];
  const begun = performance.now();
  try {
    const figures = await fault.run({
      on: kind,
      short,
      ...(capacity && { capacity }),
      directory,
      atEnd: (done) => undo.push(done),
    });
    const seconds = (performance.now() - begun) / 1000;
    console.log(`ok    ${title}, ${seconds.toFixed(0)} s: ${textOf(figures)}`);
    if (!short) storeResult(fault, kind, figures);
    return true;
  } catch (error) {
    console.log(`FAIL  ${title}`);
    console.error(error);
    return false;
  } finally {
    for (const done of undo.toReversed()) await done();
  }
}

function textOf(figures: Figures): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');
}
