import { Command } from 'commander';
import * as accounts from '../features/auth/user-administration.service.ts';
import * as sessions from '../features/auth/sessions/session.service.ts';
import { DomainError } from '../core/errors.ts';
import { lineOf, type All } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `session …`: lists and ends sessions. */
export function sessionCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command();

  commands
    .command('list')
    .description(
      'List the open sessions of a user, newest first: id, created, last used, expires, client.',
    )
    .argument('<username>')
    .action((username: string) =>
      runCommand(context, async ({ ctx }) => {
        const { pk } = await accounts.byName(ctx, username);
        for (const session of await sessions.listOf(ctx, pk)) {
          const { sid, createdAt, lastSeenAt, expiresAt, userAgent } = session;
          print(lineOf([sid, createdAt, lastSeenAt, expiresAt, userAgent]));
        }
      }),
    );

  commands
    .command('end')
    .description('End one session of a user by its id, or all.')
    .argument('<username>')
    .argument('[id]', 'the id in `session list`')
    .option('--all', 'all sessions of the user')
    .action((username: string, id: string | undefined, { all = false }: All, command: Command) => {
      if ((id === undefined) !== all)
        command.error('error: give either the id of a session or --all');
      return runCommand(context, async ({ ctx }) => {
        const user = await accounts.byName(ctx, username);
        const ended = await accounts.endSessions(ctx, user, id);
        if (ended.length === 0 && id !== undefined)
          throw new DomainError('NOT_FOUND', `User ${username} has no open session ${id}`);
        print(`Sessions ended: ${ended.length}.`);
      });
    });

  return commands;
}
