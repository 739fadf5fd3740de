import type { Context } from '../request/context.ts';

/** A plain-text mail to one recipient. */
export interface MailMessage {
  to: string;
  subject: string;
  text: string;
}

/**
 * Writes the mail for the username or address that was requested. Returns undefined without a
 * recipient. Called for each attempt to send, so that the queue never stores a token.
 */
export type WriteMail = (ctx: Context, addressee: string) => Promise<MailMessage | undefined>;
