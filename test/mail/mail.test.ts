import { describe, expect, test } from '../support/jest.ts';
import { mkdir, readdir, symlink } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { once } from 'node:events';
import type { SMTPServerOptions } from 'smtp-server';
import pino from 'pino';
import { features, letters } from '../../src/features.ts';
import * as mail from '../../src/features/mail/mail.service.ts';
import { Postman } from '../../src/features/mail/mail-worker.ts';
import { openTransport } from '../../src/features/mail/transport.ts';
import { PostOffice, tokenIn, usePostOffice } from '../support/post-office.ts';
import { withDirectory } from '../support/directories.ts';
import { freePort } from '../support/process.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const SETTINGS = { PASSWORD_RESET: 'on', REGISTRATION: 'on', SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'shop@shop.example' };
const shop = useShop({ ...SETTINGS, MAILS_PER_RECIPIENT: '2', MAIL_REQUESTS_PER_ADDRESS: '20', TRUST_PROXY: '127.0.0.1' });
const office = usePostOffice(shop);

const REQUEST = 'mutation ($user: String!) { requestPasswordReset(user: $user) }';
const DAY = 86_400_000;
const ask = (user: string, from = '192.0.2.1') => shop.graphql(REQUEST, { user }, { headers: { 'X-Forwarded-For': from } });
const waiting = () => shop.sql('select kind, asked, attempts from mail');
const pauseOf = async () => {
  const [row] = await shop.sql('select due_at from mail');
  return new Date(String(row?.['due_at'])).getTime() - shop.now().getTime();
};
const events = (name: string) =>
  shop.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ event }) => event === name);
const postmanTo = (smtpUrl: string, patience?: number) =>
  new Postman(letters, openTransport({ smtpUrl, mailFrom: 'shop@shop.example', dataDir: '' }, pino({ level: 'silent' })), patience);
const deliver = (postman: Postman) => postman.deliver(() => shop.workerContext());

describe('a mail that leaves', () => {
  test('is from MAIL_FROM, to one address, plain text that no machine answers, and is forgotten', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const [arrived] = await office.deliver();
    expect(arrived?.raw).toMatch(/^From: Shop <shop@shop\.example>\r$/m);
    expect(arrived?.raw).toMatch(/^To: ada@shop\.example\r$/m);
    expect(arrived?.raw).toMatch(/^Content-Type: text\/plain; charset=utf-8/m);
    expect(arrived?.raw).toMatch(/^Auto-Submitted: auto-generated\r$/m);
    expect(await waiting()).toEqual([]);
    expect(events('mail.sent')).toHaveLength(1);
  });

  test('an address that reads like several is one', async () => {
    await shop.makeUser({ username: 'ada', email: 'a,b<c>@shop.example' });
    await ask('ada');
    await office.deliver();
    for (const { to } of office.arrived) expect(to).not.toBe('a');
    expect(events('mail.sent').length + events('mail.refused').length + events('mail.later').length).toBe(1);
  });

  test('two postmen at once bring it once', async () => {
    for (const username of ['ada', 'bea', 'cat', 'dan', 'eve', 'fay']) {
      await shop.makeUser({ username });
      await ask(username);
    }
    await Promise.all([office.postman(), office.postman(), office.postman()].map(deliver));
    expect(office.arrived.map(({ to }) => to.charAt(0)).toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
  });

  test('what waits when the process dies in the middle is brought by another, five minutes later', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    expect(await mail.claim(shop.context(), 1)).toHaveLength(1);
    expect(await office.deliver()).toEqual([]);
    shop.pass(5 * 60_000);
    expect(await office.deliver()).toHaveLength(1);
  });

  test('what was taken by another meanwhile is neither removed nor postponed by who had it before', async () => {
    await ask('nobody');
    const [slow] = await mail.claim(shop.context(), 1);
    shop.pass(5 * 60_000);
    await mail.claim(shop.context(), 1);
    if (!slow) throw new Error('there was nothing to claim');
    await mail.remove(shop.context(), slow);
    await mail.postpone(shop.context(), slow);
    expect(await waiting()).toEqual([{ kind: 'password-reset', asked: 'nobody', attempts: 2 }]);
  });
});

