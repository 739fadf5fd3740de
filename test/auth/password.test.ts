import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { readConfig } from '../../src/core/config.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

const NEW_PASSWORD = 'tr0ub4dor and three';
const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) { sessionKey accessToken refreshToken }
}`;
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

/** One above the lowest cost, which the older hashes of these tests have. */
const COST = 5;
const shop = useShop({}, { bcryptCost: COST });
/** A second instance on the same database. */
const secondShop = new Shop({}, { bcryptCost: COST });

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

type LoginEndpoint = (username: string, password: string) => Promise<Answer>;

const token: LoginEndpoint = (username, password) =>
  shop.rest('POST', '/token', { form: { username, password } });
const login: LoginEndpoint = (username, password) =>
  shop.rest('POST', '/login', { form: { username, password } });
const sessionLogin: LoginEndpoint = (username, password) =>
  shop.rest('POST', '/session/login', { json: { username, password } });
const basicLogin: LoginEndpoint = (username, password) =>
  shop.rest('GET', '/api/v2/auth/login', {
    headers: {
      Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    },
  });
const queryLogin: LoginEndpoint = (username, password) =>
  shop.rest('GET', `/api/v2/auth/login?${new URLSearchParams({ username, password }).toString()}`);
const versionedLogin: LoginEndpoint = (username, password) =>
  shop.rest('POST', '/api/v2/auth/login', { json: { username, password } });
const graphqlLogin: LoginEndpoint = (username, password) =>
  shop.graphql(LOGIN, { username, password });

const P = { status: 401, challenge: 'Bearer', text: '{"detail":"Incorrect username or password"}' };
const L = { status: 401, challenge: null, text: '{"data":"Incorrect login and/or password"}' };
const INACTIVE = { status: 400, challenge: null, text: '{"detail":"Inactive user"}' };
const INACTIVE_DATA = { status: 401, challenge: null, text: '{"data":"Inactive user"}' };

/** Each login endpoint, its response to a wrong password, and to a disabled user. */
const LOGIN_ENDPOINTS: [string, LoginEndpoint, Rejection, Rejection][] = [
  ['POST /token', token, P, INACTIVE],
  ['POST /login', login, P, INACTIVE],
  ['the session router', sessionLogin, L, INACTIVE_DATA],
  ['GET /api/v2/auth/login by HTTP Basic', basicLogin, L, INACTIVE_DATA],
  ['GET /api/v2/auth/login by query', queryLogin, L, INACTIVE_DATA],
  ['POST /api/v2/auth/login', versionedLogin, L, INACTIVE_DATA],
  [
    'login of GraphQL',
    graphqlLogin,
    graphqlRejection('Incorrect username or password', 'INVALID_CREDENTIALS'),
    graphqlRejection('Inactive user', 'INACTIVE_USER'),
  ],
];

describe('length and form of a password', () => {
  test('W1 72 bytes can be set, and a longer password with the same beginning does not sign in', async () => {
    const password = 'é'.repeat(36);
    const user = await shop.makeUser();
    expect((await change(user, PASSWORD, password)).body).toEqual({
      data: { changePassword: { username: user.username } },
    });
    expect((await token(user.username, password)).status).toBe(200);
    expect(rejection(await token(user.username, `${password}X`))).toEqual(P);
    expect(rejection(await token(user.username, password.slice(0, -1)))).toEqual(P);
  });

  test.each([
    ['73 bytes', 'x'.repeat(73)],
    ['73 bytes in 37 characters', `${'é'.repeat(36)}x`],
    ['1,000 bytes', 'x'.repeat(1_000)],
  ])('W1 %s cannot be set', async (_what, password) => {
    const user = await shop.makeUser();
    const { status, body } = await change(user, PASSWORD, password);
    expect([status, body.data]).toEqual([200, null]);
    expect(body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'new', message: 'A password must have at most 72 bytes' }],
    });
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });

  test('W1 73 bytes are also rejected for a new user', async () => {
    await expect(
      accounts.create(shop.context(), { username: 'ann', password: 'x'.repeat(73) }),
    ).rejects.toMatchObject({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'password', message: 'A password must have at most 72 bytes' }],
    });
    expect(await shop.sql('select * from "user"')).toEqual([]);
  });

  test.each<[string, string, string[]]>([
    [
      '64 ASCII characters',
      'aB3$'.repeat(16),
      ['aB3$'.repeat(16).toLowerCase(), 'aB3$'.repeat(15)],
    ],
    ['18 emoji of four bytes', '🐘'.repeat(18), ['🐘'.repeat(17), '🐭'.repeat(18)]],
    [
      'leading and trailing spaces',
      '  two  spaces  ',
      ['two  spaces', '  two  spaces', 'two  spaces  ', '  two spaces  '],
    ],
    ['only spaces', ' '.repeat(8), ['', ' '.repeat(7), ' '.repeat(9)]],
    ['a NUL inside', 'before\0after', ['before', 'before\0', 'before\0other']],
    ['a NUL at its start', '\0eight characters', ['\0', '', '\0other']],
    ['a letter in two code points', 'cafe\u0301 au lait', ['caf\u00e9 au lait']],
    ['a line break', 'one line\r\nanother', ['one line\nanother', 'one line']],
  ])('W2 %s: set and checked without changes', async (_what, password, others) => {
    const user = await shop.makeUser();
    expect((await change(user, PASSWORD, password)).body.errors).toBeUndefined();
    const answers = await Promise.all([
      token(user.username, password),
      sessionLogin(user.username, password),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const rejected = await Promise.all(others.map((other) => token(user.username, other)));
    expect(rejected.map(rejection)).toEqual(others.map(() => P));
  });

  test.each(LOGIN_ENDPOINTS)(
    'W4 an empty password is a wrong one: %s',
    async (_endpoint, enter, wrong) => {
      const { username } = await shop.makeUser();
      expect(rejection(await enter(username, ''))).toEqual(wrong);
    },
  );

  const missing = [{ type: 'missing', loc: ['body', 'password'], msg: 'Field required' }];
  const noText = [
    { type: 'string_type', loc: ['body', 'password'], msg: 'Input should be a valid string' },
  ];

  test.each(['/session/login', '/api/v2/auth/login'])(
    'W4 a password that is missing or not a text is bad input: POST %s',
    async (path) => {
      const { username } = await shop.makeUser();
      const ask = async (password: unknown) => {
        const { status, body } = await shop.rest('POST', path, { json: { username, password } });
        return [status, body];
      };
      expect(await ask(undefined)).toEqual([422, { detail: missing }]);
      for (const password of [null, 1, true, [PASSWORD], { $ne: '' }])
        expect(await ask(password)).toEqual([422, { detail: noText }]);
      expect(await ask(PASSWORD)).toEqual([200, { session_key: expect.any(String) }]);
    },
  );

  test.each(['/token', '/login'])('W4 no password is bad input: POST %s', async (path) => {
    const { username } = await shop.makeUser();
    const answer = await shop.rest('POST', path, { form: { username } });
    expect([answer.status, answer.body]).toEqual([422, { detail: missing }]);
  });

  test('W4 no password is bad input: GET /api/v2/auth/login', async () => {
    const answer = await shop.rest('GET', '/api/v2/auth/login?username=alice');
    expect([answer.status, answer.body]).toEqual([
      422,
      { detail: [{ type: 'missing', loc: ['query', 'password'], msg: 'Field required' }] },
    ]);
  });

  test.each([[undefined], [null], [1], [[PASSWORD]], [{ $ne: '' }]])(
    'W4 the password %j is bad input: login of GraphQL',
    async (password) => {
      const { username } = await shop.makeUser();
      const answer = await shop.graphql(LOGIN, { username, password });
      expect([answer.status, answer.body.data, answer.body.errors.length]).toEqual([
        400,
        undefined,
        1,
      ]);
      expect(answer.body.errors[0].extensions).toMatchObject({ code: 'BAD_USER_INPUT' });
      expect(await shop.sql('select * from session')).toEqual([]);
    },
  );

  test.each<[string, LoginEndpoint, number, object]>([
    ['POST /token', token, 413, { detail: 'The request is too large' }],
    ['the session router', sessionLogin, 413, { data: 'The request is too large' }],
    ['login of GraphQL', graphqlLogin, 413, expect.any(Object)],
  ])('W4 a password of 1 MB is too large: %s', async (_endpoint, enter, status, body) => {
    const { username } = await shop.makeUser();
    const answer = await enter(username, 'x'.repeat(1_048_576));
    expect([answer.status, answer.body]).toEqual([status, body]);
    expect((await enter(username, PASSWORD)).status).toBe(200);
  });

  test.each(LOGIN_ENDPOINTS)(
    'W4 a password of 1,000 characters is a wrong one: %s',
    async (_endpoint, enter, wrong) => {
      const { username } = await shop.makeUser();
      expect(rejection(await enter(username, PASSWORD.padEnd(1_000, 'x')))).toEqual(wrong);
    },
  );
});

describe('username', () => {
  test.each<[string, LoginEndpoint, string]>([
    ['POST /token', token, 'body'],
    ['POST /login', login, 'body'],
    ['the session router', sessionLogin, 'body'],
    ['GET /api/v2/auth/login by query', queryLogin, 'query'],
    ['POST /api/v2/auth/login', versionedLogin, 'body'],
  ])('W5 an empty username or one with a NUL is bad input: %s', async (_endpoint, enter, part) => {
    const empty = await enter('', PASSWORD);
    expect([empty.status, empty.body]).toEqual([
      422,
      {
        detail: [
          {
            type: 'string_too_short',
            loc: [part, 'username'],
            msg: 'String should have at least 1 character',
          },
        ],
      },
    ]);
    const nul = await enter('ali\0ce', PASSWORD);
    expect([nul.status, nul.body]).toEqual([
      422,
      {
        detail: [
          {
            type: 'string_control_characters',
            loc: [part, 'username'],
            msg: 'String should have no NUL and be well-formed Unicode',
          },
        ],
      },
    ]);
  });

  test.each([
    ['', 'String should have at least 1 character'],
    ['ali\0ce', 'String should have no NUL and be well-formed Unicode'],
  ])('W5 %j is bad input: login of GraphQL', async (username, message) => {
    const { status, body } = await graphqlLogin(username, PASSWORD);
    expect([status, body.data]).toEqual([200, null]);
    expect(body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'username', message }],
    });
  });

  const NAMES = [
    ['in another case', 'Alice'],
    ['of 3,000 characters', 'a'.repeat(3_000)],
    ['from right to left', '\u202eecila'],
    ['with a homoglyph', '\u0430lice'],
    ['with a full-width letter', '\uff41lice'],
    ['with a trailing space', 'alice '],
    ['with a leading space', ' alice'],
    ['with a zero-width character', 'alice\u200b'],
    ['with a line break', 'alice\n'],
    ['that is SQL', "alice' --"],
    ['that is a pattern', 'alic_'],
    ['that is a pattern for all names', '%'],
  ] as const;

  test.each(NAMES)('W5 names are compared exactly: one %s is unknown', async (_what, name) => {
    await shop.makeUser({ username: 'alice' });
    const answers = await Promise.all([token(name, PASSWORD), sessionLogin(name, PASSWORD)]);
    expect(answers.map(rejection)).toEqual([P, L]);
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test('W5 a name of 10 KB is unknown', async () => {
    expect(rejection(await sessionLogin('a'.repeat(10_240), PASSWORD))).toEqual(L);
    expect(rejection(await basicLogin('a'.repeat(10_240), PASSWORD))).toEqual(L);
  });

  test('W5 names that differ by case are two users', async () => {
    await shop.makeUser({ username: 'alice' });
    await shop.makeUser({ username: 'Alice', password: NEW_PASSWORD });
    expect((await token('Alice', NEW_PASSWORD)).status).toBe(200);
    expect(rejection(await token('alice', NEW_PASSWORD))).toEqual(P);
  });

  test.each(['/token', '/login'])(
    'W6 a repeated username, or one as an operator, is bad input: POST %s',
    async (path) => {
      await shop.makeUser({ username: 'a' });
      const ask = async (body: string) => {
        const answer = await shop.rest('POST', path, {
          body,
          headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        });
        return [answer.status, answer.body];
      };
      const password = new URLSearchParams({ password: PASSWORD }).toString();
      const twice = [
        { type: 'string_type', loc: ['body', 'username'], msg: 'Input should be a valid string' },
      ];
      const missing = [{ type: 'missing', loc: ['body', 'username'], msg: 'Field required' }];
      expect(await ask(`username=a&username=b&${password}`)).toEqual([422, { detail: twice }]);
      expect(await ask(`username=a&username=a&${password}`)).toEqual([422, { detail: twice }]);
      for (const name of [
        'username[$ne]',
        'username[]',
        'username[0]',
        'username.name',
        'Username',
      ])
        expect(await ask(`${name}=a&${password}`)).toEqual([422, { detail: missing }]);
      expect(await ask(`username=a&username[$ne]=x&${password}`)).toEqual([
        200,
        { access_token: expect.any(String), token_type: 'bearer' },
      ]);
    },
  );
});

describe('user enumeration', () => {
  test.each(LOGIN_ENDPOINTS)(
    'E1 an unknown user and a wrong password get the same bytes: %s',
    async (_endpoint, enter, wrong) => {
      const { username } = await shop.makeUser();
      const [known, unknown] = await Promise.all([
        enter(username, 'wrong password'),
        enter('nobody', 'wrong password'),
      ]);
      expect(rejection(known)).toEqual(wrong);
      expect(whole(unknown)).toEqual(whole(known));
    },
  );

  test.each(LOGIN_ENDPOINTS)(
    'E4 a wrong password never reveals that the user is disabled: %s',
    async (_endpoint, enter, wrong, inactive) => {
      const { username } = await shop.makeUser({ disabled: true });
      const [disabled, unknown] = await Promise.all([
        enter(username, 'wrong password'),
        enter('nobody', 'wrong password'),
      ]);
      expect(rejection(disabled)).toEqual(wrong);
      expect(whole(disabled)).toEqual(whole(unknown));
      expect(rejection(await enter(username, PASSWORD))).toEqual(inactive);
      expect(await shop.sql('select * from session')).toEqual([]);
    },
  );

  test.each(LOGIN_ENDPOINTS)(
    'E5 a user without a password gets the response to a wrong one: %s',
    async (_endpoint, enter, wrong) => {
      const { username } = await shop.makeUser({ hashedPassword: null });
      const answers = await Promise.all(
        ['', 'null', PASSWORD].map((password) => enter(username, password)),
      );
      expect(answers.map(rejection)).toEqual([wrong, wrong, wrong]);
    },
  );

  test.each([
    ['the password itself', PASSWORD],
    [
      'of another kind',
      '$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$RdescudvJCsgt3ub+b7dWRWJTmaaJObG',
    ],
    ['cut', bcrypt.hashSync(PASSWORD, 4).slice(0, -1)],
    ['of an unknown version', bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2z$')],
    ['empty', ''],
  ])(
    'E5 a stored hash that is %s matches no password and is logged once',
    async (_what, hashedPassword) => {
      const { username } = await shop.makeUser({ hashedPassword });
      expect(rejection(await token(username, PASSWORD))).toEqual(P);
      expect(events('auth.hash_invalid')).toHaveLength(1);
    },
  );

  test('E5 the log does not contain the invalid hash', async () => {
    const { username } = await shop.makeUser({ hashedPassword: 'plain text canary' });
    expect(rejection(await token(username, 'plain text canary'))).toEqual(P);
    expect(events('auth.hash_invalid')).toHaveLength(1);
    expect(shop.logged.join('\n')).not.toContain('canary');
  });

  test.each(LOGIN_ENDPOINTS)(
    'E5 the response is that to a wrong password: %s',
    async (_endpoint, enter, wrong) => {
      const { username } = await shop.makeUser({ hashedPassword: 'corrupt' });
      const [corrupt, unknown] = await Promise.all([
        enter(username, PASSWORD),
        enter('nobody', PASSWORD),
      ]);
      expect(rejection(corrupt)).toEqual(wrong);
      expect(whole(corrupt)).toEqual(whole(unknown));
      expect(events('auth.hash_invalid')).toHaveLength(1);
    },
  );
});

describe('the hash', () => {
  test.each(LOGIN_ENDPOINTS)(
    'E3 a hash of a lower cost is replaced at the next successful login, and only then: %s',
    async (_endpoint, enter, wrong) => {
      const oldHash = bcrypt.hashSync(PASSWORD, 4);
      const user = await shop.makeUser({ hashedPassword: oldHash });
      expect(rejection(await enter(user.username, 'wrong password'))).toEqual(wrong);
      expect(await hashOf(user)).toBe(oldHash);

      expect((await enter(user.username, PASSWORD)).status).toBe(200);

      const newHash = await hashOf(user);
      expect(newHash).toMatch(/^\$2b\$05\$/);
      expect(await bcrypt.compare(PASSWORD, newHash)).toBe(true);
      expect((await enter(user.username, PASSWORD)).status).toBe(200);
      expect(await hashOf(user)).toBe(newHash);
    },
  );

  test('E3 a hash of the older form $2a$ is accepted', async () => {
    const user = await shop.makeUser({
      hashedPassword: bcrypt.hashSync(PASSWORD, 4).replace('$2b$', '$2a$'),
    });
    expect((await token(user.username, PASSWORD)).status).toBe(200);
    expect(rejection(await token(user.username, 'wrong password'))).toEqual(P);
  });

  test('E3 a hash of a higher cost stays', async () => {
    const hashedPassword = bcrypt.hashSync(PASSWORD, 6);
    const user = await shop.makeUser({ hashedPassword });
    expect((await token(user.username, PASSWORD)).status).toBe(200);
    expect(await hashOf(user)).toBe(hashedPassword);
  });

  test('E3 a disabled user keeps the old hash', async () => {
    const hashedPassword = bcrypt.hashSync(PASSWORD, 4);
    const user = await shop.makeUser({ hashedPassword, disabled: true });
    expect(rejection(await token(user.username, PASSWORD))).toEqual(INACTIVE);
    expect(await hashOf(user)).toBe(hashedPassword);
  });

  test('C4 two concurrent logins that replace the hash both succeed, and one hash stays', async () => {
    const user = await shop.makeUser({ hashedPassword: bcrypt.hashSync(PASSWORD, 4) });
    const answers = await Promise.all([
      token(user.username, PASSWORD),
      sessionLogin(user.username, PASSWORD),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await hashOf(user)).toMatch(/^\$2b\$05\$/);
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });

  test('W9 a cost below 10 is rejected', () => {
    expect(() => readConfig({ BCRYPT_COST: '9' }, () => '')).toThrow(
      'BCRYPT_COST must be from 10 to 16',
    );
  });
});

describe('changePassword', () => {
  test('Decisions, changePassword: the new password signs in, the old one no longer', async () => {
    const user = await shop.makeUser();
    const answer = await change(user, PASSWORD, NEW_PASSWORD);
    expect([answer.status, answer.body]).toEqual([
      200,
      { data: { changePassword: { username: user.username } } },
    ]);
    expect((await token(user.username, NEW_PASSWORD)).status).toBe(200);
    expect(rejection(await token(user.username, PASSWORD))).toEqual(P);
  });

  test("Decisions, changePassword: it ends only the user's other sessions, at once, on every instance", async () => {
    const user = await shop.makeUser();
    const own = await sessions.open(shop.context(), user, null);
    const others = [
      await sessions.open(shop.context(), user, null),
      await sessions.open(secondShop.context(), user, null),
    ];
    const bystander = await sessions.open(shop.context(), await shop.makeUser(), null);
    const statuses = (at: Shop) =>
      Promise.all(
        [own, ...others, bystander].map(
          async ({ key }) => (await at.rest('GET', '/users/me/', { sessionKey: key })).status,
        ),
      );
    expect([...(await statuses(shop)), ...(await statuses(secondShop))]).toEqual([
      200, 200, 200, 200, 200, 200, 200, 200,
    ]);

    const answer = await shop.graphql(
      CHANGE,
      { current: PASSWORD, new: NEW_PASSWORD },
      { sessionKey: own.key },
    );

    expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
    expect([...(await statuses(shop)), ...(await statuses(secondShop))]).toEqual([
      200, 401, 401, 200, 200, 401, 401, 200,
    ]);
  });

  test('Decisions, changePassword: by a token without a session it ends all sessions', async () => {
    const user = await shop.makeUser();
    const { key } = await sessions.open(shop.context(), user, null);
    await change(user, PASSWORD, NEW_PASSWORD);
    expect((await secondShop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(401);
  });

  test('Decisions, changePassword: a wrong current password changes nothing', async () => {
    const user = await shop.makeUser();
    const { key } = await sessions.open(shop.context(), user, null);
    const answer = await change(user, 'wrong password', NEW_PASSWORD);
    expect([answer.status, answer.body.data]).toEqual([200, null]);
    expect(answer.body.errors).toMatchObject([
      {
        message: 'Incorrect username or password',
        path: ['changePassword'],
        extensions: { code: 'INVALID_CREDENTIALS' },
      },
    ]);
    expect((await token(user.username, PASSWORD)).status).toBe(200);
    expect((await shop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(200);
  });

  test('Decisions, changePassword: it needs credentials', async () => {
    const { status, body } = await shop.graphql(CHANGE, { current: PASSWORD, new: NEW_PASSWORD });
    expect([status, body.data]).toEqual([200, null]);
    expect(body.errors).toMatchObject([
      { message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } },
    ]);
  });

  test('Decisions, changePassword: of several concurrent changes exactly one succeeds, and its password signs in', async () => {
    const user = await shop.makeUser();
    const wanted = ['first new password', 'second new password', 'third new password'];
    const answers = await Promise.all(wanted.map((next) => change(user, PASSWORD, next)));
    const won = answers.map(({ body }) => body.errors?.[0].extensions.code ?? 'changed');
    expect(won.filter((outcome) => outcome === 'changed')).toHaveLength(1);
    expect(won.filter((outcome) => outcome === 'INVALID_CREDENTIALS')).toHaveLength(2);
    const logins = await Promise.all(
      [...wanted, PASSWORD].map((password) => token(user.username, password)),
    );
    expect(logins.map(({ status }) => status)).toEqual([
      ...won.map((outcome) => (outcome === 'changed' ? 200 : 401)),
      401,
    ]);
  });

  test('S14 a password set by an operator ends all sessions of the user', async () => {
    const user = await shop.makeUser();
    const { key } = await sessions.open(shop.context(), user, null);
    expect(await accounts.setPassword(shop.context(), user.username, NEW_PASSWORD)).toBe(1);
    expect((await secondShop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(401);
    expect((await token(user.username, NEW_PASSWORD)).status).toBe(200);
    expect(rejection(await token(user.username, PASSWORD))).toEqual(P);
  });
});

describe('the log', () => {
  test('X2 it contains no password, hash, token or session key after any action', async () => {
    const secrets = ['canary-password-1', 'canary-password-2', 'canary-wrong-3'] as const;
    const [first, second, wrong] = secrets;
    const user = await shop.makeUser({ hashedPassword: bcrypt.hashSync(first, 4) });
    const { username } = user;
    const given: string[] = [];
    for (const [, enter] of LOGIN_ENDPOINTS) {
      await Promise.all([enter(username, wrong), enter(wrong, first)]);
      const { status, body } = await enter(username, first);
      expect(status).toBe(200);
      given.push(...textsIn(body));
    }
    const { body } = await shop.rest('POST', '/token', {
      form: { username, password: first, scope: 'offline_access' },
    });
    const refreshed = await shop.rest('POST', '/token', {
      form: { grant_type: 'refresh_token', refresh_token: body.refresh_token },
    });
    await shop.rest('POST', '/token', {
      form: { grant_type: 'refresh_token', refresh_token: body.refresh_token },
    });
    given.push(
      body.access_token,
      body.refresh_token,
      refreshed.body.access_token,
      refreshed.body.refresh_token,
    );
    const { key } = await sessions.open(shop.context(), user, null);
    await change(user, first, second);
    await change(user, wrong, second);
    await shop.rest('GET', '/users/me/', { sessionKey: key });
    await shop.rest('POST', '/session/logout', { json: { session_key: key } });
    await shop.rest('GET', '/users/me/', { token: `${body.access_token}x` });
    await shop.rest('GET', `/users/me/?access_token=${body.access_token}&session_key=${key}`);
    await shop.rest('POST', '/session/login', {
      body: `{"password":"${first}"`,
      headers: { 'Content-Type': 'application/json' },
    });
    await shop.rest('POST', '/session/login', { json: { username: [first], password: { first } } });
    await shop.graphql(
      `mutation { login(username: "${username}", password: "${first}", nothing: 1) { sessionKey } }`,
    );

    const log = shop.logged.join('\n');
    expect(events('auth.login').length).toBeGreaterThan(0);
    expect(given).toHaveLength(13);
    for (const secret of [...secrets, key, ...given]) expect(log).not.toContain(secret);
    expect(log).not.toMatch(/\$2[aby]\$/);
  });
});

interface Rejection {
  status: number;
  challenge: string | null;
  text: string;
}

function rejection({ status, headers, text, body }: Answer): Rejection {
  // The location in the document is not compared.
  const shown = body?.errors
    ? JSON.stringify({
        message: body.errors[0].message,
        extensions: body.errors[0].extensions,
        data: body.data,
      })
    : text;
  return { status, challenge: headers.get('WWW-Authenticate'), text: shown };
}

function graphqlRejection(message: string, code: string): Rejection {
  return {
    status: 200,
    challenge: null,
    text: JSON.stringify({ message, extensions: { code }, data: null }),
  };
}

/** The response without the values that differ each time. */
function whole({ status, headers, text }: Answer): unknown {
  const compared = [...headers].filter(([name]) => name !== 'date' && name !== 'x-request-id');
  return { status, headers: compared, text };
}

function change(as: User, current: string, next: string): Promise<Answer> {
  return shop.graphql(CHANGE, { current, new: next }, { as });
}

async function hashOf({ pk }: User): Promise<string> {
  const [row] = await shop.sql(`select hashed_password from "user" where pk = ${pk}`);
  return String(row?.['hashed_password']);
}

function events(name: string): unknown[] {
  return shop.logged
    .map((line) => JSON.parse(line) as { event?: string })
    .filter(({ event }) => event === name);
}

/** Returns the keys and tokens in a response. */
function textsIn(body: unknown): string[] {
  if (typeof body === 'string') return body === 'bearer' ? [] : [body];
  return typeof body === 'object' && body !== null ? Object.values(body).flatMap(textsIn) : [];
}

test.each(['2a', '2y'])('a hash written by another bcrypt as $%s$ is accepted', async (version) => {
  const hashedPassword = bcrypt.hashSync(PASSWORD, 5).replace(/^\$2b/, `$${version}`);
  const { username } = await shop.makeUser({ hashedPassword });
  expect((await token(username, PASSWORD)).status).toBe(200);
  expect((await token(username, 'wrong')).status).toBe(401);
});
