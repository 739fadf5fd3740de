import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { tokenIn, useSmtpServer, type ReceivedMail } from '../support/smtp-server.ts';
import { PASSWORD, codeOf, useShop, type Answer } from '../support/shop.ts';

const shop = useShop({
  REGISTRATION: 'on',
  PASSWORD_RESET: 'on',
  SMTP_URL: 'smtp://127.0.0.1:1',
  MAIL_FROM: 'shop@shop.example',
});
const smtpServer = useSmtpServer(shop);
const defaultShop = useShop();

const REGISTER = 'mutation ($email: String!) { register(input: { email: $email }) }';
const CONFIRM =
  'mutation ($input: ConfirmationInput!) { confirmRegistration(input: $input) { username fullName email scopes disabled } }';
const HOUR = 3_600_000;

describe('register', () => {
  test('a token from a mail creates an account with the chosen name and password, and without scopes', async () => {
    expect((await register('ada@shop.example')).body).toEqual({ data: { register: true } });
    const [mail] = await smtpServer.deliver();
    expect(mail).toMatchObject({ to: 'ada@shop.example', subject: 'Confirm your address' });
    const answer = await confirm(tokenIn(mail as ReceivedMail), { fullName: 'Ada Archer' });
    expect(answer.body).toEqual({
      data: {
        confirmRegistration: {
          username: 'ada',
          fullName: 'Ada Archer',
          email: null,
          scopes: [],
          disabled: false,
        },
      },
    });
    expect(
      (await shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } })).status,
    ).toBe(200);
    expect(await shop.sql('select email, scopes from "user"')).toEqual([
      { email: 'ada@shop.example', scopes: [] },
    ]);
    expect(await shop.sql('select * from registration')).toEqual([]);
  });

  test('E6 an address with an account gets the same response; only its mail differs, and has no token', async () => {
    await shop.makeUser({ username: 'ada', email: 'Ada@shop.example' });
    const [known, unknown] = [
      await register('ada@SHOP.example'),
      await register('bea@shop.example'),
    ];
    expect(comparable(known)).toBe(comparable(unknown));
    const mails = await smtpServer.deliver();
    const toKnown = mails.find(({ to }) => to === 'ada@shop.example');
    expect(toKnown?.subject).toBe('You have an account');
    expect(toKnown?.text).toContain('It already has one: ada.');
    expect(tokenIn(toKnown as ReceivedMail)).toBe('');
    expect(await shop.sql('select email from registration')).toEqual([
      { email: 'bea@shop.example' },
    ]);
  });

  test('E6 a disabled user gets the same response, and no mail', async () => {
    await shop.makeUser({ email: 'zoe@shop.example', disabled: true });
    expect(comparable(await register('zoe@shop.example'))).toBe(
      comparable(await register('nobody@shop.example')),
    );
    expect((await smtpServer.deliver()).map(({ to }) => to)).toEqual(['nobody@shop.example']);
  });

  test.each([
    '',
    'nonsense',
    'a@b',
    'a@shop.example, b@shop.example',
    'a@shop.example\r\nBcc: b@shop.example',
    `${'x'.repeat(250)}@shop.example`,
    'ä@shop.example',
  ])('an invalid address is rejected, and nothing is sent: %j', async (email) => {
    const { body } = await register(email);
    expect(body.errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'email' }],
    });
    expect(await smtpServer.deliver()).toEqual([]);
  });

  test('repeated requests before the mail is sent cause one mail', async () => {
    for (const email of ['ada@shop.example', 'ADA@shop.example', 'ada@shop.example'])
      await register(email);
    expect(await smtpServer.deliver()).toHaveLength(1);
  });
});

