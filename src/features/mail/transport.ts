import { createTransport } from 'nodemailer';
import type { Logger } from 'pino';
import type { Config } from '../../core/config.ts';
import type { Letter } from '../../api/mail.ts';
import { Letterbox } from './file-transport.ts';

/** Takes letters away. Throws Unsendable where it is known that another attempt would fail, too. */
export interface Transport {
  send(letter: Letter): Promise<void>;
}

/** A letter that was refused for good: its recipient does not exist, or its text is not taken. */
export class Unsendable extends Error {
  override readonly name = 'Unsendable';
}

const CONNECT_MS = 10_000;
const SILENCE_MS = 20_000;

/** By SMTP, or into files of the data directory where no SMTP_URL is set. */
export function openTransport(config: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>, log: Logger): Transport {
  return config.smtpUrl === undefined ? new Letterbox(config.dataDir, config.mailFrom, log) : bySmtp(config.smtpUrl, config.mailFrom);
}

function bySmtp(url: string, from: string): Transport {
  const mailer = createTransport(
    {
      url,
      dnsTimeout: CONNECT_MS,
      connectionTimeout: CONNECT_MS,
      greetingTimeout: CONNECT_MS,
      socketTimeout: SILENCE_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    },
    // RFC 3834, 5: no holiday notes in return.
    { from, headers: { 'Auto-Submitted': 'auto-generated' } },
  );
  return {
    async send({ to, subject, text }) {
      try {
        // As an object: as text it could be a list of addresses.
        await mailer.sendMail({ to: { name: '', address: to }, subject, text });
      } catch (error) {
        if (isForGood(error)) throw new Unsendable('refused for good', { cause: error });
        throw error;
      }
    },
  };
}

// RFC 5321, 4.2.1. A login or a sender that is refused is about us, and the operator may put it right.
function isForGood(error: unknown): boolean {
  if (!(error instanceof Error && 'permanent' in error && error.permanent === true && 'command' in error)) return false;
  return error.command === 'RCPT TO' || error.command === 'DATA';
}
