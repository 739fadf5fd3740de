import { Command, InvalidArgumentError, Option } from 'commander';
import { AuditSubjectKind, type AuditEntry } from '../features/audit/audit.entity.ts';
import { ACTIONS } from '../features/audit/audit.log.ts';
import * as audit from '../features/audit/audit.service.ts';
import * as accounts from '../features/auth/user-administration.service.ts';
import type { Context } from '../request/context.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { readDate, readLimit } from './arguments.ts';
import { printable, printableJson } from './printable.ts';

/** What an option says that something was done to: of a user the name, of all others the key. */
interface Named {
  kind: AuditSubjectKind;
  key: string;
}

interface ListFlags extends Omit<audit.AuditFilter, 'subject'> {
  subject?: Named;
  limit: number;
  json?: boolean;
}

/** `audit …`: who did what to accounts and products. */
export function auditCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command('audit').description('See who did what to accounts and products, and delete what is old.');

  commands
    .command('list')
    .description('List what was done, the latest first: when, by whom, what, to what, and the facts that it changed.')
    .option('--actor <name>', 'only by this one: a username, or the name of an operator')
    .addOption(new Option('--action <action>', 'only this').choices(ACTIONS))
    .option('--subject <kind:id>', 'only to this one: user:NAME, product:PK or api_key:ID', readSubject)
    .option('--since <date>', 'only on this day or later (UTC)', readDate)
    .option('--until <date>', 'only before this day (UTC)', readDate)
    .option('--limit <number>', 'print so many entries at most', readLimit, 100)
    .option('--json', 'print each as a line of JSON')
    .action(({ subject, limit, json = false, ...filter }: ListFlags) =>
      runCommand(context, async ({ ctx }) => {
        const entries = await audit.list(ctx, { ...filter, subject: subject && (await keyed(ctx, subject)) }, limit);
        for (const entry of entries) print(json ? printableJson(factsOf(entry)) : printable(lineOf(entry)));
      }),
    );

  commands
    .command('prune')
    .description('Delete the entries from before a day. That is noted, too.')
    .requiredOption('--before <date>', 'the first day (UTC) to keep', readDate)
    .action(({ before }: { before: Date }) =>
      runCommand(context, async ({ ctx }) => print(`Entries deleted: ${await audit.prune(ctx, before)}.`)),
    );

  return commands;
}

function readSubject(text: string): Named {
  const [, name, key] = /^(\w+):(.+)$/.exec(text) ?? [];
  const kind = Object.values(AuditSubjectKind).find((known) => known === name);
  if (kind === undefined || key === undefined) throw new InvalidArgumentError('It is user:NAME, product:PK or api_key:ID.');
  return { kind, key };
}

async function keyed(ctx: Context, { kind, key }: Named): Promise<audit.AuditFilter['subject']> {
  return { kind, key: kind === AuditSubjectKind.USER ? (await accounts.byName(ctx, key)).pk : key };
}

function factsOf({ pk, at, actorKind, actorName, apiKey, action, subjectKind, subjectKey, subjectName, ...rest }: AuditEntry): object {
  const { requestId, network, changes } = rest;
  const subject = subjectKind && { kind: subjectKind, key: subjectKey, name: subjectName };
  return { pk, at, actor: { kind: actorKind, name: actorName, apiKey }, action, subject, changes, requestId, network };
}

function lineOf({ at, actorKind, actorName, action, subjectKind, subjectKey, subjectName, changes }: AuditEntry): string {
  const actor = actorName === null ? actorKind : `${actorKind}:${actorName}`;
  const subject = subjectKind === AuditSubjectKind.USER ? `user:${subjectName}` : `${subjectKind}:${subjectKey} ${subjectName}`;
  const facts = changes.map(({ field, before, after }) => `${field}: ${[before, after].filter((fact) => fact !== null).join(' -> ')}`);
  return [at.toISOString(), actor, action, ...(subjectKind === null ? [] : [subject]), ...facts].join('  ');
}
