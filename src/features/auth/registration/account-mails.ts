import type { Config } from '../../../core/config.ts';
import type { MailContent } from '../../../api/mail.ts';

// Contents of the mails about accounts. They contain nothing that the requester can choose, so that
// nobody can send their own text through this service.

type Settings = Pick<Config, 'accountUrl' | 'passwordReset' | 'publicUrl'>;

/** Mail to an address without an account: how to create one. */
export function confirmation(settings: Settings, token: string): MailContent {
  return mailContent(settings, 'Confirm your address', [
    'We received a request to create an account with this address. To create it, choose a password and a username:',
    instructions(settings, 'confirm', token),
    'This works once, within 24 hours. If you did not request an account, ignore this mail: no account will be created.',
  ]);
}

/** Mail to an address that already has an account. */
export function accountExists(settings: Settings, usernames: readonly string[]): MailContent {
  return mailContent(settings, 'You have an account', [
    `We received a request to create an account with this address. It already has one: ${usernames.join(', ')}. Sign in with that username.`,
    ...(settings.passwordReset
      ? ['If you have forgotten the password, request a new one where you sign in.']
      : []),
    'If you did not request an account, ignore this mail.',
  ]);
}

/** Mail with the token to set a new password. */
export function passwordReset(settings: Settings, username: string, token: string): MailContent {
  return mailContent(settings, 'Set a new password', [
    `We received a request to reset the password of ${username}. To set a new one:`,
    instructions(settings, 'reset', token),
    'This works once, within one hour. If you did not request a new password, ignore this mail: the password stays the same.',
  ]);
}

/** Notice that the password was set by mail, and what this ended. */
export function passwordChanged(settings: Settings, username: string): MailContent {
  return mailContent(settings, 'Your password was changed', [
    `The password of ${username} was changed with a token from a mail to this address. All sessions and API keys have ended.`,
    'If you did not change it, somebody else can read your mail: secure your mailbox first, then set a new password.',
  ]);
}

// The token is in the fragment of the link, which browsers send to no server, so that it appears in
// no log.
function instructions({ accountUrl }: Settings, purpose: string, token: string): string {
  if (accountUrl === undefined)
    return `Your token, to be entered where you made the request:\n\n${token}`;
  return `${accountUrl}#${purpose}=${token}`;
}

function mailContent(
  { publicUrl }: Settings,
  subject: string,
  paragraphs: readonly string[],
): MailContent {
  return { subject, text: `${[...paragraphs, publicUrl].join('\n\n')}\n` };
}
