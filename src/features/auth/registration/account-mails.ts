import type { Config } from '../../../core/config.ts';
import type { Words } from '../../../api/mail.ts';

// What the mails say. Nothing that the one who asks can choose stands in them, so that nobody sends words of one's own through us.

type Settings = Pick<Config, 'accountUrl' | 'passwordReset' | 'publicUrl'>;

/** To an address that has no account: how to make one. */
export function confirmation(settings: Settings, token: string): Words {
  return words(settings, 'Confirm your address', [
    'Somebody, most likely you, wants an account with this address. To make it, choose a username and a password for it:',
    howTo(settings, 'confirm', token),
    'This is good for 24 hours, and once. If it was not you, there is nothing to do: without it there will be no account.',
  ]);
}

/** To an address that has an account already. */
export function accountExists(settings: Settings, usernames: readonly string[]): Words {
  return words(settings, 'You have an account', [
    `Somebody, most likely you, wants an account with this address. There is one already: ${usernames.join(', ')}. Sign in with it.`,
    ...(settings.passwordReset ? ['If you have forgotten its password, ask for a new one where you sign in.'] : []),
    'If it was not you, there is nothing to do.',
  ]);
}

/** How to set a new password. */
export function passwordReset(settings: Settings, username: string, token: string): Words {
  return words(settings, 'Set a new password', [
    `Somebody, most likely you, has forgotten the password of ${username}. To set a new one:`,
    howTo(settings, 'reset', token),
    'This is good for one hour, and once. If it was not you, there is nothing to do: the password stays as it is.',
  ]);
}

/** That the password has been set by mail, and what ended with the old one. */
export function passwordChanged(settings: Settings, username: string): Words {
  return words(settings, 'Your password was changed', [
    `The password of ${username} was set anew, with a token from a mail to this address. All sessions and API keys have ended.`,
    'If it was not you, somebody else reads your mail: see to that first, then set a new password.',
  ]);
}

// The token stands in the fragment of a link, which browsers send to no server, so that no log on the way has it.
function howTo({ accountUrl }: Settings, purpose: string, token: string): string {
  if (accountUrl === undefined) return `Your token, to be given where you asked for it:\n\n${token}`;
  return `${accountUrl}#${purpose}=${token}`;
}

function words({ publicUrl }: Settings, subject: string, paragraphs: readonly string[]): Words {
  return { subject, text: `${[...paragraphs, publicUrl].join('\n\n')}\n` };
}
