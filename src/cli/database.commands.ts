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
  return new Command().action(() =>
    runCommand(context, async ({ ctx }) => {
      await seedDemo(ctx.em, ctx.config.bcryptCost, ctx.now());
      const users = demoUsers.map(({ username, password }) => `${username} / ${password}`);
      context.print(`Demo data added. Users with public passwords: ${users.join(', ')}.`);
    }),
  );
}
