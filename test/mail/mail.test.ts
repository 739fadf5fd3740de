import { describe, expect, test } from '../support/jest.ts';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import pino from 'pino';
import { mailWriters } from '../../src/features.ts';
import { MAIL_QUEUE } from '../../src/features/mail/mail.service.ts';
import { jobsOf } from '../../src/database/jobs.ts';
import { MailWorker } from '../../src/features/mail/mail-worker.ts';
import { openTransport } from '../../src/features/mail/transport.ts';
import { TestSmtpServer, useSmtpServer } from '../support/smtp-server.ts';
import { freePort } from '../support/process.ts';
import { expireJobs, passTime } from '../support/jobs.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const SETTINGS = {
  PASSWORD_RESET: 'on',
  REGISTRATION: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
};
const shop = useShop(
  { ...SETTINGS, TRUST_PROXY: '127.0.0.1' },
  { mailsPerRecipientPerHour: 2, mailRequestsPerAddressPerHour: 20 },
);
const smtpServer = useSmtpServer(shop);

const REQUEST = 'mutation ($user: String!) { requestPasswordReset(user: $user) }';
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ask = (user: string, from = '192.0.2.1') =>
  shop.graphql(REQUEST, { user }, { headers: { 'X-Forwarded-For': from } });
const waiting = () =>
  shop.sql(
    `select data ->> 'kind' as kind, data ->> 'addressee' as addressee, retry_count + (started_on is not null)::integer as attempts from pgboss.job`,
  );
const retryDelay = async () => {
  const [row] = await shop.sql(
    'select extract(epoch from start_after - now()) as s from pgboss.job',
  );
  return Number(row?.['s']) * 1000;
};
const claim = async () =>
  (await jobsOf(shop.context())).fetch(MAIL_QUEUE, { includeMetadata: true });
const events = (name: string) =>
  shop.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === name);
const mailWorkerFor = (smtpUrl: string, timeoutMs?: number) =>
  new MailWorker(
    mailWriters,
    openTransport(
      { smtpUrl, mailFrom: 'shop@shop.example', dataDir: '' },
      pino({ level: 'silent' }),
    ),
    timeoutMs,
  );
const deliver = (mailWorker: MailWorker) => mailWorker.poll(() => shop.workerContext());

describe('a sent mail', () => {
  test('is from MAIL_FROM, to one address, plain text without auto-replies, and is deleted', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const [arrived] = await smtpServer.deliver();
    expect(arrived?.raw).toMatch(/^From: Shop <shop@shop\.example>\r$/m);
    expect(arrived?.raw).toMatch(/^To: ada@shop\.example\r$/m);
    expect(arrived?.raw).toMatch(/^Content-Type: text\/plain; charset=utf-8/m);
    expect(arrived?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(await waiting()).toEqual([]);
    expect(events('mail.sent')).toHaveLength(1);
  });

  test('an address that looks like several is one recipient', async () => {
    await shop.makeUser({ username: 'ada', email: 'a,b<c>@shop.example' });
    await ask('ada');
    await smtpServer.deliver();
    for (const { to } of smtpServer.received) expect(to).not.toBe('a');
    expect(
      events('mail.sent').length + events('mail.refused').length + events('mail.retry').length,
    ).toBe(1);
  });

  test('a mail claimed by a process that dies is sent by another after five minutes, at the next sweep', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    expect(await claim()).toHaveLength(1);
    await expireJobs(shop);
    expect(await smtpServer.deliver()).toEqual([]);
    await passTime(shop, 301_000);
    await expireJobs(shop);
    await passTime(shop, 20_000);
    expect(await smtpServer.deliver()).toHaveLength(1);
  });
});

