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
        { scope: scopes, ...rest }: { email?: string; fullName?: string; scope?: Scope[] },
      ) =>
        runCommand(context, async ({ ctx }) => {
          const password = await readPassword(context);
          const created = await accounts.create(ctx, { username, password, scopes, ...rest });
          print(`User ${created.username} created.`);
        }),
    );

  for (const [name, disabled, description] of [
    ['disable', true, 'Disable a user, and end all sessions of the user.'],
    ['enable', false, 'Enable a disabled user.'],
  ] as const)
    user
      .command(name)
      .description(description)
      .argument('<username>')
      .action((username: string) =>
        runCommand(context, async ({ ctx }) => {
          await accounts.setDisabled(ctx, username, disabled);
          print(`User ${username} is ${name}d.`);
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

  for (const [name, key, description] of [
    ['grant', 'add', 'Add scopes to a user.'],
    ['revoke', 'remove', 'Remove scopes from a user.'],
  ] as const)
    user
      .command(name)
      .description(description)
      .argument('<username>')
      .addArgument(new Argument('<scope...>', 'the scopes').choices(SCOPES))
      .action((username: string, given: Scope[]) =>
        runCommand(context, async ({ ctx }) => {
          const scopes = await accounts.changeScopes(ctx, username, { [key]: given });
          print(`User ${username} holds ${scopes.join(', ') || 'no scopes'}.`);
        }),
      );

  return user;
}
