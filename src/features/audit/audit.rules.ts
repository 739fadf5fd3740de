import { z } from 'zod';
import { readGlobalId } from '../../api/node.ts';
import { instant } from '../../api/scalars.ts';
import { isStorable } from '../../core/text.ts';
import { refuse } from '../../core/validation.ts';
import { AuditSubjectKind, NODE_TYPES } from './audit.entity.ts';
import { ACTIONS, type Subject } from './audit.log.ts';

const actor = z.string().superRefine((text, ctx) => {
  if (!isStorable(text)) refuse(ctx, 'string_control_characters', 'has a NUL or is not well-formed Unicode');
});

const subject = z.string().transform((id, ctx): Pick<Subject, 'kind' | 'key'> => {
  const { type, key = '' } = readGlobalId(id) ?? {};
  const kind = Object.values(AuditSubjectKind).find((known) => NODE_TYPES[known] === type);
  return kind === undefined ? refuse(ctx, 'value_error', 'is no id of a user, a product or an API key') : { kind, key };
});

/** Which entries of the audit trail to list, with the subject named by its global id. */
export const auditFilter = z.object({
  actor: actor.nullish(),
  action: z.enum(ACTIONS, `is one of ${ACTIONS.join(', ')}`).nullish(),
  subject: subject.nullish(),
  since: instant.nullish(),
  until: instant.nullish(),
});
