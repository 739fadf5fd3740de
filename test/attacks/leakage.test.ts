import { expect, test } from '../support/jest.ts';
import { createRefreshToken } from '../../src/features/auth/tokens/token.ts';
import { redactor, REDACTED } from '../../src/core/redact.ts';
import { Recorder } from '../support/leaks.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';
import { TEST_SECRET } from '../support/databases.ts';

const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3', TRUST_PROXY: '127.0.0.1' });

const HASH = `$2b$10$${'C'.repeat(53)}`;
const TOKEN = `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.${'a'.repeat(43)}`;
const KEY = 'k'.repeat(43);

test.each<[string, 'answer' | 'log', string]>([
  ['a response with a hash', 'answer', HASH],
  ['a response with the secret', 'answer', TEST_SECRET],
  ['a log line with a hash', 'log', HASH],
  ['a log line with a token', 'log', TOKEN],
  ['a log line with the secret', 'log', TEST_SECRET],
])('X1 the suite checks every response and log line, and finds %s', (_what, kind, text) => {
  const recorder = new Recorder();
  recorder.answer(`{"session_key":"${KEY}"}`);
  recorder.log('{"msg":"signed in"}');
  expect(() => recorder.assertClean()).not.toThrow();
  recorder[kind](`{"msg":"${text}"}`);
  expect(() => recorder.assertClean()).toThrow(kind === 'log' ? 'in the log' : 'in an answer');
});

test('X1 responses and log lines of this shop are checked', async () => {
  const before = shop.recorder.checked;
  await shop.rest('POST', '/token', { form: { username: 'nobody', password: 'wrong' } });
  expect(shop.recorder.checked).toBeGreaterThanOrEqual(before + 2);
});

const CANARY = 'canary-Pa55word-9f1c';

// Every place where a client can send a secret, in every invalid form.
const CARRIED: [string, string, string, RequestOptions][] = [
  ['a password in a form', 'POST', '/token', { form: { username: CANARY, password: CANARY } }],
  [
    'a refresh token in a form',
    'POST',
    '/token',
    { form: { grant_type: 'refresh_token', refresh_token: CANARY } },
  ],
  ['a password in JSON', 'POST', '/session/login', { json: { username: 'ada', password: CANARY } }],
  [
    'a password of the wrong type',
    'POST',
    '/session/login',
    { json: { username: 'ada', password: [CANARY] } },
  ],
  ['a session key', 'POST', '/session/logout', { json: { session_key: CANARY } }],
  ['a password in a query', 'GET', `/api/v2/auth/login?username=ada&password=${CANARY}`, {}],
  [
    'a password by Basic',
    'GET',
    '/api/v2/auth/login',
    { headers: { Authorization: `Basic ${btoa(`ada:${CANARY}`)}` } },
  ],
  [
    'a body that is not JSON',
    'POST',
    '/session/login',
    { body: `{"password":"${CANARY}`, headers: { 'Content-Type': 'application/json' } },
  ],
  ['a token', 'GET', '/users/me/', { token: CANARY }],
  ['a session key in a header', 'GET', '/users/me/', { sessionKey: CANARY }],
  [
    'an Idempotency-Key',
    'POST',
    '/api/v1/shop/product/',
    { json: {}, headers: { 'Idempotency-Key': CANARY } },
  ],
];

test.each(CARRIED)(
  'X2 %s is in no response and no log line',
  async (_what, method, path, request) => {
    await shop.makeUser({ username: 'ada' });
    const { text } = await shop.rest(method, path, request);
    expect(foundIn(text, CANARY)).toEqual([]);
    expect(foundIn(text, btoa(`ada:${CANARY}`))).toEqual([]);
  },
);

test.each([
  ['a password', 'mutation ($p: String!) { login(username: "ada", password: $p) { sessionKey } }'],
  [
    'a password of the wrong type',
    'mutation ($p: [String!]!) { login(username: "ada", password: $p) { sessionKey } }',
  ],
  [
    'a password in an invalid document',
    `mutation { login(username: "ada", password: "${CANARY}", x: 1) { sessionKey } }`,
  ],
])('X2 %s by GraphQL is in no response and no log line', async (_what, query) => {
  await shop.makeUser({ username: 'ada' });
  const { text } = await shop.graphql(query, { p: CANARY });
  expect(foundIn(text, CANARY)).toEqual([]);
});

test('X2 the log holds no issued credentials, and names a session by 8 digits of its hash', async () => {
  const user = await shop.makeUser();
  const session = await shop.rest('POST', '/session/login', {
    json: { username: user.username, password: PASSWORD },
  });
  const query = `mutation { login(username: "${user.username}", password: "${PASSWORD}") { accessToken refreshToken sessionKey } }`;
  const { login } = (await shop.graphql(query)).body.data;
  for (const secret of [session.body.session_key, ...Object.values(login), PASSWORD] as string[]) {
    for (const line of shop.logged) expect(line).not.toContain(secret);
  }
  const [stored] = await shop.sql(
    "select encode(key_hash, 'hex') as fingerprint from session order by created_at limit 1",
  );
  expect(events('auth.login')[0]?.['session']).toBe(String(stored?.['fingerprint']).slice(0, 8));
});