describe('a mail server that fails', () => {
  test('refused connections: retried after 10 to 20 s, then twice as long each time, up to an hour; then with a new token', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const mailWorker = mailWorkerFor(`smtp://127.0.0.1:${await freePort()}`);
    for (let delay = 10_000; delay < DAY / 20; delay *= 2) {
      await deliver(mailWorker);
      const due = await retryDelay();
      expect(due).toBeLessThanOrEqual(Math.min(2 * delay, 3_600_000));
      expect(due).toBeGreaterThan(Math.min(delay, 3_600_000) * 0.98 - 1_000);
      await passTime(shop, Math.min(2 * delay, 3_600_000));
    }
    expect(events('mail.retry').at(0)).toMatchObject({
      level: 40,
      kind: 'password-reset',
      attempt: 1,
      reason: 'ESOCKET',
    });
    expect(await smtpServer.deliver()).toHaveLength(1);
    expect(await waiting()).toEqual([]);
  });

  test('after a day the mail is no longer retried, and logged', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const mailWorker = mailWorkerFor(`smtp://127.0.0.1:${await freePort()}`);
    let elapsed = 0;
    const isWaiting = () => shop.sql(`select 1 from pgboss.job where state <= 'active'`);
    for (await deliver(mailWorker); (await isWaiting()).length > 0; await deliver(mailWorker)) {
      const delay = await retryDelay();
      await passTime(shop, delay);
      elapsed += delay;
    }
    expect(elapsed).toBeGreaterThan(0.95 * DAY);
    expect(elapsed).toBeLessThan(1.05 * DAY);
    expect(await waiting()).toEqual([]);
    expect(events('mail.dead')).toMatchObject([{ level: 50, attempt: 32, reason: 'ESOCKET' }]);
  });

  test('without a mail worker, the sweep deletes it after 26 hours', async () => {
    await ask('ada');
    await passTime(shop, 25.9 * HOUR);
    await expireJobs(shop);
    expect(await waiting()).toHaveLength(1);
    await passTime(shop, 0.2 * HOUR);
    await expireJobs(shop);
    expect(await waiting()).toEqual([]);
  });

  test.each([
    ['450 for the recipient', { onRcptTo: refusing(450) }, true],
    ['550 for the recipient', { onRcptTo: refusing(550) }, false],
    ['452 for the text', { onData: refusingData(452) }, true],
    ['554 for the text', { onData: refusingData(554) }, false],
    ['550 for the sender, our own error', { onMailFrom: refusing(550) }, true],
    ['554 for the connection', { onConnect: refusingConnection(554) }, true],
  ])(
    '%s: only a temporary error is retried, and the log has no address',
    async (_what, options, again) => {
      const failing = await new TestSmtpServer(shop, options).open();
      try {
        await shop.makeUser({ username: 'ada' });
        await ask('ada');
        await failing.deliver();
        expect(await waiting()).toHaveLength(again ? 1 : 0);
        expect(events(again ? 'mail.retry' : 'mail.refused')).toHaveLength(1);
        for (const line of shop.logged) expect(line).not.toContain('ada@shop.example');
        await passTime(shop, 20_000);
        expect(await smtpServer.deliver()).toHaveLength(again ? 1 : 0);
      } finally {
        await failing.close();
      }
    },
  );

  test('a silent server times out, and blocks nothing else', async () => {
    const silent = await silentServer();
    try {
      await shop.makeUser({ username: 'ada' });
      await ask('ada');
      await deliver(mailWorkerFor(silent.url, 100));
      expect(await waiting()).toMatchObject([{ attempts: 1 }]);
      expect(events('mail.retry')).toHaveLength(1);
      expect((await ask('bea')).body.data).toEqual({ requestPasswordReset: true });
    } finally {
      silent.close();
    }
  });
});

