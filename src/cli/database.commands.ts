import { Command } from 'commander';
import { demoUsers, seedDemo } from '../features/demo-data.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

/** `migrate`: brings the database up to date. */
export function migrateCommand(context: CommandContext): Command {
  return new Command('migrate').description('Apply the migrations that the database lacks.').action(() =>
    runCommand(
      context,
      async ({ database }) => {
        const applied = await database.migrate();
        context.print(applied.length > 0 ? applied.map((name) => `Applied ${name}.`).join('\n') : 'The database is up to date.');
      },
      { anyVersion: true },
    ),
  );
}

/** `seed`: puts the demo data into the database. */
export function seedCommand(context: CommandContext): Command {
  const { print } = context;
  return new Command('seed')
    .description('Add the demo data to an empty database: products, and users whose passwords everyone knows.')
    .option('--add-to-existing', 'add it to a database that has users or products, too')
    .action(({ addToExisting }: { addToExisting?: boolean }) =>
      runCommand(context, async ({ ctx }) => {
        const added = await seedDemo(ctx.em, ctx.config.bcryptCost, ctx.now(), addToExisting);
        print(`Added users: ${added.users}, products: ${added.products}, items: ${added.items}, blog entries: ${added.entries}.`);
        const shown = demoUsers.filter(({ username }) => added.usernames.includes(username));
        if (shown.length === 0) return;
        print(`Users with public passwords: ${shown.map(({ username, password }) => `${username} / ${password}`).join(', ')}.`);
      }),
    );
}
