import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const V2 = '/api/v2/auth/login';
const DAY = 86_400_000;
const WRONG = { status: 401, body: { data: 'Incorrect login and/or password' } };
const INVALID_KEY = { status: 401, body: { data: 'Invalid session key' } };
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' } };
const LOGGED_OUT = { status: 200, body: { data: 'Logout successful' } };
const V2_LOGGED_OUT = { status: 200, body: { detail: 'Logout successful', data: 'Logout successful' } };

interface Credentials {
  username: string;
  password: string;
}

/** The doors that open a session and answer its key. */
const DOORS: [string, (credentials: Credentials) => Promise<Answer>][] = [
  ['POST /session/login', (json) => shop.rest('POST', '/session/login', { json })],
  [`GET ${V2} with HTTP Basic`, (credentials) => shop.rest('GET', V2, { headers: { Authorization: basic(credentials) } })],
  [`GET ${V2} with query parameters`, (credentials) => shop.rest('GET', `${V2}?${query(credentials)}`)],
  [`POST ${V2} with a username`, (json) => shop.rest('POST', V2, { json })],
];

test.each(DOORS)('4.2.1 %s logs the user in and answers the key of the new session', async (_door, login) => {
  const { username } = await shop.makeUser();
  const { status, body } = await login({ username, password: PASSWORD });
  expect(status).toBe(200);
  expect(body).toEqual({ session_key: expect.stringMatching(/^[\w-]{43}$/) });
  expect(await shop.rest('GET', '/users/me/', { sessionKey: body.session_key })).toMatchObject({ status: 200, body: { username } });
});

test.each(DOORS)('4.2.1 %s opens another session at each login', async (_door, login) => {
  const { username } = await shop.makeUser();
  const first = await login({ username, password: PASSWORD });
  const second = await login({ username, password: PASSWORD });
  expect(second.body.session_key).not.toBe(first.body.session_key);
  expect(await shop.sql('select sid from session')).toHaveLength(2);
});

test.each(DOORS)('4.2.1 %s answers what nobody may keep', async (_door, login) => {
  const { username } = await shop.makeUser();
  const { headers } = await login({ username, password: PASSWORD });
  expect(headers.get('cache-control')).toBe('no-store');
  expect(headers.get('set-cookie')).toBeNull();
});

test.each(DOORS)('4.2.2 %s refuses a wrong password with 401 and data', async (_door, login) => {
  const { username } = await shop.makeUser();
  expect(said(await login({ username, password: 'wrong' }))).toEqual(WRONG);
  expect(await shop.sql('select sid from session')).toEqual([]);
});

test.each(DOORS)('4.2.2 %s answers to an unknown user as to a wrong password, to the header', async (_door, login) => {
  const { username } = await shop.makeUser();
  const wrong = await login({ username, password: 'wrong' });
  const unknown = await login({ username: 'nobody', password: 'wrong' });
  expect(said(unknown)).toEqual(WRONG);
  expect(unknown.text).toBe(wrong.text);
  expect(headersOf(unknown)).toEqual(headersOf(wrong));
});

test.each(DOORS)('4.2.2 %s says of a disabled user, after the right password, that the user is inactive', async (_door, login) => {
  const { username } = await shop.makeUser({ disabled: true });
  expect(said(await login({ username, password: PASSWORD }))).toEqual({ status: 401, body: { data: 'Inactive user' } });
});

test.each(DOORS)('4.2.2 %s does not tell with a wrong password that the user is disabled', async (_door, login) => {
  const { username } = await shop.makeUser({ disabled: true });
  expect(said(await login({ username, password: 'wrong' }))).toEqual(WRONG);
});

test('4.2.1 the key that a client brings along does not become the key of its session', async () => {
  const { username } = await shop.makeUser();
  const session_key = 'A'.repeat(43);
  const { body } = await shop.rest('POST', '/session/login', {
    json: { username, password: PASSWORD, session_key },
    sessionKey: session_key,
  });
  expect(body.session_key).not.toBe(session_key);
  expect(said(await shop.rest('GET', '/users/me/', { sessionKey: session_key }))).toEqual(ANONYMOUS);
});

test('4.2.2 POST /session/login refuses a user who has no password', async () => {
  const { username } = await shop.makeUser({ password: null });
  expect(said(await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } }))).toEqual(WRONG);
});

test('4.2.2 POST /session/login refuses an empty password as a wrong one', async () => {
  const { username } = await shop.makeUser();
  expect(said(await shop.rest('POST', '/session/login', { json: { username, password: '' } }))).toEqual(WRONG);
});