describe('a mail server that fails', () => {
  test('refused connections: again after 10 s, 20 s, 40 s and so on, up to an hour; then a token that is new', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const postman = postmanTo(`smtp://127.0.0.1:${await freePort()}`);
    for (let pause = 10_000; pause < DAY / 20; pause *= 2) {
      await deliver(postman);
      const due = await pauseOf();
      const most = Math.min(pause, 3_600_000);
      expect(due).toBeLessThanOrEqual(most);
      expect(due).toBeGreaterThan(most * 0.7);
      shop.pass(most);
    }
    expect(events('mail.later').at(0)).toMatchObject({ level: 40, kind: 'password-reset', attempt: 1, reason: 'ESOCKET' });
    expect(await office.deliver()).toHaveLength(1);
    expect(await waiting()).toEqual([]);
  });

  test('after a day nobody tries again, and the log tells', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    shop.pass(DAY);
    await deliver(postmanTo(`smtp://127.0.0.1:${await freePort()}`));
    expect(await waiting()).toEqual([]);
    expect(events('mail.dead')).toMatchObject([{ level: 50 }]);
  });

  test('where nobody delivers at all, the sweep deletes it after a day', async () => {
    await ask('ada');
    shop.pass(DAY - 1_000);
    for (const feature of features) await feature.sweep?.(shop.context());
    expect(await waiting()).toHaveLength(1);
    shop.pass(1_000);
    for (const feature of features) await feature.sweep?.(shop.context());
    expect(await waiting()).toEqual([]);
  });

  test.each([
    ['450 for the recipient', { onRcptTo: refusing(450) }, true],
    ['550 for the recipient', { onRcptTo: refusing(550) }, false],
    ['452 for the text', { onData: refusingData(452) }, true],
    ['554 for the text', { onData: refusingData(554) }, false],
    ['550 for the sender, which is a mistake of ours', { onMailFrom: refusing(550) }, true],
    ['554 for the connection', { onConnect: refusingConnection(554) }, true],
  ])('%s: what can get better is tried again, what cannot is not, and the log has no address', async (_what, options, again) => {
    const failing = await new PostOffice(shop, options).open();
    try {
      await shop.makeUser({ username: 'ada' });
      await ask('ada');
      await failing.deliver();
      expect(await waiting()).toHaveLength(again ? 1 : 0);
      expect(events(again ? 'mail.later' : 'mail.refused')).toHaveLength(1);
      for (const line of shop.logged) expect(line).not.toContain('ada@shop.example');
      shop.pass(10_000);
      expect(await office.deliver()).toHaveLength(again ? 1 : 0);
    } finally {
      await failing.close();
    }
  });

  test.each([450, 550])('%i for one of two who share an address as they write it: the other has a mail, and once', async (code) => {
    const onRcptTo: SMTPServerOptions['onRcptTo'] = ({ address }, _session, callback) =>
      callback(address.startsWith('Both') ? Object.assign(new Error('not wanted'), { responseCode: code }) : null);
    const failing = await new PostOffice(shop, { onRcptTo }).open();
    try {
      await shop.makeUser({ username: 'ada', email: 'Both@shop.example' });
      await shop.makeUser({ username: 'bea', email: 'both@shop.example' });
      await ask('both@shop.example');
      expect(await failing.deliver()).toMatchObject([{ to: 'both@shop.example', text: expect.stringContaining('of bea.') }]);
      shop.pass(10_000);
      expect(await failing.deliver()).toEqual([]);
      expect(events('mail.sent')).toHaveLength(1);
    } finally {
      await failing.close();
    }
  });

  test('one that says nothing is given up after its time, and holds up nothing else', async () => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    try {
      await shop.makeUser({ username: 'ada' });
      await ask('ada');
      await deliver(postmanTo(`smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`, 100));
      expect(await waiting()).toMatchObject([{ attempts: 1 }]);
      expect(events('mail.later')).toHaveLength(1);
      expect((await ask('bea')).body.data).toEqual({ requestPasswordReset: true });
    } finally {
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  });

  test('what failed is not counted as received: the recipient still gets as many as may be', async () => {
    await shop.makeUser({ username: 'ada' });
    await ask('ada');
    const postman = postmanTo(`smtp://127.0.0.1:${await freePort()}`);
    for (let attempt = 0; attempt < 4; attempt++, shop.pass(3_600_000)) await deliver(postman);
    expect(await office.deliver()).toHaveLength(1);
  });
});

