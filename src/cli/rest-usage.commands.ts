import { Command, Option } from 'commander';
import {
  forget,
  GROUPINGS,
  report,
  type Report,
  type ReportInput,
  type ReportLine,
} from '../features/rest-usage/rest-usage.service.ts';
import { readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { printable, printableJson } from './printable.ts';

const MAX_WIDTH = 60;
const NUMBER_COLUMN = 'calls';

/** `rest-usage …`: reports the remaining clients of the REST API. */
export function restUsageCommands(context: CommandContext): Command {
  const { print } = context;
  const usage = new Command();

  usage
    .command('report')
    .description(
      'List the calls of each REST endpoint by client, the most calls first. Calls appear after a few seconds.',
    )
    .option('--since <date>', 'only clients that called on or after this day (UTC)', readDate)
    .option('--endpoint <text>', 'only endpoints that contain this text, such as /api/v1/')
    .addOption(new Option('--by <what>', 'group by').choices(GROUPINGS))
    .option('--include-own', 'include the contract kit and the browser pages')
    .option('--json', 'print JSON')
    .option('--limit <number>', 'maximum number of lines', readLimit, 100)
    .action(({ json = false, ...input }: ReportInput & { json?: boolean }) =>
      runCommand(context, async ({ ctx }) => {
        const result = await report(ctx, input);
        print(json ? printableJson(result, 2) : formatTable(result, input));
      }),
    );

  usage
    .command('forget')
    .description(
      'Delete the records of a client. Calls that a running server has counted but not yet stored appear a few ' +
        'seconds later.',
    )
    .argument('<client>', 'the full name in `rest-usage report --json`')
    .action((client: string) =>
      runCommand(context, async ({ ctx }) => print(`Lines deleted: ${await forget(ctx, client)}.`)),
    );

  return usage;
}

function formatTable({ lines, total }: Report, { since, endpoint }: ReportInput): string {
  const [first] = lines;
  if (!first)
    return since === undefined && endpoint === undefined
      ? 'No calls are recorded.'
      : 'No such calls are recorded.';
  const names = Object.keys(first) as (keyof ReportLine)[];
  const columns = names.map((name) =>
    pad([name, ...lines.map((line) => cellOf(line[name]))], name === NUMBER_COLUMN),
  );
  const table = columns[0]?.map((_, index) => columns.map((column) => column[index]).join('  '));
  return [
    ...(table ?? []),
    `Lines: ${lines.length} of ${total.lines}. Total calls: ${total.calls}.`,
  ].join('\n');
}

function pad(cells: readonly string[], isRightAligned: boolean): string[] {
  const width = Math.max(...cells.map((cell) => cell.length));
  return cells.map((cell) => (isRightAligned ? cell.padStart(width) : cell.padEnd(width)));
}

function cellOf(value: ReportLine[keyof ReportLine]): string {
  const text = value instanceof Date ? value.toISOString() : printable(String(value ?? '-'));
  return text.length > MAX_WIDTH ? `${text.slice(0, MAX_WIDTH - 1)}…` : text;
}
