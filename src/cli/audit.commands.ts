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

/** The subject in an option: a username, or the key of another kind. */
interface SubjectReference {
  kind: AuditSubjectKind;
  key: string;
}

interface ListFlags extends Omit<audit.AuditFilter, 'subject'> {
  subject?: SubjectReference;
  limit: number;
  json?: boolean;
}

/** `audit …`: lists and deletes audit entries. */
export function auditCommands(context: CommandContext): Command {
  const { print } = context;
  const commands = new Command();

  commands
    .command('list')
    .description('List audit entries, newest first: time, actor, action, subject, changes.')
    .option('--actor <name>', 'only actions of this username or operator')
    .addOption(new Option('--action <action>', 'only this action').choices(ACTIONS))
    .option(
      '--subject <kind:id>',
      'only this subject: user:NAME, product:PK or api_key:ID',
      readSubject,
    )
    .option('--since <date>', 'only on or after this day (UTC)', readDate)
    .option('--until <date>', 'only before this day (UTC)', readDate)
    .option('--limit <number>', 'maximum number of entries', readLimit, 100)
    .option('--json', 'print NDJSON')
    .action(({ subject, limit, json = false, ...filter }: ListFlags) =>
      runCommand(context, async ({ ctx }) => {
        const entries = await audit.list(
          ctx,
          { ...filter, subject: subject && (await resolveSubject(ctx, subject)) },
          limit,
        );
        for (const entry of entries)
          print(json ? printableJson(jsonOf(entry)) : printable(lineOf(entry)));
      }),
    );

  commands
    .command('prune')
    .description('Delete the entries before a day. The deletion is an entry, too.')
    .requiredOption('--before <date>', 'the first day (UTC) to keep', readDate)
    .action(({ before }: { before: Date }) =>
      runCommand(context, async ({ ctx }) =>
        print(`Entries deleted: ${await audit.prune(ctx, before)}.`),
      ),
    );

  return commands;
}

function readSubject(text: string): SubjectReference {
  const [, name, key] = /^(\w+):(.+)$/.exec(text) ?? [];
  const kind = Object.values(AuditSubjectKind).find((known) => known === name);
  if (kind === undefined || key === undefined)
    throw new InvalidArgumentError('Must be user:NAME, product:PK or api_key:ID.');
  return { kind, key };
}

async function resolveSubject(
  ctx: Context,
  { kind, key }: SubjectReference,
): Promise<audit.AuditFilter['subject']> {
  return { kind, key: kind === AuditSubjectKind.USER ? (await accounts.byName(ctx, key)).pk : key };
}

function jsonOf({
  pk,
  at,
  actorKind,
  actorName,
  apiKey,
  action,
  subjectKind,
  subjectKey,
  subjectName,
  ...rest
}: AuditEntry): object {
  const { requestId, network, changes } = rest;
  const subject = subjectKind && { kind: subjectKind, key: subjectKey, name: subjectName };
  return {
    pk,
    at,
    actor: { kind: actorKind, name: actorName, apiKey },
    action,
    subject,
    changes,
    requestId,
    network,
  };
}

function lineOf({
  at,
  actorKind,
  actorName,
  action,
  subjectKind,
  subjectKey,
  subjectName,
  changes,
}: AuditEntry): string {
  const actor = actorName === null ? actorKind : `${actorKind}:${actorName}`;
  const subject =
    subjectKind === AuditSubjectKind.USER
      ? `user:${subjectName}`
      : `${subjectKind}:${subjectKey} ${subjectName}`;
  const facts = changes.map(
    ({ field, before, after }) =>
      `${field}: ${[before, after].filter((fact) => fact !== null).join(' -> ')}`,
  );
  return [
    at.toISOString(),
    actor,
    action,
    ...(subjectKind === null ? [] : [subject]),
    ...facts,
  ].join('  ');
}