describe('limits', () => {
  test('B9 an addressee has a maximum of requests per hour, from any network; then RATE_LIMITED, the same for known and unknown', async () => {
    await shop.makeUser({ username: 'ada' });
    for (const [index, form] of ['ada', 'Ada', ' ADA '].entries()) {
      const { body } = await ask(form, `192.0.2.${index + 1}`);
      expect(body.errors?.[0].extensions.code).toBe(index < 2 ? undefined : 'RATE_LIMITED');
    }
    const texts = await Promise.all(
      ['ada', 'nobody'].map(async (user) => {
        for (let count = 0; count < 2; count++) await ask(user, '192.0.2.9');
        const { text } = await ask(user, '192.0.2.9');
        return text.replace(/"retryAfter":\d+/, '');
      }),
    );
    expect(new Set(texts).size).toBe(1);
    expect((await ask('ada@shop.example')).body.errors).toBeUndefined();
  });

  test('B9 mails of one kind do not count for another kind', async () => {
    for (let count = 0; count < 3; count++)
      await shop.graphql('mutation { register(input: { email: "ada@shop.example" }) }');
    expect((await ask('ada@shop.example')).body.errors).toBeUndefined();
  });

  test('B9 a network has a maximum of requests per hour for any user; then RATE_LIMITED, the same for known and unknown', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 20; count++) await ask(`nobody${count}`, '192.0.2.9');
    const [known, unknown] = [await ask('ada', '192.0.2.9'), await ask('nobody', '192.0.2.9')];
    for (const { body } of [known, unknown]) {
      expect(body.errors[0].extensions).toEqual({
        code: 'RATE_LIMITED',
        retryAfter: expect.any(Number),
      });
    }
    expect((await ask('ada', '192.0.2.10')).body.errors).toBeUndefined();
    expect(events('mail.throttle')).toHaveLength(2);
  });

  test('B9 at most 10,000 mails are queued; then UNAVAILABLE, the same for known and unknown, until one is sent', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    await shop.sql(
      'insert into pgboss.job (name, data) select name, data from pgboss.job, generate_series(1, 9999)',
    );
    const [known, unknown] = [await ask('ada', '192.0.2.2'), await ask('nobody', '192.0.2.3')];
    expect(known.body.errors[0].extensions).toEqual({ code: 'UNAVAILABLE', retryAfter: 60 });
    expect(unknown.body).toEqual(known.body);
    await shop.sql('delete from pgboss.job where id in (select id from pgboss.job limit 1)');
    expect((await ask('nobody', '192.0.2.4')).body.errors).toBeUndefined();
    expect(await waiting()).toHaveLength(10_000);
  });
});

test('during shutdown, a silent mail server is aborted after 3 s, and another worker sends the mail at once', async () => {
  const silent = await silentServer();
  const mailWorker = mailWorkerFor(silent.url, 60_000);
  await shop.makeUser({ username: 'ada' });
  await ask('ada');
  const round = deliver(mailWorker);
  try {
    await until(async () => (await waiting())[0]?.['attempts'] === 1, 'a mail being sent');
    await mailWorker.stop();
    expect(await smtpServer.deliver()).toHaveLength(1);
  } finally {
    silent.close();
    await round;
  }
});

/** Starts a server that accepts connections and sends nothing. */
async function silentServer(): Promise<{ url: string; close(): void }> {
  const sockets: Socket[] = [];
  const server = createServer(
    (socket) => void sockets.push(socket.on('error', () => undefined)),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `smtp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function refusing(responseCode: number) {
  return (_address: unknown, _session: unknown, callback: (error: Error) => void) =>
    callback(Object.assign(new Error('ada@shop.example is not wanted'), { responseCode }));
}

function refusingConnection(responseCode: number) {
  return (_session: unknown, callback: (error: Error) => void) =>
    callback(Object.assign(new Error('not now'), { responseCode }));
}

function refusingData(responseCode: number) {
  return (stream: NodeJS.ReadableStream, _session: unknown, callback: (error: Error) => void) => {
    stream
      .resume()
      .once('end', () =>
        callback(Object.assign(new Error('ada@shop.example is not wanted'), { responseCode })),
      );
  };
}
