import { Command, Option } from 'commander';
import { CHANGE_KINDS, type ChangeKind } from '../features/change-log/change-log.ts';
import * as deliveries from '../features/webhooks/delivery.service.ts';
import * as webhooks from '../features/webhooks/webhook.service.ts';
import { readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { printable } from './printable.ts';

/** `webhooks …`: what an operator does to those who are told of what happens. */
export function webhookCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command('webhooks').description('Tell other systems of what happens, and see what has become of it.');
  const id = 'as `webhooks list` shows it';

  commands
    .command('add')
    .description('Add a webhook and print its id and its secret. The secret is shown here once.')
    .argument('<url>', 'where messages are posted')
    .addOption(new Option('--event <kind...>', 'what it is told of').choices(CHANGE_KINDS).default([...CHANGE_KINDS], 'all'))
    .option('--description <text>', 'whose it is, and what for')
    .action((url: string, { event, description }: { event: ChangeKind[]; description?: string }) =>
      runCommand(context, async ({ ctx }) => {
        const { wid, secret } = await webhooks.add(ctx, { url, events: event, description });
        print(`${wid}  ${secret}`);
      }),
    );

  commands
    .command('list')
    .description('List all webhooks: id, whether it is enabled, made, last success, last failure, events, address, description.')
    .action(() =>
      runCommand(context, async ({ ctx }) => {
        for (const { wid, isEnabled, createdAt, succeededAt, failedAt, events, url, description } of await webhooks.listAll(ctx)) {
          const state = isEnabled ? 'enabled' : 'disabled';
          print([wid, state, ...[createdAt, succeededAt, failedAt].map(told), events.join(','), url, told(description)].join('  '));
        }
      }),
    );

  for (const [name, act, description] of [
    ['enable', webhooks.enable, 'Tell a webhook of what happens from now on, and of what still waits for it.'],
    ['disable', webhooks.disable, 'Tell a webhook nothing any more. What waits for it stays.'],
    ['remove', webhooks.remove, 'Forget a webhook, and all that was on its way there.'],
  ] as const) {
    commands
      .command(name)
      .description(description)
      .argument('<id>', id)
      .action((wid: string) =>
        runCommand(context, async ({ ctx }) => {
          await act(ctx, wid);
          print(`Webhook ${wid} is ${name}d.`);
        }),
      );
  }

  commands
    .command('rotate-secret')
    .description('Print another secret for a webhook. For a day, messages are signed with the one before, too.')
    .argument('<id>', id)
    .action((wid: string) => runCommand(context, async ({ ctx }) => print((await webhooks.rotateSecret(ctx, wid)).secret)));

  commands
    .command('test')
    .description('Send a webhook the event webhook.test, and print the id of the message.')
    .argument('<id>', id)
    .action((wid: string) => runCommand(context, async ({ ctx }) => print(await webhooks.test(ctx, wid))));

  commands
    .command('deliveries')
    .description(
      'List what was sent or is to be, the latest first: id, status, event, when, attempts, last outcome, next attempt, webhook.',
    )
    .option('--webhook <id>', 'only of this webhook')
    .addOption(new Option('--status <status>', 'only these').choices(['pending', 'delivered', 'dead']))
    .option('--limit <number>', 'print so many lines at most', readLimit, 100)
    .action(({ limit, ...choice }: deliveries.Choice & { limit: number }) =>
      runCommand(context, async ({ ctx }) => {
        for (const { mid, status, kind, at, attempts, reason, dueAt, wid } of await deliveries.listSome(ctx, choice, limit)) {
          print([mid, status, kind, told(at), attempts, told(reason), told(dueAt), wid].join('  '));
        }
      }),
    );

  commands
    .command('redeliver')
    .description('Send one message again by its id, or all that were given up. They keep their ids.')
    .argument('[message]', 'as `webhooks deliveries` shows it')
    .option('--dead', 'all that were given up')
    .option('--webhook <id>', 'of these, only those of this webhook')
    .option('--since <date>', 'of these, only of events on this day or later (UTC)', readDate)
    .action((mid: string | undefined, { dead = false, ...choice }: deliveries.Choice & { dead?: boolean }, command: Command) => {
      if ((mid === undefined) !== dead) command.error('error: give either the id of a message or --dead');
      return runCommand(context, async ({ ctx }) => {
        const count = await deliveries.redeliver(ctx, { mid, ...choice, ...(dead && { status: 'dead' }) });
        print(`Messages to be sent again: ${count}.`);
      });
    });

  return commands;
}

// What receivers say, and what operators have typed, may hold what a terminal takes for orders.
function told(value: Date | string | null): string {
  return value instanceof Date ? value.toISOString() : printable(value ?? '-');
}