test('4.2 POST /session/login names the fields that are missing', async () => {
  const { status, body } = await shop.rest('POST', '/session/login', { json: {} });
  expect(status).toBe(422);
  expect(body).toEqual({
    detail: [
      { type: 'missing', loc: ['body', 'username'], msg: 'Field required' },
      { type: 'missing', loc: ['body', 'password'], msg: 'Field required' },
    ],
  });
});

test.each([7, null, ['alice'], { $ne: '' }])('4.2 POST /session/login refuses the username %j with 422', async (username) => {
  const { status, body } = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'string_type', loc: ['body', 'username'], msg: 'Input should be a valid string' }] });
});

test.each(['/session/login', '/session/logout'])('4.2 POST %s takes JSON only', async (path) => {
  const { status, body } = await shop.rest('POST', path, { form: { username: 'alice', password: PASSWORD, session_key: 'key' } });
  expect(status).toBe(415);
  expect(body).toEqual({ data: expect.any(String) });
});

test.each(['/session/login/', '/session/logout/'])('4.2 POST %s is served with a slash at its end, too', async (path) => {
  expect(await shop.rest('POST', path, { json: {} })).toMatchObject({ status: 422 });
});

test('4.2.3 a logout with a key that no session has is refused with 401 and data', async () => {
  expect(said(await logout('A'.repeat(43)))).toEqual(INVALID_KEY);
});

test.each(['', 'x'.repeat(600), 'a\u0000b', '\u{1f511}', "' or 1=1 --"])(
  '4.2.3 a logout with the key %j is refused as one that no session has',
  async (key) => {
    expect(said(await logout(key))).toEqual(INVALID_KEY);
  },
);

test.each([
  ['upper case', (key: string) => key.toUpperCase()],
  ['a space at its end', (key: string) => `${key} `],
  ['its last character missing', (key: string) => key.slice(0, -1)],
])('4.2.3 a logout with the key in %s is refused, and the session lives', async (_what, change) => {
  const key = await signIn();
  expect(said(await logout(change(key)))).toEqual(INVALID_KEY);
  expect(await shop.rest('GET', '/users/me/', { sessionKey: key })).toMatchObject({ status: 200 });
});

test('4.2.3 a second logout is refused', async () => {
  const key = await signIn();
  await logout(key);
  expect(said(await logout(key))).toEqual(INVALID_KEY);
});

test('4.2.3 of twenty logouts at once one succeeds and nineteen are refused', async () => {
  const key = await signIn();
  const answers = (await Promise.all(Array.from({ length: 20 }, () => logout(key)))).map(said);
  expect(answers.filter(({ status }) => status === 200)).toEqual([LOGGED_OUT]);
  expect(answers.filter(({ status }) => status !== 200)).toEqual(Array.from({ length: 19 }, () => INVALID_KEY));
});

test('4.2.3 a logout of a session that was idle for 14 days is refused', async () => {
  const key = await signIn();
  shop.pass(14 * DAY);
  expect(said(await logout(key))).toEqual(INVALID_KEY);
});

test('4.2.4 POST /session/logout logs the user out and answers that it was successful', async () => {
  expect(said(await logout(await signIn()))).toEqual(LOGGED_OUT);
});

test('4.2.4 after logout the key opens nothing', async () => {
  const key = await signIn();
  await logout(key);
  expect(said(await shop.rest('GET', '/users/me/', { sessionKey: key }))).toEqual(ANONYMOUS);
});

test('4.2.4 a logout ends no other session of the user', async () => {
  const { username } = await shop.makeUser();
  const [key, other] = [await signIn(username), await signIn(username)];
  await logout(key);
  expect(await shop.rest('GET', '/users/me/', { sessionKey: other })).toMatchObject({ status: 200 });
});

test('4.2 POST /session/logout names the session_key that is missing', async () => {
  const { status, body } = await shop.rest('POST', '/session/logout', { json: {} });
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'missing', loc: ['body', 'session_key'], msg: 'Field required' }] });
});

test.each([null, 1, [], { $ne: '' }])('4.2 POST /session/logout refuses the session_key %j with 422', async (session_key) => {
  const { status, body } = await shop.rest('POST', '/session/logout', { json: { session_key } });
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'string_type', loc: ['body', 'session_key'], msg: 'Input should be a valid string' }] });
});

