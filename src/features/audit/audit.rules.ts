import { z } from 'zod';
import { readGlobalId } from '../../api/node.ts';
import { instant } from '../../api/scalars.ts';
import { isStorable } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';
import { AuditSubjectKind, NODE_TYPES } from './audit.entity.ts';
import { ACTIONS, type Subject } from './audit.log.ts';

const actor = z.string().superRefine((text, ctx) => {
  if (!isStorable(text))
    reject(ctx, 'string_control_characters', 'has a NUL or is not well-formed Unicode');
});

const subject = z.string().transform((id, ctx): Pick<Subject, 'kind' | 'key'> => {
  const { type, key = '' } = readGlobalId(id) ?? {};
  const kind = Object.values(AuditSubjectKind).find((known) => NODE_TYPES[known] === type);
  return kind === undefined
    ? reject(ctx, 'value_error', 'must be the global id of a user, a product or an API key')
    : { kind, key };
});

/** Filter of audit entries, with the global id of the subject. */
export const auditFilter = z.object({
  actor: actor.nullish(),
  action: z.enum(ACTIONS, `must be one of ${ACTIONS.join(', ')}`).nullish(),
  subject: subject.nullish(),
  since: instant.nullish(),
  until: instant.nullish(),
});
