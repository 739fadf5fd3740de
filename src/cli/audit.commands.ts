import { Command, Option } from 'commander';
import { ACTIONS } from '../features/audit/audit.log.ts';
import * as audit from '../features/audit/audit.service.ts';
import { lineOf, readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `audit …`: lists and deletes audit entries. */
export function auditCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command();

  commands
    .command('list')
    .description(
      'List audit entries, newest first: time, actor, action, subject, changes. The query `auditEntries` filters by subject.',
    )
    .option('--actor <name>', 'only actions of this username or operator')
    .addOption(new Option('--action <action>', 'only this action').choices(ACTIONS))
    .option('--since <date>', 'only on or after this day (UTC)', readDate)
    .option('--until <date>', 'only before this day (UTC)', readDate)
    .option('--limit <number>', 'maximum number of entries', readLimit, 100)
    .action(({ limit, ...filter }: audit.AuditFilter & { limit: number }) =>
      runCommand(context, async ({ ctx }) => {
        for (const entry of await audit.list(ctx, filter, limit)) {
          const { at, actorKind, actorName, action, subjectKind, subjectKey, subjectName } = entry;
          const facts = entry.changes.map(
            ({ field, before, after }) =>
              `${field}: ${[before, after].filter((value) => value !== null).join(' -> ')}`,
          );
          const subject = subjectKind && `${subjectKind}:${subjectKey} ${subjectName}`;
          print(lineOf([at, `${actorKind}:${actorName ?? '-'}`, action, subject, ...facts]));
        }
      }),
    );

  commands
    .command('prune')
    .description('Delete the entries before a day. The deletion is an entry, too.')
    .requiredOption('--before <date>', 'the first day (UTC) to keep', readDate)
    .action(({ before }: { before: Date }) =>
      runCommand(context, async ({ ctx }) =>
        print(`Entries deleted: ${await audit.prune(ctx, before)}.`),
      ),
    );

  return commands;
}
