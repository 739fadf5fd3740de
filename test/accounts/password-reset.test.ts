import { describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import { features, mailWriters } from '../../src/features.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { tokenIn, useSmtpServer, type ReceivedMail } from '../support/smtp-server.ts';
import { observeHashing } from '../support/hashes.ts';
import { openSession } from '../support/logins.ts';
import { recordStatements } from '../support/statements.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const SETTINGS = {
  PASSWORD_RESET: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
};
const shop = useShop({ ...SETTINGS, LOG_LEVEL: 'debug' });
const linkingShop = useShop({ ...SETTINGS, ACCOUNT_URL: 'https://shop.example/account' });
const smtpServer = useSmtpServer(shop);

const REQUEST = 'mutation ($user: String!) { requestPasswordReset(user: $user) }';
const RESET =
  'mutation ($token: String!, $new: String!) { resetPassword(token: $token, new: $new) { username } }';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';
const NEW_PASSWORD = 'another good password';
const HOUR = 3_600_000;

describe('requestPasswordReset', () => {
  test.each(['ada', 'ada@shop.example', 'ADA@Shop.Example'])(
    '%s sends a mail with the username to the stored address',
    async (identifier) => {
      await shop.makeUser({ username: 'ada', email: 'Ada@shop.example' });
      expect((await request(identifier)).body).toEqual({ data: { requestPasswordReset: true } });
      const mails = await smtpServer.deliver();
      expect(mails).toMatchObject([
        {
          to: 'Ada@shop.example',
          subject: 'Set a new password',
          text: expect.stringContaining('password of ada.'),
        },
      ]);
      expect(tokenIn(mails[0] as ReceivedMail)).toMatch(/^[\w-]{43}$/);
    },
  );

  test('E7 the response and the statements are the same for every user and address', async () => {
    await shop.makeUser({ username: 'ada' });
    await shop.makeUser({ username: 'zoe', disabled: true });
    await shop.makeUser({ username: 'max', password: null });
    await shop.makeUser({ username: 'eve', email: null });
    const identifiers = [
      'ada',
      'nobody',
      'zoe',
      'zoe@shop.example',
      'max',
      'eve',
      'ada@shop.example',
      'Ada',
      'nobody@shop.example',
      'ı@shop.example',
      `'; --`,
    ];
    const answers = new Set<string>();
    const costs = new Set<string>();
    for (const user of identifiers) {
      const { answer, statements } = await recordStatements(() => request(user));
      answers.add(comparable(answer));
      costs.add(JSON.stringify(statements));
    }
    expect([...answers]).toEqual([
      expect.stringContaining('{"data":{"requestPasswordReset":true}}'),
    ]);
    expect([...costs]).toEqual([expect.stringContaining('INSERT INTO pgboss.job_common')]);
    // One mail for the forms of the name, and one for the address. Users who are disabled, or have
    // no password or address, get none, and no token is created.
    expect((await smtpServer.deliver()).map(({ to }) => to)).toEqual([
      'ada@shop.example',
      'ada@shop.example',
    ]);
    expect(
      await shop.sql('select username from password_reset join "user" on pk = user_pk'),
    ).toEqual([{ username: 'ada' }, { username: 'ada' }]);
  });

  test('E7 an address is that of its owner, even if it is the username of another user', async () => {
    const address = 'ada@shop.example';
    await shop.makeUser({ username: address, email: 'eve@shop.example' });
    await shop.makeUser({ username: 'ada', email: address });
    await request(address);
    expect(await smtpServer.deliver()).toMatchObject([
      { to: address, text: expect.stringContaining('password of ada.') },
    ]);
  });

  test('users who share an address get a mail by name only', async () => {
    for (const username of ['ada', 'bea'])
      await shop.makeUser({ username, email: 'both@shop.example' });
    await request('both@shop.example');
    expect(await smtpServer.deliver()).toEqual([]);
    await request('bea');
    expect(await smtpServer.deliver()).toMatchObject([{ to: 'both@shop.example' }]);
  });

  test('E7 any change of the password invalidates the token mailed before', async () => {
    const ada = await shop.makeUser({ username: 'ada' });
    for (const change of [
      () => accounts.setPassword(shop.context(), 'ada', 'set by the operator'),
      () => shop.graphql(CHANGE, { current: 'set by the operator', new: PASSWORD }, { as: ada }),
    ]) {
      await request('ada');
      const [mail] = await smtpServer.deliver();
      expect(await change()).not.toHaveProperty('body.errors');
      expect((await reset(tokenIn(mail as ReceivedMail))).body.errors).toMatchObject([
        { extensions: { code: 'BAD_USER_INPUT' } },
      ]);
    }
    expect(await shop.sql('select * from password_reset')).toEqual([]);
  });

  test.each(['', 'x'.repeat(255), 'a\0b', 'a\ud800'])('%j is rejected as input', async (user) => {
    expect((await request(user)).body.errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'user' }],
    });
  });
});

