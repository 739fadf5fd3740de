import { describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import { connect } from 'node:net';
import * as consumers from 'node:stream/consumers';
import { observeHashing } from '../support/hashes.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';
import type { TimedRequest } from '../support/timing.ts';
import { formLogin, LOGIN_REQUESTS } from './login-requests.ts';

// A client that tries many names must not learn which exist, from responses or from their cost.

const COST = 6;
const shop = useShop({}, { bcryptCost: COST });

const HOST = 'shop.example';

const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

const ARGON2 = '$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b7dWRWJTmaaJObG';

/** Kinds of users, their stored values, and a password that must fail. */
const REJECTED: [
  string,
  { disabled?: boolean; hashedPassword?: string | null } | undefined,
  string,
][] = [
  ['a wrong password', {}, 'wrong password'],
  ['a password of more than 72 bytes', {}, `${PASSWORD}${'x'.repeat(72)}`],
  ['a disabled user', { disabled: true }, 'wrong password'],
  ['a user without a hash', { hashedPassword: null }, PASSWORD],
  ['a user with an empty hash', { hashedPassword: '' }, PASSWORD],
  [
    'a user with half a hash',
    { hashedPassword: bcrypt.hashSync(PASSWORD, 4).slice(0, 30) },
    PASSWORD,
  ],
  ['a user with a hash of another kind', { hashedPassword: ARGON2 }, PASSWORD],
  [
    'a user with a hash above the highest cost',
    { hashedPassword: `$2b$99$${'C'.repeat(53)}` },
    PASSWORD,
  ],
  ['a user with an older hash', { hashedPassword: bcrypt.hashSync(PASSWORD, 4) }, 'wrong password'],
  [
    'a user with a hash in the older form',
    { hashedPassword: bcrypt.hashSync(PASSWORD, COST).replace('$2b$', '$2a$') },
    'wrong password',
  ],
];

const invalid = REJECTED.filter(
  ([, user]) =>
    user?.hashedPassword != null &&
    !/^\$2[aby]\$(0[4-9]|[12]\d|3[01])\$.{53}$/.test(user.hashedPassword),
);

describe.each(LOGIN_REQUESTS)('%s', (_name, attempt) => {
  test('E1 a wrong name and a wrong password get the same bytes, with headers in the same order', async () => {
    const unknown = await bytesOf(attempt('nobody', 'wrong password'));
    expect(unknown).toMatch(
      /^HTTP\/1\.1 (401|200) [^]*Incorrect (username or|login and\/or) password/,
    );
    const answers = await Promise.all(
      REJECTED.map(async ([what, user, password]) => {
        const { username } = await shop.makeUser(user);
        return [what, await bytesOf(attempt(username, password))];
      }),
    );
    expect(answers).toEqual(REJECTED.map(([what]) => [what, unknown]));
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test('E4 only the correct password shows that a user is disabled', async () => {
    const { username } = await shop.makeUser({ disabled: true });
    expect((await ask(attempt(username, 'wrong password'))).text).toContain('Incorrect');
    expect((await ask(attempt(username, PASSWORD))).text).toMatch(
      /^\{"(detail|data)":"Inactive user"\}$|"Inactive user".*"code":"INACTIVE_USER"/,
    );
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test('E2 a wrong name and a wrong password run the same statements and the same hashing', async () => {
    await cost(attempt('nobody at all', 'wrong password'));
    const unknown = await cost(attempt('nobody', 'wrong password'));
    expect(unknown.work).toBe(2 ** COST);
    expect(unknown.statements.length).toBeGreaterThan(0);
    const found = new Map<string, unknown>();
    for (const [what, user, password] of REJECTED) {
      const { username } = await shop.makeUser(user);
      found.set(what, await cost(attempt(username, password)));
    }
    expect(Object.fromEntries(found)).toEqual(
      Object.fromEntries(REJECTED.map(([what]) => [what, unknown])),
    );
  });

  test('E3 an older hash is replaced at the next successful login only, without a visible change', async () => {
    const old = bcrypt.hashSync(PASSWORD, 4);
    const { username, pk } = await shop.makeUser({ hashedPassword: old });
    const stored = async () =>
      (await shop.sql(`select hashed_password as hash from "user" where pk = ${pk}`))[0]?.['hash'];
    for (const password of ['', 'wrong password', `${PASSWORD} `, PASSWORD.toUpperCase()]) {
      expect(await ask(attempt(username, password))).toMatchObject({
        text: expect.stringContaining('Incorrect'),
      });
    }
    expect(await stored()).toBe(old);
    expect((await ask(attempt(username, PASSWORD))).text).not.toContain('Incorrect');
    const made = await stored();
    expect(made).toMatch(/^\$2b\$06\$/);
    expect((await ask(attempt(username, 'wrong password'))).text).toContain('Incorrect');
    expect((await ask(attempt(username, PASSWORD))).text).not.toContain('Incorrect');
    expect(await stored()).toBe(made);
  });
});

test.each([...invalid, ...REJECTED.filter(([, user]) => user?.hashedPassword === null)])(
  'E5 %s: the response says wrong password, and the log has one line without stored values',
  async (_what, user, password) => {
    const { username } = await shop.makeUser(user);
    shop.logged.length = 0;
    expect((await ask(formLogin('/token')(username, password))).text).toContain('Incorrect');
    const lines = shop.logged.filter((line) => line.includes('"auth.hash_invalid"'));
    expect(lines).toHaveLength(1);
    const secrets = [PASSWORD, user?.hashedPassword ?? ''].filter((secret) => secret !== '');
    for (const secret of secrets) expect(shop.logged.join('\n')).not.toContain(secret);
  },
);

describe('changePassword', () => {
  test('E2 a wrong current password gets the same hashing and response, whatever is stored', async () => {
    const answers = new Set<string>();
    for (const [what, user, password] of REJECTED.filter(([, made]) => !made?.disabled)) {
      const as = await shop.makeUser(user);
      const { answer, work } = await observeHashing(() =>
        shop.graphql(CHANGE, { current: password, new: 'a new password' }, { as }),
      );
      expect([what, work]).toEqual([what, 2 ** COST]);
      answers.add(JSON.stringify([answer.status, answer.body]));
    }
    expect([...answers]).toEqual([expect.stringContaining('Incorrect username or password')]);
  });
});

describe('endpoints that could create or reveal users', () => {
  test('E6 only login and the mutations that work by mail take names, addresses or passwords of users', async () => {
    const { body } = await shop.graphql(
      '{ schema: __schema { mutationType { fields { name args { name type { ...T } } } } } } fragment T on __Type { name inputFields { name } ofType { name inputFields { name } } }',
    );
    interface Argument {
      name: string;
      type: { inputFields?: { name: string }[]; ofType?: { inputFields?: { name: string }[] } };
    }
    const fields = body.data.schema.mutationType.fields as { name: string; args: Argument[] }[];
    const taken = fields.flatMap(({ name, args }) =>
      args
        .flatMap((arg) => [
          arg.name,
          ...[...(arg.type.inputFields ?? []), ...(arg.type.ofType?.inputFields ?? [])].map(
            (field) => field.name,
          ),
        ])
        .filter((arg) => /user|mail|full|phone|password|disabled/i.test(arg))
        .map((arg) => `${name} ${arg}`),
    );
    expect(taken.toSorted()).toEqual([
      'confirmRegistration fullName',
      'confirmRegistration password',
      'confirmRegistration username',
      'login password',
      'login username',
      'register email',
      'requestPasswordReset user',
    ]);
    const about = /user|account|regist|sign|invite|reset|forgot|recover/i;
    expect(fields.map(({ name }) => name).filter((name) => about.test(name))).toEqual([
      'register',
      'confirmRegistration',
      'requestPasswordReset',
      'resetPassword',
    ]);
  });
});

/** Returns the cost of an attempt: its statements, sorted, and the work of its hashes. */
async function cost(sent: TimedRequest): Promise<{ statements: string[]; work: number }> {
  const { statements, work } = await observeHashing(() => ask(sent));
  return { statements: statements.toSorted(), work };
}

function headersOf({ type, authorization }: TimedRequest): Record<string, string> {
  return {
    ...(type !== undefined && { 'Content-Type': type }),
    ...(authorization !== undefined && { Authorization: authorization }),
  };
}

function ask(sent: TimedRequest): Promise<Answer> {
  const { method, path, body } = sent;
  return shop.rest(method, path, {
    headers: headersOf(sent),
    ...(body !== undefined && { body }),
  });
}

/** Returns the raw response without Date and X-Request-Id. */
async function bytesOf(sent: TimedRequest): Promise<string> {
  const { method, path, body = '' } = sent;
  const lines = Object.entries({
    Host: HOST,
    Connection: 'close',
    Accept: '*/*',
    'Content-Length': String(Buffer.byteLength(body)),
    ...headersOf(sent),
  }).map(([name, value]) => `${name}: ${value}`);
  const socket = connect(shop.port, '127.0.0.1');
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`);
  const answer = await consumers.text(socket);
  return answer.replace(/^(Date|X-Request-Id): .*\r\n/gim, '');
}