describe('too many', () => {
  const RESET = 'mutation ($token: String!) { resetPassword(token: $token, new: "another good password") { username } }';

  test('what is one too many makes no token: the one that has arrived stays good', async () => {
    await shop.makeUser({ username: 'ada' });
    let last = '';
    for (let count = 0; count < 3; count++) {
      await ask('ada');
      const [arrived] = await office.deliver();
      if (arrived) last = tokenIn(arrived);
    }
    expect(events('mail.limit')).toHaveLength(1);
    expect((await shop.graphql(RESET, { token: last })).body.data).toEqual({ resetPassword: { username: 'ada' } });
  });

  test('that a password was set is told to who has had enough mails for now, and where 10,000 wait', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 2; count++) await ask('ada').then(() => (count === 0 ? office.deliver() : undefined));
    const [arrived] = await office.deliver();
    await shop.sql(
      `insert into mail (kind, asked, created_at, due_at) select 'password-reset', 'n' || n, now(), now() + interval '1 hour' from generate_series(1, 10000) n`,
    );
    await shop.graphql(RESET, { token: arrived ? tokenIn(arrived) : '' });
    expect(await office.deliver()).toMatchObject([{ to: 'ada@shop.example', subject: 'Your password was changed' }]);
  });

  test('B9 a recipient gets MAILS_PER_RECIPIENT within an hour, whoever asks, by name or by address; the answer does not tell', async () => {
    await shop.makeUser({ username: 'ada' });
    let arrived = 0;
    const answers = new Set<string>();
    for (const [index, asked] of ['ada', 'ada@shop.example', 'ada', 'ADA@shop.example'].entries()) {
      answers.add((await ask(asked, `192.0.2.${index + 1}`)).text);
      arrived += (await office.deliver()).length;
    }
    expect([arrived, [...answers]]).toEqual([2, ['{"data":{"requestPasswordReset":true}}\n']]);
    expect(events('mail.limit')).toHaveLength(2);
  });

  test('B9 a recipient of several accounts gets no more, whether one is asked for by its name or all by their address', async () => {
    for (const username of ['ada', 'bea']) await shop.makeUser({ username, email: 'family@shop.example' });
    let arrived = 0;
    for (const asked of ['ada', 'family@shop.example', 'bea', 'FAMILY@shop.example']) {
      await ask(asked);
      arrived += (await office.deliver()).length;
    }
    expect(arrived).toBe(2);
  });

  test('B9 mails of one kind keep no mail of another kind away', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 3; count++) {
      await shop.graphql(
        'mutation { register(input: { email: "ada@shop.example" }) }',
        {},
        { headers: { 'X-Forwarded-For': '192.0.2.7' } },
      );
      await office.deliver();
    }
    expect(events('mail.limit')).toHaveLength(1);
    await ask('ada');
    expect(await office.deliver()).toHaveLength(1);
  });

  test('B9 a network asks MAIL_REQUESTS_PER_ADDRESS times within an hour, for whomever; then RATE_LIMITED, the same for known and unknown', async () => {
    await shop.makeUser({ username: 'ada' });
    for (let count = 0; count < 20; count++) await ask(`nobody${count}`, '192.0.2.9');
    const [known, unknown] = [await ask('ada', '192.0.2.9'), await ask('nobody', '192.0.2.9')];
    for (const { body } of [known, unknown]) {
      expect(body.errors[0].extensions).toEqual({ code: 'RATE_LIMITED', retryAfter: expect.any(Number) });
    }
    expect((await ask('ada', '192.0.2.10')).body.errors).toBeUndefined();
    expect(events('mail.throttle')).toHaveLength(2);
  });

  test('B9 a network of IPv6 counts as one', async () => {
    for (let count = 0; count < 20; count++) await ask('ada', `2001:db8::${count}`);
    expect((await ask('ada', '2001:db8::ffff')).body.errors[0].extensions.code).toBe('RATE_LIMITED');
  });

  test('B9 where 10,000 wait, more are refused as UNAVAILABLE, and stored are no more', async () => {
    await shop.sql(
      `insert into mail (kind, asked, created_at, due_at) select 'password-reset', 'n' || n, now(), now() from generate_series(1, 10000) n`,
    );
    expect((await ask('ada')).body.errors[0].extensions).toEqual({ code: 'UNAVAILABLE', retryAfter: 60 });
    expect(await shop.sql('select count(*)::int as count from mail')).toEqual([{ count: 10_000 }]);
  });
});