describe('confirmRegistration', () => {
  test('a taken name is a conflict, and the token stays valid for another', async () => {
    await shop.makeUser({ username: 'ada', email: 'other@shop.example' });
    const token = await tokenFor('ada@shop.example');
    expect(codeOf(await confirm(token))).toBe('CONFLICT');
    expect((await confirm(token, { username: 'ada2' })).body.errors).toBeUndefined();
  });

  test.each(['Ada', ' ADA', '\uff41da'])(
    'so is a name that looks like it: %j',
    async (username) => {
      await shop.makeUser({ username: 'ada', email: 'other@shop.example' });
      const token = await tokenFor('ada@shop.example');
      expect(codeOf(await confirm(token, { username }))).toBe('CONFLICT');
      expect(await shop.sql('select username from "user"')).toEqual([{ username: 'ada' }]);
    },
  );

  test.each([
    ['a short password', { password: 'short' }, 'password'],
    ['a password over 72 bytes', { password: 'x'.repeat(73) }, 'password'],
    ['no username', { username: ' ' }, 'username'],
    ['a name with a line break', { fullName: 'a\nb' }, 'fullName'],
    ['a name that shows nothing', { fullName: '\u200b' }, 'fullName'],
    [
      'everything at once',
      { username: '', password: '', fullName: '' },
      'username',
      'password',
      'fullName',
    ],
  ])('%s is rejected, and the token stays valid', async (_what, change, ...fields) => {
    const token = await tokenFor('ada@shop.example');
    expect((await confirm(token, change)).body.errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      fields: fields.map((field) => ({ field })),
    });
    expect((await confirm(token)).body.errors).toBeUndefined();
  });

  test.each<[string, (token: string) => Promise<string>]>([
    ['made up', async () => 'A'.repeat(43)],
    ['with a space after it', async (token) => `${token} `],
    [
      'used',
      async (token) => {
        await confirm(token, { username: 'first' });
        return token;
      },
    ],
    [
      'mailed before one that was used',
      async (token) => {
        await confirm(await tokenFor('ada@shop.example'), { username: 'first' });
        return token;
      },
    ],
    [
      'mailed after one that was used',
      async (token) => {
        const later = await tokenFor('ada@shop.example');
        await confirm(token, { username: 'first' });
        return later;
      },
    ],
    [
      'older than a day',
      async (token) => {
        shop.advanceClock(24 * HOUR);
        return token;
      },
    ],
    [
      'the hash of a token',
      async () =>
        String(
          (await shop.sql("select encode(token_hash, 'hex') as hash from registration"))[0]?.[
            'hash'
          ],
        ),
    ],
  ])('a token that is %s creates no account, and gets the same error', async (_what, change) => {
    const token = await change(await tokenFor('ada@shop.example'));
    const { status, body } = await confirm(token);
    expect([status, body.errors[0].message, body.errors[0].extensions]).toEqual([
      200,
      'token: is invalid, used or expired',
      {
        code: 'BAD_USER_INPUT',
        fields: [{ field: 'token', message: 'is invalid, used or expired' }],
      },
    ]);
    expect(await shop.sql(`select username from "user" where username = 'ada'`)).toEqual([]);
  });

  test('E6 an invalid token does not reveal whether a name is taken', async () => {
    await shop.makeUser({ username: 'ada' });
    const [taken, free] = [
      await confirm('A'.repeat(43)),
      await confirm('A'.repeat(43), { username: 'bea' }),
    ];
    expect([codeOf(taken), comparable(taken)]).toEqual(['BAD_USER_INPUT', comparable(free)]);
  });

  test('E6 a stranger voids no token: each one of a day stays valid until one is used', async () => {
    const tokens: string[] = [];
    for (let time = 0; time < 4; time++) tokens.push(await tokenFor('ada@shop.example'));
    expect(new Set(tokens).size).toBe(4);
    expect((await confirm(tokens[0] ?? '')).body.errors).toBeUndefined();
    expect(await shop.sql('select * from registration')).toEqual([]);
  });

  test('of concurrent confirmations with two tokens of an address, each sent twice, one creates an account', async () => {
    const tokens = [await tokenFor('ada@shop.example'), await tokenFor('ada@shop.example')];
    const answers = await Promise.all(
      [...tokens, ...tokens].map((token, number) => confirm(token, { username: `ada${number}` })),
    );
    expect(answers.map((answer) => codeOf(answer) ?? 'made').toSorted(byName)).toEqual([
      ...Array(3).fill('BAD_USER_INPUT'),
      'made',
    ]);
    expect(await shop.sql('select pk from "user"')).toHaveLength(1);
  });

  test('of two concurrent confirmations with one name, one gets it', async () => {
    const tokens = [await tokenFor('ada@shop.example'), await tokenFor('bea@shop.example')];
    const answers = await Promise.all(tokens.map((token) => confirm(token)));
    expect(new Set(answers.map(codeOf))).toEqual(new Set(['CONFLICT', undefined]));
    expect(await shop.sql('select token_hash from registration')).toHaveLength(1);
  });

  test('the sweep deletes expired tokens', async () => {
    await tokenFor('ada@shop.example');
    shop.advanceClock(24 * HOUR);
    for (const feature of features) await feature.sweep?.(shop.context());
    expect(await shop.sql('select * from registration')).toEqual([]);
  });
});

test.each([
  ['REGISTRATION', REGISTER, { email: 'ada@shop.example' }],
  ['REGISTRATION', REGISTER, { email: 'nonsense' }],
  ['REGISTRATION', CONFIRM, { input: { token: '', username: '', password: '' } }],
  ['PASSWORD_RESET', 'mutation { requestPasswordReset(user: "") }', {}],
  ['PASSWORD_RESET', 'mutation { resetPassword(token: "", new: "") { id } }', {}],
])(
  '%s is off by default: its mutations are FORBIDDEN with any input, and nothing is stored: %s %j',
  async (setting, mutation, variables) => {
    const { body } = await defaultShop.graphql(mutation, variables);
    expect(body.errors).toMatchObject([
      { message: `${setting} is off`, extensions: { code: 'FORBIDDEN' } },
    ]);
    expect(await shop.sql('select * from pgboss.job')).toEqual([]);
  },
);

test('an operation requests at most one mail or confirms at most one token', async () => {
  for (const query of [
    'mutation { a: register(input: { email: "a@shop.example" }) b: register(input: { email: "b@shop.example" }) }',
    'mutation { register(input: { email: "a@shop.example" }) requestPasswordReset(user: "a") }',
    'mutation { a: resetPassword(token: "a", new: "a new password") { id } b: resetPassword(token: "b", new: "a new password") { id } }',
  ]) {
    expect(codeOf(await shop.graphql(query))).toBe('QUERY_TOO_COMPLEX');
  }
  expect(await shop.sql('select * from pgboss.job')).toEqual([]);
});

function register(email: string): Promise<Answer> {
  return shop.graphql(REGISTER, { email });
}

function confirm(token: string, change: object = {}): Promise<Answer> {
  return shop.graphql(CONFIRM, {
    input: { token, username: 'ada', password: PASSWORD, ...change },
  });
}

async function tokenFor(email: string): Promise<string> {
  await register(email);
  const mail = (await smtpServer.deliver()).find(({ to }) => to === email);
  return tokenIn(mail as ReceivedMail);
}

function byName(one: string, other: string): number {
  return one.localeCompare(other);
}

/** The response without its date and request id. */
function comparable({ status, headers, text }: Answer): string {
  return JSON.stringify([
    status,
    [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id'),
    text,
  ]);
}