describe('resetPassword', () => {
  test('it sets the password, ends all sessions and API keys, and does not log in', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const [own, other] = [await openSession(shop, user), await openSession(shop, user)];
    const key = await newApiKey(user);
    const bystander = await openSession(shop);
    const token = await tokenFor(user);
    expect(await isSignedIn({ token: key })).toBe(true);
    const answer = await reset(token, { sessionKey: own.key });
    expect(answer.body).toEqual({ data: { resetPassword: { username: 'ada' } } });
    expect([
      await isSignedIn({ sessionKey: own.key }),
      await isSignedIn({ sessionKey: other.key }),
      await isSignedIn({ token: key }),
    ]).toEqual([false, false, false]);
    expect(await isSignedIn({ sessionKey: bystander.key })).toBe(true);
    expect([await statusOfLogin(PASSWORD), await statusOfLogin(NEW_PASSWORD)]).toEqual([401, 200]);
  });

  test('the rest of the operation is unauthenticated if it came in a session that has ended', async () => {
    const user = await shop.makeUser();
    const { key } = await openSession(shop, user);
    const token = await tokenFor(user);
    const query = `mutation ($token: String!, $new: String!) { resetPassword(token: $token, new: $new) { id } addItem(itemId: "lamp") { id } }`;
    const { body } = await shop.graphql(query, { token, new: NEW_PASSWORD }, { sessionKey: key });
    expect([body.data, body.errors[0].extensions.code]).toEqual([null, 'UNAUTHENTICATED']);
  });

  test.each<[string, (token: string, user: User) => Promise<string>]>([
    ['made up', async () => 'A'.repeat(43)],
    ['empty', async () => ''],
    [
      'changed in its last character',
      async (token) => token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A'),
    ],
    [
      'used',
      async (token) => {
        await reset(token, {}, 'the first new password');
        return token;
      },
    ],
    [
      'mailed before one that was used',
      async (token, user) => {
        await reset(await tokenFor(user), {}, 'the first new password');
        return token;
      },
    ],
    [
      'mailed after one that was used',
      async (token, user) => {
        const later = await tokenFor(user);
        await reset(token, {}, 'the first new password');
        return later;
      },
    ],
    [
      'older than an hour',
      async (token) => {
        shop.advanceClock(HOUR);
        return token;
      },
    ],
    [
      'of a user disabled since',
      async (token, { username }) => {
        await accounts.setDisabled(shop.context(), username, true);
        return token;
      },
    ],
    [
      'of a user deleted since',
      async (token, { pk }) => {
        await shop.sql(`delete from "user" where pk = ${pk}`);
        return token;
      },
    ],
    [
      'the hash of a token',
      async () =>
        String(
          (await shop.sql("select encode(token_hash, 'hex') as hash from password_reset"))[0]?.[
            'hash'
          ],
        ),
    ],
    ['the pk of its user', async (_token, { pk }) => String(pk)],
  ])(
    'E7 a token that is %s sets nothing, gets the same error, and causes no hashing',
    async (_what, change) => {
      const user = await shop.makeUser({ username: 'ada' });
      const token = await change(await tokenFor(user), user);
      const { answer, tasks } = await observeHashing(() => reset(token));
      expect([tasks, answer.status, answer.body]).toEqual([
        0,
        200,
        {
          data: null,
          errors: [
            expect.objectContaining({
              message: 'token: is invalid, used or expired',
              extensions: {
                code: 'BAD_USER_INPUT',
                fields: [{ field: 'token', message: 'is invalid, used or expired' }],
              },
            }),
          ],
        },
      ]);
      expect(await statusOfLogin(NEW_PASSWORD)).toBe(401);
    },
  );

  test('E7 a stranger voids no token: each one of an hour stays valid until one is used', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const tokens: string[] = [];
    for (let time = 0; time < 4; time++) tokens.push(await tokenFor(user));
    expect(new Set(tokens).size).toBe(4);
    expect((await reset(tokens[0] ?? '')).body.data).toEqual({
      resetPassword: { username: 'ada' },
    });
    expect(await shop.sql('select * from password_reset')).toEqual([]);
  });

  test('E7 each token has its own hour', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const first = await tokenFor(user);
    shop.advanceClock(HOUR / 2);
    const second = await tokenFor(user);
    shop.advanceClock(HOUR / 2);
    expect((await reset(first)).body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
    expect((await reset(second)).body.errors).toBeUndefined();
  });

  test('E7 of concurrent resets with two tokens of a user, each sent twice, one sets its password', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const tokens = [await tokenFor(user), await tokenFor(user)];
    const answers = await Promise.all([...tokens, ...tokens].map((token) => reset(token)));
    expect(answers.filter(({ body }) => body.errors === undefined)).toHaveLength(1);
    expect(answers.flatMap(({ body }) => body.errors?.[0].extensions.code ?? [])).toEqual(
      Array(3).fill('BAD_USER_INPUT'),
    );
  });

  test('a concurrent login with the old password leaves no session', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const token = await tokenFor(user);
    const logins = Array.from({ length: 6 }, () =>
      shop.rest('POST', '/session/login', { json: { username: 'ada', password: PASSWORD } }),
    );
    await Promise.all([reset(token), ...logins]);
    expect(await shop.sql('select sid from session')).toEqual([]);
  });

  test.each(['short', 'x'.repeat(73)])(
    '%s is not a password, and the token stays valid',
    async (password) => {
      const token = await tokenFor(await shop.makeUser({ username: 'ada' }));
      expect((await reset(token, {}, password)).body.errors[0].extensions).toMatchObject({
        code: 'BAD_USER_INPUT',
        fields: [{ field: 'new' }],
      });
      expect((await reset(token)).body.errors).toBeUndefined();
    },
  );

  test('the sweep deletes expired tokens', async () => {
    await tokenFor(await shop.makeUser());
    shop.advanceClock(HOUR);
    for (const feature of features) await feature.sweep?.(shop.context());
    expect(await shop.sql('select * from password_reset')).toEqual([]);
  });
});

