import { forbidden } from '../../../request/access.ts';
import type { Config } from '../../../core/config.ts';
import type { Context } from '../../../request/context.ts';
import { badInput, DomainError } from '../../../core/errors.ts';
import { countRequest } from '../../mail/limits.ts';
import { enqueue } from '../../mail/mail.service.ts';

const SETTINGS = { registration: 'REGISTRATION', passwordReset: 'PASSWORD_RESET' } as const;

/** Throws FORBIDDEN if the setting is off. */
export function requireEnabled(ctx: Context, setting: keyof typeof SETTINGS & keyof Config): void {
  if (!ctx.config[setting]) throw forbidden(ctx, `${SETTINGS[setting]} is off`);
}

/**
 * Enqueues a request for a mail. It looks up no user: the mail worker does that when it writes the
 * mail, so that neither the response nor its time reveals whether the user exists. Throws
 * RATE_LIMITED and UNAVAILABLE, independent of the recipient.
 */
export async function requestMail(ctx: Context, kind: string, recipient: string): Promise<void> {
  await countRequest(ctx);
  if (!(await enqueue(ctx, kind, recipient))) {
    ctx.log.warn({ event: 'mail.queue', outcome: 'failure', user: null }, 'Mail queue is full');
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 60);
  }
  ctx.log.info({ event: `account.${kind}`, outcome: 'success', user: null }, 'Mail requested');
}

/** The error for a token that is unknown, used or expired: the same for all of them. */
export function badToken(ctx: Context, event: string): DomainError {
  ctx.log.info({ event, outcome: 'failure', user: null }, 'Token from a mail rejected');
  return badInput('token', 'is invalid, used or expired', 'token_invalid');
}
