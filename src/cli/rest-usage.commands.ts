import { Command, Option } from 'commander';
import {
  forget,
  GROUPINGS,
  report,
  type Report,
  type ReportInput,
} from '../features/rest-usage/rest-usage.service.ts';
import {
  TREND_GROUPINGS,
  trends,
  type Trends,
  type TrendsInput,
} from '../features/rest-usage/usage-trends.service.ts';
import { readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { printable, printableJson } from './printable.ts';

const MAX_WIDTH = 60;
const NUMBER_COLUMNS = new Set(['calls', 'recent', 'earlier']);

interface TrendsFlags extends Pick<TrendsInput, 'by' | 'includeOwn'> {
  deprecated?: boolean;
  json?: boolean;
  limit: number;
}

type Cell = string | number | Date | null | undefined;

/** `rest-usage …`: reports the remaining clients of the REST API. */
export function restUsageCommands(context: CommandContext): Command {
  const { print, printError, stdout } = context;
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
    .command('trends')
    .description(
      'List the calls of each REST endpoint by client in the last 90 days with their trend. Those with recent calls ' +
        'are first, then those with the most calls. Recent are the last 14 days, today included, earlier are the 14 days before. gone: no recent calls; growing: ' +
        'at least 4/3 of the earlier calls; dwindling: at most 3/4; steady: between. Headings are printed on a terminal.',
    )
    .addOption(new Option('--by <what>', 'group by').choices(TREND_GROUPINGS))
    .option('--deprecated', 'only endpoints that V1_DEPRECATION and V2_DEPRECATION deprecate')
    .option('--include-own', 'include the contract kit and the browser pages')
    .option('--json', 'print JSON, with the calls of each day')
    .option('--limit <number>', 'maximum number of lines', readLimit, 100)
    .action(({ json = false, deprecated, limit, ...flags }: TrendsFlags) =>
      runCommand(context, async ({ ctx }) => {
        const input = { ...flags, deprecatedOnly: deprecated, first: limit };
        const result = await trends(ctx, input);
        if (json) print(printableJson(result, 2));
        else if (result.lines.length > 0 || stdout.isTTY)
          print(formatTrends(result, stdout.isTTY ?? false));
        if (!json && !stdout.isTTY && result.lines.length < result.totalCount)
          printError(`Lines: ${result.lines.length} of ${result.totalCount}. --limit prints more.`);
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
  return [
    ...tableOf(lines),
    `Lines: ${lines.length} of ${total.lines}. Total calls: ${total.calls}.`,
  ].join('\n');
}

function formatTrends(
  { lines, totalCount, deprecatedPaths }: Trends,
  hasHeadings: boolean,
): string {
  const rows = lines.map(
    ({ endpoint, client, deprecated, trend, recentCalls, earlierCalls, calls, lastAt }) => ({
      ...(endpoint !== null && { endpoint }),
      ...(client !== null && { client }),
      deprecated: deprecated ? 'deprecated' : '-',
      trend: trend.toLowerCase(),
      recent: recentCalls,
      earlier: earlierCalls,
      calls,
      last: lastAt,
    }),
  );
  if (!hasHeadings) return tableOf(rows, false).join('\n');
  const deprecated = deprecatedPaths.length > 0 ? deprecatedPaths.join(', ') : 'none';
  return [
    ...tableOf(rows),
    `Lines: ${lines.length} of ${totalCount}. Deprecated paths: ${deprecated}.`,
  ].join('\n');
}

/** Returns the lines of a table, with the names of the properties as headings; none without rows. */
function tableOf(rows: readonly object[], hasHeadings = true): string[] {
  const cells = rows.map((row) => Object.entries(row) as [string, Cell][]);
  const columns = cells[0]?.map(([name], index) =>
    pad(
      [...(hasHeadings ? [name] : []), ...cells.map((row) => cellOf(row[index]?.[1]))],
      NUMBER_COLUMNS.has(name),
    ),
  );
  return columns?.[0]?.map((_, index) => columns.map((column) => column[index]).join('  ')) ?? [];
}

function pad(cells: readonly string[], isRightAligned: boolean): string[] {
  const width = Math.max(...cells.map((cell) => cell.length));
  return cells.map((cell) => (isRightAligned ? cell.padStart(width) : cell.padEnd(width)));
}

function cellOf(value: Cell): string {
  const text = value instanceof Date ? value.toISOString() : printable(String(value ?? '-'));
  return text.length > MAX_WIDTH ? `${text.slice(0, MAX_WIDTH - 1)}…` : text;
}
