import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { countUpTo } from '../../bench/options.ts';
import { faults } from './catalogue.ts';
import type { DatabaseKind, Fault, Figures } from './fault.ts';
import { isPublished, keep, publish } from './report.ts';

const KINDS: readonly DatabaseKind[] = ['embedded', 'postgresql'];
/** Answers a second that nobody's machine gives. */
const MOST_CAPACITY = 1_000_000;

interface Options {
  short: boolean;
  on?: DatabaseKind;
  capacity?: number;
  list: boolean;
  check: boolean;
}

const program = new Command('faults')
  .description('Makes faults happen to real processes, and looks whether what was promised holds.')
  .argument('[NAME...]', 'the faults to try; all of them where none is named')
  .option('--short', 'fewer times and for less long, as in CI; nothing is kept', false)
  .addOption(new Option('--on <KIND>', 'on this database only').choices(KINDS))
  .addOption(
    new Option('--capacity <N>', 'take so many answers a second as what the server can do, in place of measuring it').argParser(
      countUpTo(MOST_CAPACITY),
    ),
  )
  .option('--list', 'name the faults and what holds in each, and try none', false)
  .option('--check', 'look whether docs/reliability.md says what the last runs found, and try none', false)
  .showHelpAfterError('(add --help for help)');
program.parse();
const { short, on, capacity, list, check } = program.opts<Options>();
const unknown = program.args.filter((name) => !faults.some((fault) => fault.name === name));
if (unknown.length > 0) program.error(`There is no fault named ${unknown.join(', ')}; --list names them.`);
const chosen = faults.filter(({ name }) => program.args.length === 0 || program.args.includes(name));

if (list) {
  for (const { name, promise } of chosen) console.log(`${name}\n  ${promise}`);
} else if (check) {
  if (!isPublished()) program.error('docs/reliability.md is not what the last runs of all faults found: npm run faults');
} else {
  await tryAll();
}

async function tryAll(): Promise<void> {
  const counts = { passed: 0, failed: 0 };
  let strays = 0;
  // What a failed one has left under way fails as well, once its server is gone; the others are tried all the same.
  process.on('unhandledRejection', (error) => {
    console.error(error);
    strays++;
  });
  for (const fault of chosen) {
    for (const kind of fault.on.filter((known) => on === undefined || on === known)) {
      counts[(await tryOne(fault, kind)) ? 'passed' : 'failed']++;
    }
  }
  if (!short) publish();
  console.log(`${counts.passed} passed, ${counts.failed} failed`);
  // What a failed one has left behind is no reason to wait.
  process.exit(counts.failed + strays === 0 ? 0 : 1);
}

async function tryOne(fault: Fault, kind: DatabaseKind): Promise<boolean> {
  const title = `${fault.name} (${kind})`;
  const root = await mkdtemp(join(tmpdir(), 'shopfront-fault-'));
  // PostgreSQL runs as a user of its own.
  await chmod(root, 0o711);
  const directory = join(root, 'work');
  await mkdir(directory, { mode: 0o711 });
  // A database whose server was ended at once takes a moment to end, and writes meanwhile.
  const undo: (() => unknown)[] = [() => rm(root, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })];
  const begun = performance.now();
  try {
    const figures = await fault.run({ on: kind, short, ...(capacity && { capacity }), directory, atEnd: (done) => undo.push(done) });
    const seconds = (performance.now() - begun) / 1000;
    console.log(`ok    ${title}, ${seconds.toFixed(0)} s: ${textOf(figures)}`);
    if (!short) keep(fault, kind, figures);
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
