import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach } from './jest.ts';
import pino from 'pino';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { letters } from '../../src/features.ts';
import type { Letter } from '../../src/api/mail.ts';
import { Postman } from '../../src/features/mail/mail-worker.ts';
import { openTransport, type Transport } from '../../src/features/mail/transport.ts';
import type { Shop } from './shop.ts';

/** A mail as it arrived. */
export interface Arrived extends Letter {
  /** All of it, headers and body. */
  raw: string;
}

/** A real mail server, and a postman who brings it what a shop has asked for. */
export class PostOffice {
  readonly arrived: Arrived[] = [];
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
          for (const { address } of session.envelope.rcptTo) this.arrived.push(readMail(address, raw));
          callback();
        });
      },
      ...options,
    });
    // A client that goes in the middle is no fault of the server's.
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

  /** A postman of one process; each process has one. */
  postman(patience?: number): Postman {
    if (!this.transport) throw new Error('the post office is not open');
    return new Postman(letters, this.transport, patience);
  }

  /** Brings all that is due. Returns what has arrived since the last time. */
  async deliver(): Promise<Arrived[]> {
    await this.postman().deliver(() => this.shop.workerContext());
    return this.arrived.splice(0);
  }

  close(): Promise<void> {
    return new Promise((done) => this.server.close(done));
  }
}

/** Opens a post office for the tests of a file: each finds it empty. */
export function usePostOffice(shop: Shop, options?: SMTPServerOptions): PostOffice {
  const office = new PostOffice(shop, options);
  beforeAll(() => office.open());
  beforeEach(() => void office.arrived.splice(0));
  afterAll(() => office.close());
  return office;
}

/** The token in a mail. */
export function tokenIn({ text: body }: Letter): string {
  return /(?<![\w-])[\w-]{43}(?![\w-])/.exec(body)?.[0] ?? '';
}

function readMail(to: string, raw: string): Arrived {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const body = rest.join('\n\n');
  const plain = /quoted-printable/i.test(head)
    ? body.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)))
    : body;
  return { to, subject: /^Subject: (.*)$/im.exec(head)?.[1]?.trim() ?? '', text: plain.replaceAll('\r\n', '\n'), raw };
}