test('where mails become files, many do at once, beside what is gone again', async () => {
  await withDirectory(async (dataDir) => {
    await mkdir(join(dataDir, 'mail'));
    await symlink('nowhere', join(dataDir, 'mail', 'gone'));
    const files = openTransport({ smtpUrl: undefined, mailFrom: 'shop@shop.example', dataDir }, pino({ level: 'silent' }));
    const letter = { to: 'ada@shop.example', subject: 'Hello', text: 'Hello' };
    await Promise.all(Array.from({ length: 20 }, () => files.send(letter)));
    expect((await readdir(join(dataDir, 'mail'))).filter((name) => name.endsWith('.txt'))).toHaveLength(20);
  });
});

test('on the way out, the mail that is being sent is waited for, and no other is begun', async () => {
  const held: (() => void)[] = [];
  const slow = await new PostOffice(shop, { onMailFrom: (_address, _session, callback) => void held.push(callback) }).open();
  try {
    for (const username of ['ada', 'bea', 'cat', 'dan', 'eve']) {
      await shop.makeUser({ username });
      await ask(username);
    }
    const postman = slow.postman();
    const round = deliver(postman);
    await until(() => held.length === 4, 'four mails at once');
    let isOut = false;
    const out = postman.stop().then(() => (isOut = true));
    // Whoever does not wait would be out before the database has answered.
    await shop.sql('select 1');
    expect(isOut).toBe(false);
    for (const letGo of held) letGo();
    await Promise.all([round, out]);
    expect([slow.arrived.length, await waiting()]).toEqual([4, [expect.objectContaining({ attempts: 0 })]]);
    expect(tokenIn(slow.arrived[0] ?? { to: '', subject: '', text: '' })).not.toBe('');
  } finally {
    await slow.close();
  }
});

test('on the way out, a mail server that says nothing is not waited for: another sends the mail', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined))).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const postman = postmanTo(`smtp://127.0.0.1:${(silent.address() as AddressInfo).port}`, 60_000);
  await shop.makeUser({ username: 'ada' });
  await ask('ada');
  let isOver = false;
  const round = deliver(postman).finally(() => (isOver = true));
  try {
    await until(async () => (await waiting())[0]?.['attempts'] === 1, 'one under way');
    await postman.stop();
    expect(isOver).toBe(false);
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
  return (_session: unknown, callback: (error: Error) => void) => callback(Object.assign(new Error('not now'), { responseCode }));
}

function refusingData(responseCode: number) {
  return (stream: NodeJS.ReadableStream, _session: unknown, callback: (error: Error) => void) => {
    stream.resume().once('end', () => callback(Object.assign(new Error('ada@shop.example is not wanted'), { responseCode })));
  };
}
