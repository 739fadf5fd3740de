import { forbidden } from '../../../request/access.ts';
import type { Context } from '../../../request/context.ts';
import type { MailMessage } from '../../../api/mail.ts';
import { badInput, type DomainError } from '../../../core/errors.ts';

// What registration and password reset share.

const SETTINGS = { registration: 'REGISTRATION', passwordReset: 'PASSWORD_RESET' } as const;

/** Throws FORBIDDEN if the setting is off. */
export function requireEnabled(ctx: Context, setting: keyof typeof SETTINGS): void {
  if (!ctx.config[setting]) throw forbidden(ctx, `${SETTINGS[setting]} is off`);
}

/** The error for a token that is unknown, used or expired: the same for all of them. */
export function badToken({ log }: Context): DomainError {
  log.info({ event: 'auth.mailed_token', outcome: 'failure', user: null }, 'Token rejected');
  return badInput('token', 'is invalid, used or expired', 'token_invalid');
}

/**
 * Returns a mail of these paragraphs. They contain nothing that the requester can choose, so that
 * nobody can send their own text through this service.
 */
export function mailOf(
  { config }: Context,
  to: string,
  subject: string,
  ...paragraphs: readonly string[]
): MailMessage {
  return { to, subject, text: `${[...paragraphs, config.publicUrl].join('\n\n')}\n` };
}

/**
 * Returns the paragraph with the token. In a link, the token is in the fragment, which browsers send
 * to no server, so that it appears in no log.
 */
export function tokenParagraph(
  { config: { accountUrl } }: Context,
  purpose: string,
  token: string,
): string {
  return accountUrl === undefined
    ? `Your token, to be entered where you made the request:\n\n${token}`
    : `${accountUrl}#${purpose}=${token}`;
}
