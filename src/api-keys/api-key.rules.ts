import { z } from 'zod';
import { SCOPES } from '../kit/scopes.ts';
import { lineOf } from '../kit/text.ts';

const MAX_NAME = 100;

/** What somebody says of a new API key. */
export const newApiKey = z.object({
  name: lineOf(MAX_NAME),
  scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)),
  expiresAt: z.date().nullish(),
});

/** A new API key as it comes, and as it was checked. */
export type NewApiKey = z.input<typeof newApiKey>;
export type CheckedApiKey = z.output<typeof newApiKey>;
