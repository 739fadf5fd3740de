import { Command } from 'commander';
import { demoUsers, seedDemo } from '../database/demo.ts';
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
  return new Command('seed').description('Add the demo data: products, and users whose passwords everyone knows.').action(() =>
    runCommand(context, async ({ ctx }) => {
      await seedDemo(ctx.em, ctx.config.bcryptCost, ctx.now());
      context.print(`The demo data is there. Users: ${demoUsers.map(({ username, password }) => `${username} / ${password}`).join(', ')}.`);
    }),
  );
}
