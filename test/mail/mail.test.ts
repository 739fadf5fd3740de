import { describe, expect, test } from '../support/jest.ts';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import type { SMTPServerOptions } from 'smtp-server';
import pino from 'pino';
import { mailTemplates } from '../../src/features.ts';
import { MAIL_QUEUE } from '../../src/features/mail/mail.service.ts';
import { jobsOf } from '../../src/database/jobs.ts';
import { MailWorker } from '../../src/features/mail/mail-worker.ts';
import { openTransport } from '../../src/features/mail/transport.ts';
import { TestSmtpServer, tokenIn, useSmtpServer } from '../support/smtp-server.ts';
import { withDirectory } from '../support/directories.ts';
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
/** Enqueues 10,000 mails. */
const fill = () =>
  shop.sql(
    `insert into pgboss.job (name, policy, singleton_key, data, start_after) select 'mail', 'exclusive', n::text, '{}', now() + interval '1 hour' from generate_series(1, 10000) n`,
  );
const events = (name: string) =>
  shop.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === name);
const mailWorkerFor = (smtpUrl: string, timeoutMs?: number) =>
  new MailWorker(
    mailTemplates,
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

  test('concurrent mail workers send each mail once', async () => {
    for (const username of ['ada', 'bea', 'cat', 'dan', 'eve', 'fay']) {
      await shop.makeUser({ username });
      await ask(username);
    }
    await Promise.all(
      [smtpServer.mailWorker(), smtpServer.mailWorker(), smtpServer.mailWorker()].map(deliver),
    );
    expect(smtpServer.received.map(({ to }) => to.charAt(0)).toSorted()).toEqual([
      'a',
      'b',
      'c',
      'd',
      'e',
      'f',
    ]);
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

  test('a mail claimed by another worker meanwhile is neither removed nor retried by the first', async () => {
    await ask('nobody');
    const [slow] = await claim();
    await passTime(shop, 301_000);
    await expireJobs(shop);
    await passTime(shop, 20_000);
    await claim();
    if (!slow) throw new Error('there was nothing to claim');
    const library = await jobsOf(shop.context());
    await library.deleteJob(MAIL_QUEUE, slow);
    await library.fail(MAIL_QUEUE, slow);
    expect(await waiting()).toEqual([{ kind: 'password-reset', addressee: 'nobody', attempts: 2 }]);
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
    for (await deliver(mailWorker); (await waiting()).length > 0; await deliver(mailWorker)) {
      const delay = await retryDelay();
      await passTime(shop, delay);
      elapsed += delay;
    }
    expect(elapsed).toBeGreaterThan(0.95 * DAY);
    expect(elapsed).toBeLessThan(1.05 * DAY);
    expect(events('mail.dead')).toMatchObject([{ level: 50, attempt: 32 }]);
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

  test.each([450, 550])(
    '%i for one of two users with the same address in another spelling: the other gets one mail',
    async (code) => {
      const onRcptTo: SMTPServerOptions['onRcptTo'] = ({ address }, _session, callback) =>
        callback(
          address.startsWith('Both')
            ? Object.assign(new Error('not wanted'), { responseCode: code })
            : null,
        );
      const failing = await new TestSmtpServer(shop, { onRcptTo }).open();
      try {
        await shop.makeUser({ username: 'ada', email: 'Both@shop.example' });
        await shop.makeUser({ username: 'bea', email: 'both@shop.example' });
        await ask('both@shop.example');
        expect(await failing.deliver()).toMatchObject([
          { to: 'both@shop.example', text: expect.stringContaining('of bea.') },
        ]);
        await passTime(shop, 20_000);
        expect(await failing.deliver()).toEqual([]);
        expect(events('mail.sent')).toHaveLength(1);
      } finally {
        await failing.close();
      }
    },
  );

  test('a silent server times out, and blocks nothing else', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) =>
      sockets.push(socket.on('error', () => undefined)),
    ).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    try {
      await shop.makeUser({ username: 'ada' });
      await ask('ada');
      await deliver(
        mailWorkerFor(`smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`, 100),
      );
      expect(await waiting()).toMatchObject([{ attempts: 1 }]);
      expect(events('mail.retry')).toHaveLength(1);
      expect((await ask('bea')).body.data).toEqual({ requestPasswordReset: true });
    } finally {
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  test('failed mails do not count for the limit of the recipient', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const mailWorker = mailWorkerFor(`smtp://127.0.0.1:${await freePort()}`);
    for (let attempt = 0; attempt < 4; attempt++, await passTime(shop, HOUR))
      await deliver(mailWorker);
    expect(await smtpServer.deliver()).toHaveLength(1);
  });
});

describe('limits', () => {
  const RESET =
    'mutation ($token: String!) { resetPassword(token: $token, new: "another good password") { username } }';

  test('a mail over the limit creates no token, and the received one stays valid', async () => {
    await shop.makeUser({ username: 'ada' });
    let last = '';
    for (let count = 0; count < 3; count++) {
      await ask('ada');
      const [arrived] = await smtpServer.deliver();
      if (arrived) last = tokenIn(arrived);
    }
    expect(events('mail.limit')).toHaveLength(1);
    expect((await shop.graphql(RESET, { token: last })).body.data).toEqual({
      resetPassword: { username: 'ada' },
    });
  });

  test('the mail about a changed password is sent despite the limit, and while 10,000 wait', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 2; count++)
      await ask('ada').then(() => (count === 0 ? smtpServer.deliver() : undefined));
    const [arrived] = await smtpServer.deliver();
    await fill();
    await shop.graphql(RESET, { token: arrived ? tokenIn(arrived) : '' });
    expect(await smtpServer.deliver()).toMatchObject([
      { to: 'ada@shop.example', subject: 'Your password was changed' },
    ]);
  });

  test('B9 a recipient gets a maximum of mails per hour, from any network, by name or address; the response does not reveal it', async () => {
    await shop.makeUser({ username: 'ada' });
    let arrived = 0;
    const answers = new Set<string>();
    for (const [index, recipient] of [
      'ada',
      'ada@shop.example',
      'ada',
      'ADA@shop.example',
    ].entries()) {
      answers.add((await ask(recipient, `192.0.2.${index + 1}`)).text);
      arrived += (await smtpServer.deliver()).length;
    }
    expect([arrived, [...answers]]).toEqual([2, ['{"data":{"requestPasswordReset":true}}\n']]);
    expect(events('mail.limit')).toHaveLength(2);
  });

  test('B9 a recipient of several accounts gets no more, by name or by address', async () => {
    for (const username of ['ada', 'bea'])
      await shop.makeUser({ username, email: 'family@shop.example' });
    let arrived = 0;
    for (const recipient of ['ada', 'family@shop.example', 'bea', 'FAMILY@shop.example']) {
      await ask(recipient);
      arrived += (await smtpServer.deliver()).length;
    }
    expect(arrived).toBe(2);
  });

  test('B9 mails of one kind do not count for another kind', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 3; count++) {
      await shop.graphql(
        'mutation { register(input: { email: "ada@shop.example" }) }',
        {},
        { headers: { 'X-Forwarded-For': '192.0.2.7' } },
      );
      await smtpServer.deliver();
    }
    expect(events('mail.limit')).toHaveLength(1);
    await ask('ada');
    expect(await smtpServer.deliver()).toHaveLength(1);
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

  test('B9 an IPv6 network counts as one', async () => {
    for (let count = 0; count < 20; count++) await ask('ada', `2001:db8::${count}`);
    expect((await ask('ada', '2001:db8::ffff')).body.errors[0].extensions.code).toBe(
      'RATE_LIMITED',
    );
  });

  test('B9 while 10,000 wait, more are rejected as UNAVAILABLE, and not stored', async () => {
    await fill();
    expect((await ask('ada')).body.errors[0].extensions).toEqual({
      code: 'UNAVAILABLE',
      retryAfter: 60,
    });
    expect(await shop.sql('select count(*)::int as count from pgboss.job')).toEqual([
      { count: 10_000 },
    ]);
  });
});

