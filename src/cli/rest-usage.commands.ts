import { Command } from 'commander';
import { forget, report, type ReportInput } from '../features/rest-usage/rest-usage.service.ts';
import { lineOf, readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `rest-usage …`: reports the remaining clients of the REST API. */
export function restUsageCommands(context: CommandContext): Command {
  const { print } = context;
  const usage = new Command();

  usage
    .command('report')
    .description(
      'List the calls of each REST endpoint by client and user, the most calls first: calls, first, last, endpoint, user, client. Calls appear after a few seconds.',
    )
    .option('--since <date>', 'only clients that called on or after this day (UTC)', readDate)
    .option('--endpoint <text>', 'only endpoints that contain this text, such as /api/v1/')
    .option('--limit <number>', 'maximum number of lines', readLimit, 100)
    .action((input: ReportInput) =>
      runCommand(context, async ({ ctx }) => {
        for (const line of await report(ctx, input)) {
          const { calls, firstAt, lastAt, endpoint, username, client } = line;
          print(lineOf([calls, firstAt, lastAt, endpoint, username, client]));
        }
      }),
    );

  usage
    .command('forget')
    .description(
      'Delete the records of a client. Calls that a running server has not yet stored appear a few seconds later.',
    )
    .argument('<client>', 'the name in `rest-usage report`')
    .action((client: string) =>
      runCommand(context, async ({ ctx }) => print(`Lines deleted: ${await forget(ctx, client)}.`)),
    );

  return usage;
}
