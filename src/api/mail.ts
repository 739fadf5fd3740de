import type { Context } from '../request/context.ts';

/** A plain-text mail to one recipient. */
export interface MailMessage {
  to: string;
  subject: string;
  text: string;
}

/** Content of a mail. */
export type MailContent = Pick<MailMessage, 'subject' | 'text'>;

/** A mail whose content has not been written yet. */
export interface MailTemplate {
  to: string;
  /** Kind that counts towards the recipient's limit. Default: the mail's own kind. */
  countsAs?: string;
  /** Exempt from limits: notifies of a completed action, and strangers cannot request it. */
  isNotice?: true;
  /** Writes the content just before sending, so that the queue never stores a token. */
  write(): MailContent | Promise<MailContent>;
}

/**
 * Finds the template for the username or address that was `requested`. Returns undefined without a
 * recipient. Called for each attempt to send.
 */
export type FindMailTemplate = (
  ctx: Context,
  requested: string,
) => Promise<MailTemplate | undefined>;