test('the file transport writes many mails concurrently, beside a dangling link', async () => {
  await withDirectory(async (dataDir) => {
    await mkdir(join(dataDir, 'mail'));
    await symlink('nowhere', join(dataDir, 'mail', 'gone'));
    const files = openTransport(
      { smtpUrl: undefined, mailFrom: 'shop@shop.example', dataDir },
      pino({ level: 'silent' }),
    );
    const message = { to: 'ada@shop.example', subject: 'Hello', text: 'Hello' };
    await Promise.all(Array.from({ length: 20 }, () => files.send(message)));
    expect(
      (await readdir(join(dataDir, 'mail'))).filter((name) => name.endsWith('.txt')),
    ).toHaveLength(20);
  });
});

test('during shutdown, the mails being sent are finished, and no others are begun', async () => {
  const pending: (() => void)[] = [];
  const slow = await new TestSmtpServer(shop, {
    onMailFrom: (_address, _session, callback) => void pending.push(callback),
  }).open();
  try {
    for (const username of ['ada', 'bea', 'cat', 'dan', 'eve']) {
      await shop.makeUser({ username });
      await ask(username);
    }
    const mailWorker = slow.mailWorker();
    const round = deliver(mailWorker);
    await until(() => pending.length === 4, 'four mails at once');
    let isStopped = false;
    const stopped = mailWorker.stop().then(() => (isStopped = true));
    // Without waiting, stop would resolve before the database responds.
    await shop.sql('select 1');
    expect(isStopped).toBe(false);
    for (const release of pending) release();
    await Promise.all([round, stopped]);
    expect([slow.received.length, await waiting()]).toEqual([
      4,
      [expect.objectContaining({ attempts: 0 })],
    ]);
    expect(tokenIn(slow.received[0] ?? { to: '', subject: '', text: '' })).not.toBe('');
  } finally {
    await slow.close();
  }
});

test('during shutdown, a silent mail server is aborted after 3 s, and another worker sends the mail at once', async () => {
  const sockets: Socket[] = [];
  const silent = createServer(
    (socket) => void sockets.push(socket.on('error', () => undefined)),
  ).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const mailWorker = mailWorkerFor(
    `smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    60_000,
  );
  await shop.makeUser({ username: 'ada' });
  await ask('ada');
  const round = deliver(mailWorker);
  try {
    await until(async () => (await waiting())[0]?.['attempts'] === 1, 'a mail being sent');
    await mailWorker.stop();
    expect(await smtpServer.deliver()).toHaveLength(1);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
    await round;
  }
});

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