test('X2 a token is in no table, no response and no log line', async () => {
  await shop.makeUser({ username: 'ada' });
  await request('ada');
  const waiting = await dumpOfAllTables();
  const [mail] = await smtpServer.deliver();
  const token = tokenIn(mail as ReceivedMail);
  const rejected = await reset(`${token}x`);
  const stored = await dumpOfAllTables();
  const accepted = await reset(token);
  for (const text of [waiting, stored, rejected.text, accepted.text, ...shop.logged])
    expect(text).not.toContain(token);
  const events = shop.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .map(({ event }) => event);
  expect(events).toContain('mail.sent');
  expect(events).toContain('auth.mailed_token');
});

test('with ACCOUNT_URL the mail has a link with the token in the fragment, which no server receives', async () => {
  await shop.makeUser({ username: 'ada' });
  const mail = await mailWriters['password-reset']?.(linkingShop.workerContext(), 'ada');
  expect(mail?.text).toMatch(/^https:\/\/shop\.example\/account#reset=[\w-]{43}$/m);
});

function request(user: string): Promise<Answer> {
  return shop.graphql(REQUEST, { user });
}

function reset(
  token: string,
  credentials: RequestOptions = {},
  password = NEW_PASSWORD,
): Promise<Answer> {
  return shop.graphql(RESET, { token, new: password }, credentials);
}

async function tokenFor({ username }: User): Promise<string> {
  await request(username);
  return tokenIn((await smtpServer.deliver())[0] as ReceivedMail);
}

async function newApiKey(as: User): Promise<string> {
  const { body } = await shop.graphql(
    'mutation { createApiKey(input: { name: "till", scopes: [] }) { key } }',
    {},
    { as },
  );
  return body.data.createApiKey.key;
}

async function isSignedIn(credentials: RequestOptions): Promise<boolean> {
  return (await shop.rest('GET', '/users/me/', credentials)).status === 200;
}

async function statusOfLogin(password: string): Promise<number> {
  return (await shop.rest('POST', '/token', { form: { username: 'ada', password } })).status;
}

/** The response without its date and request id. */
function comparable({ status, headers, text }: Answer): string {
  return (
    JSON.stringify([
      status,
      [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
    ]) + text
  );
}

async function dumpOfAllTables(): Promise<string> {
  const tables = await shop.sql(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`,
  );
  const dumps = await Promise.all(
    tables.map(({ name }) => shop.sql(`select rows::text from ${String(name)} as rows`)),
  );
  return JSON.stringify(dumps);
}
