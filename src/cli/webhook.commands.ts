import { Command, Option } from 'commander';
import { CHANGE_KINDS, type ChangeKind } from '../features/change-log/change-log.ts';
import * as deliveries from '../features/webhooks/delivery.service.ts';
import * as webhooks from '../features/webhooks/webhook.service.ts';
import { lineOf, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';

const STATUSES = ['pending', 'delivered', 'dead'];

/** `webhooks …`: manages webhooks and their deliveries. */
export function webhookCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command();
  const id = 'the id in `webhooks list`';

  commands
    .command('add')
    .description('Add a webhook and print its id and its secret. The secret is shown only once.')
    .argument('<url>', 'the URL that receives the messages')
    .addOption(
      new Option('--event <kind...>', 'events to send')
        .choices(CHANGE_KINDS)
        .default([...CHANGE_KINDS], 'all'),
    )
    .action((url: string, { event: events }: { event: ChangeKind[] }) =>
      runCommand(context, async ({ ctx }) => {
        const { webhookId, secret } = await webhooks.add(ctx, { url, events });
        print(`${webhookId}  ${secret}`);
      }),
    );

  commands
    .command('list')
    .description('List all webhooks: id, state, created, last success, last failure, events, URL.')
    .action(() =>
      runCommand(context, async ({ ctx }) => {
        for (const hook of await webhooks.listAll(ctx)) {
          const { webhookId, isEnabled, createdAt, succeededAt, failedAt, events, url } = hook;
          const state = isEnabled ? 'enabled' : 'disabled';
          const times = [createdAt, succeededAt, failedAt];
          print(lineOf([webhookId, state, ...times, events.join(','), url]));
        }
      }),
    );

  for (const [name, isEnabled, description] of [
    ['enable', true, 'Enable a webhook. It gets new events and its pending messages.'],
    ['disable', false, 'Disable a webhook. Its pending messages are retained.'],
    ['remove', undefined, 'Remove a webhook and its messages.'],
  ] as const) {
    commands
      .command(name)
      .description(description)
      .argument('<id>', id)
      .action((webhookId: string) =>
        runCommand(context, async ({ ctx }) => {
          if (isEnabled === undefined) await webhooks.remove(ctx, webhookId);
          else await webhooks.setEnabled(ctx, webhookId, isEnabled);
          print(`Webhook ${webhookId} is ${name}d.`);
        }),
      );
  }

  commands
    .command('test')
    .description('Send a webhook the event webhook.test, and print the id of the message.')
    .argument('<id>', id)
    .action((webhookId: string) =>
      runCommand(context, async ({ ctx }) => print(await webhooks.test(ctx, webhookId))),
    );

  commands
    .command('deliveries')
    .description(
      'List messages, newest first: id, status, event, time, attempts, last outcome, next attempt, webhook.',
    )
    .option('--webhook <id>', 'only messages of this webhook')
    .addOption(new Option('--status <status>', 'only messages with this status').choices(STATUSES))
    .option('--limit <number>', 'maximum number of lines', readLimit, 100)
    .action(({ limit, ...choice }: deliveries.DeliveryFilter & { limit: number }) =>
      runCommand(context, async ({ ctx }) => {
        for (const message of await deliveries.listDeliveries(ctx, choice, limit)) {
          const { messageId, status, kind, at, attempts, reason, dueAt, webhookId } = message;
          print(lineOf([messageId, status, kind, at, attempts, reason, dueAt, webhookId]));
        }
      }),
    );

  commands
    .command('redeliver')
    .description('Send one message again by its id, or all dead messages. The ids stay the same.')
    .argument('[message]', 'the id in `webhooks deliveries`')
    .option('--dead', 'all dead messages')
    .option('--webhook <id>', 'only dead messages of this webhook')
    .action(
      (
        messageId: string | undefined,
        { dead = false, ...choice }: deliveries.DeliveryFilter & { dead?: boolean },
        command: Command,
      ) => {
        if ((messageId === undefined) !== dead)
          command.error('error: give either the id of a message or --dead');
        return runCommand(context, async ({ ctx }) => {
          const count = await deliveries.redeliver(ctx, {
            messageId,
            ...choice,
            ...(dead && { status: 'dead' }),
          });
          print(`Messages to be sent again: ${count}.`);
        });
      },
    );

  return commands;
}
