import type { Transporter } from 'nodemailer';
import type { Logger } from 'pino';
import type { Config } from '../../core/config.ts';
import type { MailMessage } from '../../api/mail.ts';
import { FileTransport } from './file-transport.ts';

/** Sends mails. Throws Unsendable if another attempt would also fail. */
export interface Transport {
  send(mail: MailMessage): Promise<void>;
}

/** Error for a permanently rejected mail: unknown recipient, or rejected content. */
export class Unsendable extends Error {
  override readonly name = 'Unsendable';
}

/** Maximum time for each of DNS lookup, connection and greeting, in ms. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Maximum time without a packet from the mail server, in ms. */
const SOCKET_TIMEOUT_MS = 20_000;

/** Opens the SMTP transport, or without SMTP_URL the file transport. */
export function openTransport(
  config: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>,
  log: Logger,
): Transport {
  return config.smtpUrl === undefined
    ? new FileTransport(config.dataDir, config.mailFrom, log)
    : smtpTransport(config.smtpUrl, config.mailFrom);
}

function smtpTransport(url: string, from: string): Transport {
  let mailer: Promise<Transporter> | undefined;
  return {
    async send({ to, subject, text }) {
      try {
        // An object, because a string is parsed as a list of addresses.
        const message = { to: { name: '', address: to }, subject, text };
        await (await (mailer ??= openMailer(url, from))).sendMail(message);
      } catch (error) {
        if (isPermanent(error)) throw new Unsendable('Mail rejected permanently', { cause: error });
        throw error;
      }
    },
  };
}

async function openMailer(url: string, from: string): Promise<Transporter> {
  // Most processes send no mail, and the module takes 7 MiB.
  const { createTransport } = await import('nodemailer');
  return createTransport(
    {
      url,
      dnsTimeout: CONNECT_TIMEOUT_MS,
      connectionTimeout: CONNECT_TIMEOUT_MS,
      greetingTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: SOCKET_TIMEOUT_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    },
    // RFC 3834, 5: suppresses vacation replies.
    { from, headers: { 'Auto-Submitted': 'auto-generated' } },
  );
}

// RFC 5321, 4.2.1. A rejected login or sender is not permanent: the operator may correct it.
function isPermanent(error: unknown): boolean {
  if (!(
    error instanceof Error &&
    'permanent' in error &&
    error.permanent === true &&
    'command' in error
  ))
    return false;
  return error.command === 'RCPT TO' || error.command === 'DATA';
}
