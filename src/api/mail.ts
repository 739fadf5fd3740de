import type { Context } from '../request/context.ts';

/** A mail to one recipient, as plain text. */
export interface Letter {
  to: string;
  subject: string;
  text: string;
}

/** What a letter says. */
export type Words = Pick<Letter, 'subject' | 'text'>;

/** A letter of which nothing is known yet but who is to have it. */
export interface Draft {
  to: string;
  /** The kind by which it counts towards the recipient's limit, if that is not the kind of the letter. */
  countsAs?: string;
  /** It tells of something that was done, and strangers cannot ask for it: no limit holds it back. */
  isNotice?: true;
  /** Finds its words. Called once it may leave, so that a token is made for a mail that is about to, and stands in no queue. */
  write(): Words | Promise<Words>;
}

/** Drafts the letter that somebody asked for, in that one's words; none where there is nobody to write to. Called once for each attempt at sending it. */
export type DraftLetter = (ctx: Context, asked: string) => Promise<Draft | undefined>;
