import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from './jest.ts';
import pino from 'pino';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { mailWriters } from '../../src/features.ts';
import type { MailMessage } from '../../src/api/mail.ts';
import { MailWorker } from '../../src/features/mail/mail-worker.ts';
import { openTransport, type Transport } from '../../src/features/mail/transport.ts';
import type { Shop } from './shop.ts';

/** A received mail. */
export interface ReceivedMail extends MailMessage {
  /** The raw message, with headers. */
  raw: string;
}

/** A real SMTP server, and mail workers that deliver the mails of a shop to it. */
export class TestSmtpServer {
  readonly received: ReceivedMail[] = [];
  private readonly server: SMTPServer;
  private transport: Transport | undefined;

  constructor(
    private readonly shop: Shop,
    options: SMTPServerOptions = {},
  ) {
    this.server = new SMTPServer({
      disabledCommands: ['AUTH', 'STARTTLS'],
      logger: false,
      onData: (stream, session, callback) => {
        let raw = '';
        stream.on('data', (piece: Buffer) => (raw += piece.toString()));
        stream.on('end', () => {
          for (const { address } of session.envelope.rcptTo)
            this.received.push(readMail(address, raw));
          callback();
        });
      },
      ...options,
    });
    // A client that disconnects is not an error of the server.
    this.server.on('error', () => undefined);
  }

  async open(): Promise<this> {
    const listening = once(this.server.server, 'listening');
    this.server.listen(0, '127.0.0.1');
    await listening;
    const settings = { smtpUrl: this.url, mailFrom: 'Shop <shop@shop.example>', dataDir: '' };
    this.transport = openTransport(settings, pino({ level: 'silent' }));
    return this;
  }

  get url(): string {
    return `smtp://127.0.0.1:${(this.server.server.address() as AddressInfo).port}`;
  }

  /** Returns the mail worker of one process. */
  mailWorker(timeoutMs?: number): MailWorker {
    if (!this.transport) throw new Error('The SMTP server is not open');
    return new MailWorker(mailWriters, this.transport, timeoutMs);
  }

  /** Delivers all due mails. Returns the mails received since the last call. */
  async deliver(): Promise<ReceivedMail[]> {
    await this.mailWorker().poll(() => this.shop.workerContext());
    return this.received.splice(0);
  }

  close(): Promise<void> {
    return new Promise((done) => this.server.close(done));
  }
}

/** Opens an SMTP server for the tests of a file, emptied before each test. */
export function useSmtpServer(shop: Shop, options?: SMTPServerOptions): TestSmtpServer {
  const smtpServer = new TestSmtpServer(shop, options);
  beforeAll(() => smtpServer.open());
  beforeEach(() => void smtpServer.received.splice(0));
  afterAll(() => smtpServer.close());
  return smtpServer;
}

/** Returns the token in a mail. */
export function tokenIn({ text: body }: MailMessage): string {
  return /(?<![\w-])[\w-]{43}(?![\w-])/.exec(body)?.[0] ?? '';
}

function readMail(to: string, raw: string): ReceivedMail {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const body = rest.join('\n\n');
  const plain = /quoted-printable/i.test(head)
    ? body
        .replace(/=\r\n/g, '')
        .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
    : body;
  return {
    to,
    subject: /^Subject: (.*)$/im.exec(head)?.[1]?.trim() ?? '',
    text: plain.replaceAll('\r\n', '\n'),
    raw,
  };
}
