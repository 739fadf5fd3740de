import { z } from 'zod';
import { instant } from '../../api/scalars.ts';
import { SCOPES } from '../../core/scopes.ts';
import { lineOf } from '../../core/text.ts';
import { DAY_MS } from '../../core/time.ts';
import { reject } from '../../core/validation.ts';

/** Maximum length of a name, in characters. */
const MAX_NAME = 100;
/** Maximum lifetime, in days. */
const MAX_DAYS = 366;

/** Returns the schema of a new API key that is created at this time. */
export function newApiKeyAt(now: Date) {
  const expiry = instant.superRefine((until, ctx) => {
    if (until <= now) reject(ctx, 'value_error', 'must be in the future');
    if (until.getTime() - now.getTime() > MAX_DAYS * DAY_MS)
      reject(ctx, 'value_error', `must be within ${MAX_DAYS} days`);
  });
  return z.object({
    name: lineOf(MAX_NAME),
    scopes: z.array(z.enum(SCOPES, `A scope is one of ${SCOPES.join(', ')}`)),
    expiresAt: expiry.nullish(),
  });
}

/** A new API key before and after validation. */
export type NewApiKey = z.input<ReturnType<typeof newApiKeyAt>>;
export type CheckedApiKey = z.output<ReturnType<typeof newApiKeyAt>>;
