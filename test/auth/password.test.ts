import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { LOGIN_ENDPOINTS } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

const NEW_PASSWORD = 'tr0ub4dor and three';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

/** One above the lowest cost, which the older hashes of these tests have. */
const COST = 5;
const shop = useShop({}, { bcryptCost: COST });
/** A second instance on the same database. */
const secondShop = new Shop({}, { bcryptCost: COST });

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

const P = { status: 401, challenge: 'Bearer', text: '{"detail":"Incorrect username or password"}' };
const L = { status: 401, challenge: null, text: '{"data":"Incorrect login and/or password"}' };
const INACTIVE = { status: 400, challenge: null, text: '{"detail":"Inactive user"}' };
const INACTIVE_DATA = { status: 401, challenge: null, text: '{"data":"Inactive user"}' };

/** The response of each login endpoint to a wrong password, and to a disabled user. */
const REJECTIONS: Record<string, [Rejection, Rejection]> = {
  'POST /token': [P, INACTIVE],
  'POST /login': [P, INACTIVE],
  'POST /session/login': [L, INACTIVE_DATA],
  'GET /api/v2/auth/login by Basic': [L, INACTIVE_DATA],
  'GET /api/v2/auth/login by query': [L, INACTIVE_DATA],
  'POST /api/v2/auth/login': [L, INACTIVE_DATA],
  'login of GraphQL': [
    graphqlRejection('Incorrect username or password', 'INVALID_CREDENTIALS'),
    graphqlRejection('Inactive user', 'INACTIVE_USER'),
  ],
};

const token = (username: string, password: string): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password } });

describe('a password that is missing or not a text', () => {
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
});

describe('username', () => {
  test.each(LOGIN_ENDPOINTS.filter(([name]) => !/Basic|GraphQL/.test(name)))(
    'W5 an empty username or one with a NUL is bad input: %s',
    async (name, enter) => {
      const part = name.includes('query') ? 'query' : 'body';
      const empty = await enter(shop, '', PASSWORD);
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
      const nul = await enter(shop, 'ali\0ce', PASSWORD);
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
    },
  );

  test.each([
    ['', 'String should have at least 1 character'],
    ['ali\0ce', 'String should have no NUL and be well-formed Unicode'],
  ])('W5 %j is bad input: login of GraphQL', async (username, message) => {
    const { status, body } = await shop.graphql(
      `mutation ($username: String!) { login(username: $username, password: "${PASSWORD}") { sessionKey } }`,
      { username },
    );
    expect([status, body.data]).toEqual([200, null]);
    expect(body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'username', message }],
    });
  });

  test('W5 names that differ by case are two users', async () => {
    await shop.makeUser({ username: 'alice' });
    await shop.makeUser({ username: 'Alice', password: NEW_PASSWORD });
    expect((await token('Alice', NEW_PASSWORD)).status).toBe(200);
    expect(rejection(await token('alice', NEW_PASSWORD))).toEqual(P);
  });
});

describe('user enumeration', () => {
  test.each(LOGIN_ENDPOINTS)(
    'E4 a wrong password never reveals that the user is disabled: %s',
    async (name, login) => {
      const enter = (as: string, password: string) => login(shop, as, password);
      const [wrong, inactive] = REJECTIONS[name] ?? [];
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
});

describe('the hash', () => {
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
      shop.rest('POST', '/session/login', {
        json: { username: user.username, password: PASSWORD },
      }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect(await hashOf(user)).toMatch(/^\$2b\$05\$/);
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });
});

describe('changePassword', () => {
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
});

describe('the log', () => {
  test('X2 it contains no password, hash, token or session key after any action', async () => {
    const secrets = ['canary-password-1', 'canary-password-2', 'canary-wrong-3'] as const;
    const [first, second, wrong] = secrets;
    const user = await shop.makeUser({ hashedPassword: bcrypt.hashSync(first, 4) });
    const { key } = await sessions.open(shop.context(), user, null);
    const { username } = user;
    const given: string[] = [];
    for (const [, enter] of LOGIN_ENDPOINTS) {
      await Promise.all([enter(shop, username, wrong), enter(shop, wrong, first)]);
      const { status, body } = await enter(shop, username, first);
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