test('X2 an internal error repeats no input, in the response or in the log', async () => {
  const user = await shop.makeUser();
  await shop.sql('alter table login_failure rename to login_failure_away');
  try {
    const failed = await shop.rest('POST', '/session/login', {
      json: { username: CANARY, password: CANARY },
    });
    expect(failed.status).toBe(500);
    expect(foundIn(failed.text, CANARY)).toEqual([]);
    const known = await shop.rest('POST', '/token', {
      form: { username: user.username, password: PASSWORD },
    });
    expect(foundIn(known.text, PASSWORD)).toEqual([]);
  } finally {
    await shop.sql('alter table login_failure_away rename to login_failure');
  }
});

test.each([
  ['a hash', HASH],
  ['a token', TOKEN],
  ['a configured secret', TEST_SECRET],
  ['a database password', 'postgresql://shop:p%40ss@db/shop'],
  ['a JSON member', '{"sessionKey":"abc","n":1}'],
  ['a query', '/api/v2/auth/login?username=a&password=abc'],
])('X2 the redactor removes %s', (_what, text) => {
  const redact = redactor({
    signingSecrets: [TEST_SECRET],
    databaseUrl: 'postgresql://shop:p%40ss@db/shop',
    databaseReplicaUrl: 'postgresql://shop:r%40ss@replica/shop',
  });
  const found = redact(`before ${text} after`);
  expect(found).toContain(REDACTED);
  for (const secret of [HASH, TOKEN, KEY, TEST_SECRET, 'p%40ss', 'p@ss', 'r@ss', 'abc', 'bc"'])
    expect(found).not.toContain(secret);
  expect(found).toMatch(/^before .* after$/);
});

test('X5 each decision about a caller is one event with time in UTC, request, user, address and outcome', async () => {
  const address = { 'X-Forwarded-For': '192.0.2.7' };
  const user = await shop.makeUser({ username: 'ada' });
  const disabled = await shop.makeUser({ username: 'zoe', disabled: true });
  const login = (username: string, password: string) =>
    shop.rest('POST', '/token', { form: { username, password }, headers: address });
  const { access_token: token } = (await login('ada', PASSWORD)).body;
  await login('ada', 'wrong');
  await login('nobody', 'wrong');
  await login('zoe', PASSWORD);
  await shop.rest('GET', '/users/me/', { token: 'none', headers: address });
  await shop.rest('GET', '/users/me/', { as: disabled, headers: address });
  await shop.rest('GET', '/users/me/', { sessionKey: KEY, headers: address });
  await shop.rest('POST', '/api/v1/shop/product/', { as: user, json: {}, headers: address });
  await shop.rest('POST', '/token', {
    form: { grant_type: 'refresh_token', refresh_token: 'none' },
    headers: address,
  });
  const now = shop.now();
  const gone = createRefreshToken(
    shop.context(),
    { sid: crypto.randomUUID(), generation: 0 },
    new Date(now.getTime() + 60_000),
    now,
  );
  await shop.rest('POST', '/token', {
    form: { grant_type: 'refresh_token', refresh_token: gone },
    headers: address,
  });
  await shop.rest('POST', '/session/logout', { json: { session_key: KEY }, headers: address });
  await shop.rest('POST', '/api/v2/auth/login', { token, headers: address });
  for (let count = 0; count < 4; count++) await login('other', 'wrong');
  const found = events(/^auth\./).map(({ event, outcome, user: name }) => [event, outcome, name]);
  expect(found).toEqual([
    ['auth.login', 'success', 'ada'],
    ['auth.login', 'failure', 'ada'],
    ['auth.login', 'failure', null],
    ['auth.login', 'failure', 'zoe'],
    ['auth.token', 'failure', null],
    ['auth.inactive', 'failure', 'zoe'],
    ['auth.session', 'failure', null],
    ['auth.forbidden', 'failure', 'ada'],
    ['auth.refresh', 'failure', null],
    ['auth.refresh', 'failure', null],
    ['auth.logout', 'failure', null],
    ['auth.logout', 'success', 'ada'],
    ...Array.from({ length: 3 }, () => ['auth.login', 'failure', null]),
    ['auth.throttle', 'failure', null],
  ]);
  for (const event of events(/^auth\./)) {
    expect(event).toMatchObject({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      requestId: expect.stringMatching(/^[\da-f-]{36}$/),
      ip: '192.0.2.7',
    });
  }
});

test('X5 client input cannot forge log lines: it is a value within one', async () => {
  const forged = '\n{"event":"auth.login","outcome":"success","user":"admin"}';
  await shop.makeUser({ username: 'ada' });
  await shop.rest('POST', '/session/login', { json: { username: forged, password: forged } });
  await shop.rest('GET', '/users/me/', {
    sessionKey: encodeURIComponent(forged),
    headers: { 'User-Agent': encodeURIComponent(forged) },
  });
  for (const line of shop.logged) expect(() => JSON.parse(line) as unknown).not.toThrow();
  expect(events('auth.login').map(({ user }) => user)).toEqual([null]);
});

function events(name: string | RegExp): Record<string, unknown>[] {
  return shop.logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => (typeof name === 'string' ? event === name : name.test(String(event))));
}

/** Returns the response and the log lines that contain the secret. */
function foundIn(answer: string, secret: string): string[] {
  return [answer, ...shop.logged].filter((text) => text.includes(secret));
}
