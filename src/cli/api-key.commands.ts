import { Command, Option } from 'commander';
import * as apiKeys from '../features/api-keys/api-key.service.ts';
import * as accounts from '../features/auth/user-administration.service.ts';
import { DomainError } from '../core/errors.ts';
import { SCOPES, type Scope } from '../core/scopes.ts';
import { DAY_MS } from '../core/time.ts';
import { lineOf, numberUpTo, type All } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `api-keys …`: manages API keys. */
export function apiKeyCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command();

  commands
    .command('create')
    .description('Create an API key for a user and print it. It is shown only once.')
    .argument('<username>', 'the user that the key authenticates')
    .argument('<name>', 'what the key is used for')
    .addOption(
      new Option('--scope <scope...>', 'scopes of the key, among those of the user')
        .choices(SCOPES)
        .default([]),
    )
    .option('--days <number>', 'lifetime in days, up to 366', numberUpTo(apiKeys.MAX_DAYS), 90)
    .action((username: string, name: string, { scope, days }: { scope: Scope[]; days: number }) =>
      runCommand(context, async ({ ctx }) => {
        const expiresAt = new Date(ctx.now().getTime() + days * DAY_MS);
        const user = await accounts.byName(ctx, username);
        const { key } = await apiKeys.createFor(ctx, user, { name, scopes: scope, expiresAt });
        print(key);
      }),
    );

  commands
    .command('list')
    .description(
      'List the valid API keys of a user, newest first: id, created, expires, last used, scopes, name.',
    )
    .argument('<username>')
    .action((username: string) =>
      runCommand(context, async ({ ctx }) => {
        const { pk } = await accounts.byName(ctx, username);
        for (const apiKey of await apiKeys.listOf(ctx, pk)) {
          const { keyId, createdAt, expiresAt, lastUsedAt: used, scopes, name } = apiKey;
          print(lineOf([keyId, createdAt, expiresAt, used, scopes.join(',') || '-', name]));
        }
      }),
    );

  commands
    .command('revoke')
    .description('Revoke one API key of a user by its id, or all.')
    .argument('<username>')
    .argument('[id]', 'the id in `api-keys list`')
    .option('--all', 'all API keys of the user')
    .action((username: string, id: string | undefined, { all = false }: All, command: Command) => {
      if ((id === undefined) !== all)
        command.error('error: give either the id of an API key or --all');
      return runCommand(context, async ({ ctx }) => {
        const { pk } = await accounts.byName(ctx, username);
        const revoked = await apiKeys.revokeOf(ctx, pk, id);
        if (revoked === 0 && id !== undefined)
          throw new DomainError('NOT_FOUND', `User ${username} has no valid API key ${id}`);
        print(`API keys revoked: ${revoked}.`);
      });
    });

  return commands;
}