test(`4.2 GET ${V2} takes HTTP Basic before query parameters`, async () => {
  const { username } = await shop.makeUser();
  const right = { username, password: PASSWORD };
  const wrong = { username, password: 'wrong' };
  const ask = (inHeader: Credentials, inQuery: Credentials) =>
    shop.rest('GET', `${V2}?${query(inQuery)}`, { headers: { Authorization: basic(inHeader) } });
  expect(await ask(right, wrong)).toMatchObject({ status: 200 });
  expect(said(await ask(wrong, right))).toEqual(WRONG);
});

test(`4.2 GET ${V2} takes a password with a colon by HTTP Basic`, async () => {
  const { username } = await shop.makeUser({ password: 'one:two:three' });
  const answer = await shop.rest('GET', V2, { headers: { Authorization: basic({ username, password: 'one:two:three' }) } });
  expect(answer).toMatchObject({ status: 200 });
});

test(`4.2 GET ${V2} without username and password names them`, async () => {
  const { status, body } = await shop.rest('GET', V2);
  expect(status).toBe(422);
  expect(body).toEqual({
    detail: [
      { type: 'missing', loc: ['query', 'username'], msg: 'Field required' },
      { type: 'missing', loc: ['query', 'password'], msg: 'Field required' },
    ],
  });
});

test(`4.2 GET ${V2} refuses a parameter that is given twice with 422`, async () => {
  const { status, body } = await shop.rest('GET', `${V2}?username=a&username=b&password=x`);
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'string_type', loc: ['query', 'username'], msg: 'Input should be a valid string' }] });
});

test(`4.2 GET ${V2} answers an error that nobody may keep`, async () => {
  const { headers } = await shop.rest('GET', `${V2}?${query({ username: 'nobody', password: 'wrong' })}`);
  expect(headers.get('cache-control')).toBe('no-store');
});

test(`4.2 GET ${V2} logs that the user signed in, and never the query`, async () => {
  const { username } = await shop.makeUser({ password: 'not-for-the-log' });
  await shop.rest('GET', `${V2}?${query({ username, password: 'not-for-the-log' })}`);
  await shop.rest('GET', `${V2}?${query({ username, password: 'nor-this-for-the-log' })}`);
  expect(shop.logged.filter((line) => line.includes('auth.login'))).toHaveLength(2);
  expect(shop.logged.filter((line) => line.includes('for-the-log') || line.includes('password='))).toEqual([]);
});

/** What tells POST /api/v2/auth/login whose session to end. */
const BY_KEY: [string, (key: string) => Promise<Answer>][] = [
  ['the header X-SESSION-ID', (sessionKey) => shop.rest('POST', V2, { sessionKey })],
  ['the header X-SESSIONID', (key) => shop.rest('POST', V2, { headers: { 'X-SESSIONID': key } })],
  ['{"session_key"}', (session_key) => shop.rest('POST', V2, { json: { session_key } })],
];

test.each(BY_KEY)(`4.2 POST ${V2} ends the session of %s and says so in detail and in data`, async (_by, leave) => {
  const key = await signIn();
  expect(said(await leave(key))).toEqual(V2_LOGGED_OUT);
  expect(said(await shop.rest('GET', '/users/me/', { sessionKey: key }))).toEqual(ANONYMOUS);
});

test.each(BY_KEY)(`4.2 POST ${V2} refuses a caller who has logged out already, by %s`, async (_by, leave) => {
  const key = await signIn();
  await leave(key);
  expect(said(await leave(key))).toEqual(ANONYMOUS);
});

test.each(BY_KEY)(`4.2 POST ${V2} refuses a caller whose session was idle for 14 days, by %s`, async (_by, leave) => {
  const key = await signIn();
  shop.pass(14 * DAY);
  expect(said(await leave(key))).toEqual(ANONYMOUS);
});

test.each(BY_KEY)(`4.2 POST ${V2} refuses a key that no session has, by %s`, async (_by, leave) => {
  expect(said(await leave('A'.repeat(43)))).toEqual(ANONYMOUS);
});

test.each(BY_KEY)(`4.2 POST ${V2} refuses a disabled user with 400, by %s`, async (_by, leave) => {
  const key = await signIn();
  await shop.sql('update "user" set disabled = true');
  expect(said(await leave(key))).toEqual({ status: 400, body: { detail: 'Inactive user' } });
});

