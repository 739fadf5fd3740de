import { forbidden } from '../../../request/access.ts';
import type { Config } from '../../../core/config.ts';
import type { Context } from '../../../request/context.ts';
import { badInput, DomainError } from '../../../core/errors.ts';
import { countRequest } from '../../mail/limits.ts';
import { post } from '../../mail/mail.service.ts';

const SETTINGS = { registration: 'REGISTRATION', passwordReset: 'PASSWORD_RESET' } as const;

/** Throws FORBIDDEN where the setting is off. */
export function requireOn(ctx: Context, setting: keyof typeof SETTINGS & keyof Config): void {
  if (!ctx.config[setting]) throw forbidden(ctx, `${SETTINGS[setting]} is off here`);
}

/**
 * Takes note that somebody asks for a mail, and looks up nothing: what comes of it is found out when it is written, so that neither the answer nor
 * its time can tell. Throws RATE_LIMITED and UNAVAILABLE, whatever was asked.
 */
export async function askForMail(ctx: Context, kind: string, asked: string): Promise<void> {
  await countRequest(ctx);
  if (!(await post(ctx, kind, asked))) {
    ctx.log.warn({ event: 'mail.queue', outcome: 'failure', user: null }, 'too many mails wait to be sent');
    throw new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 60);
  }
  ctx.log.info({ event: `account.${kind}`, outcome: 'success', user: null }, 'a mail was asked for');
}

/** The refusal of a token, the same whether there never was such a one, it was used, replaced or has expired. */
export function badToken(ctx: Context, event: string): DomainError {
  ctx.log.info({ event, outcome: 'failure', user: null }, 'a token was refused');
  return badInput('token', 'is not good, or not any more', 'token_invalid');
}
