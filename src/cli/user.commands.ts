import { Argument, Command, Option } from 'commander';
import * as accounts from '../features/auth/user-administration.service.ts';
import { SCOPES, type Scope } from '../core/scopes.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { readPassword } from './read-password.ts';

/** `user …`: manages users. */
export function userCommands(context: CommandContext): Command {
  const { print } = context;
  const user = new Command();
  const scopes = () => new Argument('<scope...>', 'the scopes').choices(SCOPES);

  user
    .command('create')
    .description('Create a user. The password is prompted for, or read from standard input.')
    .argument('<username>', 'the name to sign in with')
    .option('--email <address>', 'the email address')
    .option('--full-name <name>', 'the name to show')
    .addOption(new Option('--scope <scope...>', 'scopes of the user').choices(SCOPES))
    .action(
      (
        username: string,
        { email, fullName, scope }: { email?: string; fullName?: string; scope?: Scope[] },
      ) =>
        runCommand(context, async ({ ctx }) => {
          const password = await readPassword(context);
          const created = await accounts.create(ctx, {
            username,
            password,
            email,
            fullName,
            scopes: scope,
          });
          print(`User ${created.username} created.`);
        }),
    );

  user
    .command('disable')
    .description('Disable a user, and end all sessions of the user.')
    .argument('<username>')
    .action((username: string) =>
      runCommand(context, async ({ ctx }) => {
        await accounts.disable(ctx, username);
        print(`User ${username} is disabled.`);
      }),
    );

  user
    .command('enable')
    .description('Enable a disabled user.')
    .argument('<username>')
    .action((username: string) =>
      runCommand(context, async ({ ctx }) => {
        await accounts.enable(ctx, username);
        print(`User ${username} is enabled.`);
      }),
    );

  user
    .command('set-password')
    .description(
      'Set a password and end all sessions of the user. The password is prompted for, or read from standard input.',
    )
    .argument('<username>')
    .action((username: string) =>
      runCommand(context, async ({ ctx }) => {
        await accounts.byName(ctx, username);
        const ended = await accounts.setPassword(ctx, username, await readPassword(context));
        print(`User ${username} has a new password; sessions ended: ${ended}.`);
      }),
    );

  user
    .command('grant')
    .description('Add scopes to a user.')
    .argument('<username>')
    .addArgument(scopes())
    .action((username: string, add: Scope[]) =>
      runCommand(context, async ({ ctx }) =>
        print(scopesOf(username, await accounts.changeScopes(ctx, username, { add }))),
      ),
    );

  user
    .command('revoke')
    .description('Remove scopes from a user.')
    .argument('<username>')
    .addArgument(scopes())
    .action((username: string, remove: Scope[]) =>
      runCommand(context, async ({ ctx }) =>
        print(scopesOf(username, await accounts.changeScopes(ctx, username, { remove }))),
      ),
    );

  return user;
}

function scopesOf(username: string, scopes: readonly Scope[]): string {
  return `User ${username} holds ${scopes.length > 0 ? scopes.join(', ') : 'no scopes'}.`;
}