test.each(BY_KEY)(`4.2 POST ${V2} lets one of twenty logouts at once succeed, by %s`, async (_by, leave) => {
  const key = await signIn();
  const answers = (await Promise.all(Array.from({ length: 20 }, () => leave(key)))).map(said);
  expect(answers.filter(({ status }) => status === 200)).toEqual([V2_LOGGED_OUT]);
  expect(answers.filter(({ status }) => status !== 200)).toEqual(Array.from({ length: 19 }, () => ANONYMOUS));
});

test(`4.2 POST ${V2} ends the session of a bearer token with sid, and the token with it`, async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  expect(said(await shop.rest('POST', V2, { token: body.access_token }))).toEqual(V2_LOGGED_OUT);
  expect(said(await shop.rest('GET', '/users/me/', { token: body.access_token }))).toEqual({
    status: 401,
    body: { detail: 'Could not validate credentials' },
  });
});

test(`4.2 POST ${V2} lets one of twenty logouts at once succeed, by a bearer token`, async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  const answers = await Promise.all(Array.from({ length: 20 }, () => shop.rest('POST', V2, { token: body.access_token })));
  expect(answers.filter(({ status }) => status === 200).map(said)).toEqual([V2_LOGGED_OUT]);
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(19);
});

test(`4.2 POST ${V2} refuses a disabled user with 400, by a bearer token`, async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  await shop.sql('update "user" set disabled = true');
  expect(said(await shop.rest('POST', V2, { token: body.access_token }))).toEqual({ status: 400, body: { detail: 'Inactive user' } });
});

test(`4.2 POST ${V2} refuses a bearer token that belongs to no session`, async () => {
  expect(said(await shop.rest('POST', V2, { as: await shop.makeUser() }))).toEqual(ANONYMOUS);
});

test.each([
  ['no body', {}],
  ['an empty object', { json: {} }],
  ['an unknown field', { json: { password: PASSWORD } }],
])(`4.2 POST ${V2} refuses a caller who is not logged in, with %s`, async (_what, request) => {
  const answer = await shop.rest('POST', V2, request);
  expect(said(answer)).toEqual(ANONYMOUS);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
});

test(`4.2 POST ${V2} with a username ends no session, whatever credentials come with it`, async () => {
  const { username } = await shop.makeUser();
  const key = await signIn(username);
  await shop.rest('POST', V2, { json: { username, password: PASSWORD }, sessionKey: key });
  expect(await shop.rest('GET', '/users/me/', { sessionKey: key })).toMatchObject({ status: 200 });
});

test(`4.2 POST ${V2} with a username names the password that is missing`, async () => {
  const { status, body } = await shop.rest('POST', V2, { json: { username: 'alice' } });
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'missing', loc: ['body', 'password'], msg: 'Field required' }] });
});

describe('with SESSION_PREFIX', () => {
  const prefixed = useShop({ SESSION_PREFIX: '/api/v1/auth' });

  test('4.2 the session router stands under SESSION_PREFIX, and nowhere else', async () => {
    const { username } = await prefixed.makeUser();
    const json = { username, password: PASSWORD };
    const { body } = await prefixed.rest('POST', '/api/v1/auth/login', { json });
    expect(said(await prefixed.rest('POST', '/api/v1/auth/logout', { json: body }))).toEqual(LOGGED_OUT);
    expect(await prefixed.rest('POST', '/session/login', { json })).toMatchObject({ status: 404 });
  });
});

describe('without LEGACY_QUERY_LOGIN', () => {
  const strict = useShop({ LEGACY_QUERY_LOGIN: 'false' });

  test(`4.2 GET ${V2} takes HTTP Basic only`, async () => {
    const { username } = await strict.makeUser();
    const credentials = { username, password: PASSWORD };
    expect(await strict.rest('GET', `${V2}?${query(credentials)}`)).toMatchObject({ status: 422 });
    expect(await strict.rest('GET', V2, { headers: { Authorization: basic(credentials) } })).toMatchObject({ status: 200 });
  });
});

function said({ status, body }: Answer) {
  return { status, body };
}

function headersOf({ headers }: Answer) {
  const { date: _date, 'x-request-id': _id, ...stable } = Object.fromEntries(headers);
  return stable;
}

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function query({ username, password }: Credentials): string {
  return new URLSearchParams({ username, password }).toString();
}

async function signIn(username?: string): Promise<string> {
  const name = username ?? (await shop.makeUser()).username;
  const { body } = await shop.rest('POST', '/session/login', { json: { username: name, password: PASSWORD } });
  return String(body.session_key);
}

function logout(sessionKey: string): Promise<Answer> {
  return shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
}
