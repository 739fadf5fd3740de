import { Command, Option } from 'commander';
import { forget, GROUPINGS, report, type Report, type ReportInput, type ReportLine } from '../features/rest-usage/rest-usage.service.ts';
import { readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { printable, printableJson } from './printable.ts';

const MAX_WIDTH = 60;
const NUMBER_COLUMN = 'calls';

/** `legacy …`: who still calls what an operator wants to switch off. */
export function legacyCommands(context: CommandContext): Command {
  const { print } = context;
  const legacy = new Command('legacy').description('See who calls the REST paths, and forget a client.');

  legacy
    .command('report')
    .description(
      'List who calls which REST path, since when and how often, the most calls first. What was called shows a few seconds later.',
    )
    .option('--since <date>', 'only who has called on this day or later (UTC)', readDate)
    .option('--row <text>', 'only paths that hold this text, such as /api/v1/')
    .addOption(new Option('--by <what>', 'add up by').choices(GROUPINGS))
    .option('--include-own', 'count the contract kit and the pages for browsers, too')
    .option('--json', 'print JSON')
    .option('--limit <number>', 'print so many lines at most', readLimit, 100)
    .action(({ json = false, ...asked }: ReportInput & { json?: boolean }) =>
      runCommand(context, async ({ ctx }) => {
        const found = await report(ctx, asked);
        print(json ? printableJson(found, 2) : asTable(found, asked));
      }),
    );

  legacy
    .command('forget')
    .description(
      'Delete what is recorded of a client, until it calls again. Calls that a running server has counted but not yet stored show again a few ' +
        'seconds later.',
    )
    .argument('<client>', 'its whole name, as `legacy report --json` shows it')
    .action((client: string) => runCommand(context, async ({ ctx }) => print(`Lines deleted: ${await forget(ctx, client)}.`)));

  return legacy;
}

function asTable({ lines, total }: Report, { since, row }: ReportInput): string {
  const [first] = lines;
  if (!first) return since === undefined && row === undefined ? 'No calls are recorded.' : 'No such calls are recorded.';
  const names = Object.keys(first) as (keyof ReportLine)[];
  const columns = names.map((name) => padded([name, ...lines.map((line) => cellOf(line[name]))], name === NUMBER_COLUMN));
  const table = columns[0]?.map((_, index) => columns.map((column) => column[index]).join('  '));
  return [...(table ?? []), `Lines: ${lines.length} of ${total.lines}. Calls in all: ${total.calls}.`].join('\n');
}

function padded(cells: readonly string[], toTheRight: boolean): string[] {
  const width = Math.max(...cells.map((cell) => cell.length));
  return cells.map((cell) => (toTheRight ? cell.padStart(width) : cell.padEnd(width)));
}

function cellOf(value: ReportLine[keyof ReportLine]): string {
  const text = value instanceof Date ? value.toISOString() : printable(String(value ?? '-'));
  return text.length > MAX_WIDTH ? `${text.slice(0, MAX_WIDTH - 1)}…` : text;
}
