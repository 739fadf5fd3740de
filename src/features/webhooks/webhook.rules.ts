import { z } from 'zod';
import { CHANGE_KINDS } from '../change-log/change-log.ts';
import { lineOf } from '../../core/text.ts';

const MAX_DESCRIPTION = 200;

/** What an operator says of a new webhook. Its address is looked at by target.ts. */
export const newWebhook = z.object({
  url: z.string(),
  description: lineOf(MAX_DESCRIPTION).nullish(),
  events: z.array(z.enum(CHANGE_KINDS, `An event is one of ${CHANGE_KINDS.join(', ')}`)).min(1, 'Name at least one event'),
});

/** A new webhook as it comes. */
export type NewWebhook = z.input<typeof newWebhook>;
