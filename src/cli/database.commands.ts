import { Command } from 'commander';
import { demoUsers, seedDemo } from '../features/demo-data.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `migrate`: applies pending migrations. */
export function migrateCommand(context: CommandContext): Command {
  return new Command().action(() =>
    runCommand(
      context,
      async ({ database }) => {
        const applied = await database.migrate();
        context.print(
          applied.length > 0
            ? applied.map((name) => `Applied ${name}.`).join('\n')
            : 'The database is up to date.',
        );
      },
      { anyVersion: true },
    ),
  );
}

/** `seed`: adds the demo data to the database. */
export function seedCommand(context: CommandContext): Command {
  const { print } = context;
  return new Command()
    .option('--add-to-existing', 'also add it to a database with users or products')
    .action(({ addToExisting }: { addToExisting?: boolean }) =>
      runCommand(context, async ({ ctx }) => {
        const added = await seedDemo(ctx.em, ctx.config.bcryptCost, ctx.now(), addToExisting);
        print(
          `Added users: ${added.users}, products: ${added.products}, items: ${added.items}, blog entries: ${added.entries}.`,
        );
        const shown = demoUsers.filter(({ username }) => added.usernames.includes(username));
        if (shown.length === 0) return;
        print(
          `Users with public passwords: ${shown.map(({ username, password }) => `${username} / ${password}`).join(', ')}.`,
        );
      }),
    );
}
