import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Transporter } from 'nodemailer';
import type { Logger } from 'pino';
import type { Config } from '../../core/config.ts';
import type { MailMessage } from '../../api/mail.ts';

/** Sends mails. */
export interface Transport {
  send(mail: MailMessage): Promise<void>;
}

/** Maximum time for each of DNS lookup, connection and greeting, in ms. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Maximum time without a packet from the mail server, in ms. */
const SOCKET_TIMEOUT_MS = 20_000;

/** Opens the SMTP transport, or without SMTP_URL the file transport. */
export function openTransport(
  { smtpUrl, mailFrom, dataDir }: Pick<Config, 'smtpUrl' | 'mailFrom' | 'dataDir'>,
  log: Logger,
): Transport {
  if (smtpUrl === undefined) return fileTransport(join(dataDir, 'mail'), mailFrom, log);
  let mailer: Promise<Transporter> | undefined;
  return {
    async send({ to, subject, text }) {
      // An object, because a string is parsed as a list of addresses.
      const message = { to: { name: '', address: to }, subject, text };
      await (await (mailer ??= openMailer(smtpUrl, mailFrom))).sendMail(message);
    },
  };
}

/**
 * Returns whether the mail server rejects the recipient or the content permanently (RFC 5321,
 * 4.2.1). A rejected login or sender is not permanent: the operator may correct it.
 */
export function isPermanent(error: unknown): boolean {
  const { permanent, command } = Object(error) as Record<string, unknown>;
  return permanent === true && (command === 'RCPT TO' || command === 'DATA');
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

/**
 * Transport for development without a mail server. Writes each mail to a file that only its owner
 * can read, and logs the path. The recipient and the content, which may include a token, are not
 * logged, because logs are copied to places where others read them.
 */
function fileTransport(directory: string, from: string, log: Logger): Transport {
  return {
    async send({ to, subject, text }) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const time = new Date().toISOString().replaceAll(':', '-');
      const file = join(directory, `${time}-${randomUUID().slice(0, 8)}.txt`);
      const content = `From: ${from}\nTo: ${to}\nSubject: ${subject}\n\n${text}`;
      // A reader that watches the folder must not meet half a mail.
      await writeFile(`${file}.part`, content, { mode: 0o600, flag: 'wx' });
      await rename(`${file}.part`, file);
      log.info({ event: 'mail.file', subject, file }, 'Mail written: SMTP_URL is not set');
    },
  };
}
