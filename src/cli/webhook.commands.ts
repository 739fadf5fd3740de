import { Command, Option } from 'commander';
import { CHANGE_KINDS, type ChangeKind } from '../features/change-log/change-log.ts';
import * as deliveries from '../features/webhooks/delivery.service.ts';
import * as webhooks from '../features/webhooks/webhook.service.ts';
import { readDate, readLimit } from './arguments.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { printable } from './printable.ts';

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
    .option('--description <text>', 'owner and purpose')
    .action((url: string, { event, description }: { event: ChangeKind[]; description?: string }) =>
      runCommand(context, async ({ ctx }) => {
        const { webhookId, secret } = await webhooks.add(ctx, { url, events: event, description });
        print(`${webhookId}  ${secret}`);
      }),
    );

  commands
    .command('list')
    .description(
      'List all webhooks: id, state, created, last success, last failure, events, URL, description.',
    )
    .action(() =>
      runCommand(context, async ({ ctx }) => {
        for (const {
          webhookId,
          isEnabled,
          createdAt,
          succeededAt,
          failedAt,
          events,
          url,
          description,
        } of await webhooks.listAll(ctx)) {
          const state = isEnabled ? 'enabled' : 'disabled';
          print(
            [
              webhookId,
              state,
              ...[createdAt, succeededAt, failedAt].map(formatted),
              events.join(','),
              url,
              formatted(description),
            ].join('  '),
          );
        }
      }),
    );

  for (const [name, act, description] of [
    ['enable', webhooks.enable, 'Enable a webhook. It gets new events and its pending messages.'],
    ['disable', webhooks.disable, 'Disable a webhook. Its pending messages are retained.'],
    ['remove', webhooks.remove, 'Remove a webhook and its messages.'],
  ] as const) {
    commands
      .command(name)
      .description(description)
      .argument('<id>', id)
      .action((webhookId: string) =>
        runCommand(context, async ({ ctx }) => {
          await act(ctx, webhookId);
          print(`Webhook ${webhookId} is ${name}d.`);
        }),
      );
  }

  commands
    .command('rotate-secret')
    .description(
      'Create a new secret for a webhook and print it. For a day, messages are also signed with the previous one.',
    )
    .argument('<id>', id)
    .action((webhookId: string) =>
      runCommand(context, async ({ ctx }) =>
        print((await webhooks.rotateSecret(ctx, webhookId)).secret),
      ),
    );

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
    .addOption(
      new Option('--status <status>', 'only messages with this status').choices([
        'pending',
        'delivered',
        'dead',
      ]),
    )
    .option('--limit <number>', 'maximum number of lines', readLimit, 100)
    .action(({ limit, ...choice }: deliveries.DeliveryFilter & { limit: number }) =>
      runCommand(context, async ({ ctx }) => {
        for (const {
          messageId,
          status,
          kind,
          at,
          attempts,
          reason,
          dueAt,
          webhookId,
        } of await deliveries.listDeliveries(ctx, choice, limit)) {
          print(
            [
              messageId,
              status,
              kind,
              formatted(at),
              attempts,
              formatted(reason),
              formatted(dueAt),
              webhookId,
            ].join('  '),
          );
        }
      }),
    );

  commands
    .command('redeliver')
    .description('Send one message again by its id, or all dead messages. The ids stay the same.')
    .argument('[message]', 'the id in `webhooks deliveries`')
    .option('--dead', 'all dead messages')
    .option('--webhook <id>', 'only dead messages of this webhook')
    .option('--since <date>', 'only dead messages of events on or after this day (UTC)', readDate)
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

// Texts of receivers and operators may contain control characters that a terminal interprets.
function formatted(value: Date | string | null): string {
  return value instanceof Date ? value.toISOString() : printable(value ?? '-');
}
