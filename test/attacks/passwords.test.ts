import { expect, test } from '../support/jest.ts';
import { observeHashing } from '../support/hashes.ts';
import { LOGIN_ENDPOINTS } from '../support/logins.ts';
import { LOWEST_COST, PASSWORD, useShop, type Answer } from '../support/shop.ts';

// Values in place of a name or a password. Only strings reach a statement or a hash, and every
// string is taken unchanged.

const shop = useShop();
const FORM = 'application/x-www-form-urlencoded';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

const FORMS = ['/token', '/login'];

/** Expected outcomes, with the work of the hashes. */
const LOGGED_IN = 'logged in';
const HASHED = `wrong, ${2 ** LOWEST_COST} rounds`;
const BAD_INPUT = 'bad input, 0 statements, 0 rounds';

/** Returns the outcome of a login, with its statements and the work of its hashes. */
async function outcomeOf(send: () => Promise<Answer>): Promise<string> {
  const { answer, statements, work } = await observeHashing(send);
  const { status, text, body } = answer;
  if (/Incorrect (username or|login and\/or) password/.test(text)) return `wrong, ${work} rounds`;
  const isBad = status === 422 || body?.errors?.[0].extensions.code === 'BAD_USER_INPUT';
  if (isBad) return `bad input, ${statements.length} statements, ${work} rounds`;
  if (status !== 200 || body.errors) return `${status}, ${statements.length} statements`;
  return LOGGED_IN;
}

async function everywhere(username: string, password: string): Promise<string[]> {
  const found = [];
  for (const [, enter] of LOGIN_ENDPOINTS)
    found.push(await outcomeOf(() => enter(shop, username, password)));
  return [...new Set(found)];
}

test('W1 more than 72 bytes are hashed like any other wrong password, at every endpoint', async () => {
  const password = 'x'.repeat(72);
  const { username } = await shop.makeUser({ password });
  for (const longer of [`${password}x`, `${password}\0`, password.repeat(10), `${'é'.repeat(36)}x`])
    expect(await everywhere(username, longer)).toEqual([HASHED]);
  expect(await everywhere(username, password)).toEqual([LOGGED_IN]);
});

test.each(['x'.repeat(73), `${'🐘'.repeat(18)}x`])(
  'W1 a password of more than 72 bytes cannot be set: %s',
  async (next) => {
    const user = await shop.makeUser();
    const { answer, work } = await observeHashing(() =>
      shop.graphql(CHANGE, { current: PASSWORD, new: next }, { as: user }),
    );
    expect([answer.status, answer.body.data, work]).toEqual([200, null, 0]);
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'new', message: 'A password must have at most 72 bytes' }],
    });
  },
);

test.each<[string, string, string[]]>([
  ['64 ASCII characters', 'Az 09~!@'.repeat(8), ['az 09~!@'.repeat(8), 'Az 09~!@'.repeat(7)]],
  ['18 emoji', '🐘'.repeat(18), ['🐘'.repeat(17) + '🐙']],
  ['a composed letter', 'caf\u00e9 cr\u00e8me', ['cafe\u0301 cr\u00e8me']],
  ['a NUL', 'before\0after', ['before', 'before\0', 'before\0other', 'beforeafter']],
])('W2 %s: set and accepted unchanged at every endpoint', async (_what, password, others) => {
  const user = await shop.makeUser();
  const { body } = await shop.graphql(CHANGE, { current: PASSWORD, new: password }, { as: user });
  expect(body.errors).toBeUndefined();
  expect(await everywhere(user.username, password)).toEqual([LOGGED_IN]);
  for (const other of others) expect(await everywhere(user.username, other)).toEqual([HASHED]);
});

test.each(['', 'ali\0ce'])('W5 the name %j is bad input', async (username) => {
  for (const [, enter] of LOGIN_ENDPOINTS.filter(([name]) => !name.startsWith('GET')))
    expect(await outcomeOf(() => enter(shop, username, PASSWORD))).toBe(BAD_INPUT);
});

test('W4 an empty password is hashed like any other, and a megabyte is not', async () => {
  const { username } = await shop.makeUser();
  expect(await everywhere(username, '')).toEqual([HASHED]);
  for (const [name, enter] of LOGIN_ENDPOINTS)
    expect(await outcomeOf(() => enter(shop, username, 'x'.repeat(1_048_576)))).toBe(
      `${name.includes('GET') ? 431 : 413}, 0 statements`,
    );
});

test.each([
  ['Basic Og==', 422],
  ['Basic !!!!', 401],
])('W4 %j holds no usable credentials: %i, without hashing', async (Authorization, status) => {
  const { answer, statements, work } = await observeHashing(() =>
    shop.rest('GET', '/api/v2/auth/login', { headers: { Authorization } }),
  );
  expect([answer.status, statements, work]).toEqual([status, [], 0]);
});

test.each(['\u202eecila', '__proto__', "alice'--", 'a'.repeat(3_000)])(
  'W5 the name %j is unknown at every endpoint',
  async (name) => {
    await shop.makeUser({ username: 'alice' });
    expect(await everywhere(name, PASSWORD)).toEqual([HASHED]);
  },
);

const PASSWORD_FIELD = new URLSearchParams({ password: PASSWORD }).toString();
test.each([
  [`username=a&username=b&${PASSWORD_FIELD}`, 'username', 'string_type'],
  [`username[$ne]=x&${PASSWORD_FIELD}`, 'username', 'missing'],
  ['username=a', 'password', 'missing'],
  ['username=a&password=a&password=b', 'password', 'string_type'],
  [`username=a&${PASSWORD_FIELD}&scope=a&scope=b`, 'scope', 'string_type'],
])('W6 the form or query %s is rejected before any statement', async (text, field, type) => {
  const headers = { 'Content-Type': FORM };
  const requests: [string, () => Promise<Answer>][] = FORMS.map((path) => [
    'body',
    () => shop.rest('POST', path, { body: text, headers }),
  ]);
  // The query has no scope.
  if (field !== 'scope')
    requests.push(['query', () => shop.rest('GET', `/api/v2/auth/login?${text}`)]);
  for (const [part, send] of requests) {
    const { answer, statements, work } = await observeHashing(send);
    expect([answer.status, statements, work]).toEqual([422, [], 0]);
    expect(answer.body.detail).toMatchObject([{ type, loc: [part, field] }]);
  }
});

test.each([
  ['', LOGGED_IN],
  ['grant_type=password', LOGGED_IN],
  ['client_id=x&client_secret=y&unknown=1&username[$ne]=x', LOGGED_IN],
  ['grant_type=x', BAD_INPUT],
])('W7 a form with %j beside name and password: %s', async (extra, outcome) => {
  const { username } = await shop.makeUser();
  const body = `username=${username}&${PASSWORD_FIELD}&${extra}`;
  for (const path of FORMS) {
    const headers = { 'Content-Type': `${FORM}; charset=UTF-8` };
    expect(await outcomeOf(() => shop.rest('POST', path, { body, headers }))).toBe(outcome);
  }
});

test('W7 a requested scope narrows the scopes of the user, and never adds to them', async () => {
  const { username } = await shop.makeUser({ scopes: ['blog:write'] });
  const form = { username, password: PASSWORD, scope: 'products:write  users:read * blog:write' };
  const { body } = await shop.rest('POST', '/token', { form });
  const [, claims = ''] = String(body.access_token).split('.');
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
    scopes: ['blog:write'],
  });
});
