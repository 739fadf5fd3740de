import { z } from 'zod';
import { CHANGE_KINDS } from '../change-log/change-log.ts';
import { lineOf } from '../../core/text.ts';

const MAX_DESCRIPTION = 200;

/** Input for a new webhook. The URL is checked by url-policy.ts. */
export const newWebhook = z.object({
  url: z.string().trim(),
  description: lineOf(MAX_DESCRIPTION).nullish(),
  events: z
    .array(z.enum(CHANGE_KINDS, `must be one of ${CHANGE_KINDS.join(', ')}`))
    .min(1, 'must contain at least one event'),
});

/** Unchecked input for a new webhook. */
export type NewWebhook = z.input<typeof newWebhook>;
