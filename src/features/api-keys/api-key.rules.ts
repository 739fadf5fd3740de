import { z } from 'zod';
import { instant } from '../../api/scalars.ts';
import { SCOPES } from '../../core/scopes.ts';
import { lineOf } from '../../core/text.ts';
import { DAY_MS } from '../../core/time.ts';
import { refuse } from '../../core/validation.ts';

const MAX_NAME = 100;
const MAX_DAYS = 366;

/** What somebody says of a new API key at this time. */
export function newApiKeyAt(now: Date) {
  const expiry = instant.superRefine((until, ctx) => {
    if (until <= now) refuse(ctx, 'value_error', 'must be in the future');
    if (until.getTime() - now.getTime() > MAX_DAYS * DAY_MS) refuse(ctx, 'value_error', `must be within ${MAX_DAYS} days`);
  });
  return z.object({
    name: lineOf(MAX_NAME),
    scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)),
    expiresAt: expiry.nullish(),
  });
}

/** A new API key as it comes, and as it was checked. */
export type NewApiKey = z.input<ReturnType<typeof newApiKeyAt>>;
export type CheckedApiKey = z.output<ReturnType<typeof newApiKeyAt>>;
