import { describe, expect, test } from '../support/jest.ts';
import { observeHashing } from '../support/hashes.ts';
import { LOGIN_ENDPOINTS } from '../support/logins.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { sized } from '../support/sized.ts';

// Only password guesses are throttled.

const LIMIT = { LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' };
const shop = useShop(
  { ...LIMIT, TRUST_PROXY: '127.0.0.1' },
  { loginFailuresPerAddressPer10Minutes: 6 },
);

const WRONG = 'wrong password';
const TEXT = 'Too many failed logins; try again later';
const CHANGE =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

type Login = (username: string, password: string, from: string) => Promise<Answer>;

const ask = (
  method: string,
  path: string,
  from: string,
  options: RequestOptions = {},
): Promise<Answer> =>
  shop.rest(method, path, { ...options, headers: { 'X-Forwarded-For': from, ...options.headers } });
const form =
  (path: string): Login =>
  (username, password, from) =>
    ask('POST', path, from, { form: { username, password } });
const token = form('/token');

/** Every way to sign in. */
const ENDPOINTS: [string, Login][] = LOGIN_ENDPOINTS.map(([name, enter]) => [
  name,
  (username, password, from) =>
    enter(shop, username, password, { headers: { 'X-Forwarded-For': from } }),
]);

let addresses = 0;
const newAddress = (): string => `198.18.${Math.floor(++addresses / 250)}.${addresses % 250}`;

/** Returns the HTTP status of a login, or the status equivalent to its GraphQL error code. */
function outcome({ status, body }: Answer): number {
  const codes: Record<string, number> = {
    INVALID_CREDENTIALS: 401,
    RATE_LIMITED: 429,
    UNAVAILABLE: 503,
    QUERY_TOO_COMPLEX: 400,
  };
  return codes[String(body?.errors?.[0].extensions.code)] ?? status;
}

async function outcomes(requests: (() => Promise<Answer>)[]): Promise<number[]> {
  const found: number[] = [];
  for (const request of requests) found.push(outcome(await request()));
  return found;
}

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const fail = (count: number, username: string, from: string, login = token) =>
  outcomes(times(count, () => () => login(username, WRONG, from)));

describe.each(ENDPOINTS)('%s', (_name, login) => {
  test('B1 after too many failures for a name: 429 with Retry-After, the same for known and unknown names', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    expect(await fail(3, username, from, login)).toEqual([401, 401, 401]);
    expect(await fail(3, 'nobody', from, login)).toEqual([401, 401, 401]);
    const [known, unknown] = [
      await login(username, WRONG, from),
      await login('nobody', WRONG, from),
    ];
    expect([outcome(known), outcome(unknown)]).toEqual([429, 429]);
    expect(comparable(known)).toBe(comparable(unknown));
    expect(known.text).toContain(TEXT);
    expect(known.text).not.toMatch(/lock|attempt|remain|account|blocked|user/i);
    const seconds = Number(
      known.body.errors?.[0].extensions.retryAfter ?? known.headers.get('Retry-After'),
    );
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  });

  test('B1 the correct password is 429 there, too, unhashed; from elsewhere it signs in, and resets no other address', async () => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    const { username } = await shop.makeUser();
    await fail(3, username, from, login);
    const { answer, tasks } = await observeHashing(() => login(username, PASSWORD, from));
    expect([outcome(answer), tasks]).toEqual([429, 0]);
    expect(await shop.sql('select * from session')).toEqual([]);
    expect(outcome(await login(username, PASSWORD, elsewhere))).toBe(200);
    expect(outcome(await login(username, PASSWORD, from))).toBe(429);
  });

  test('B2 too many failures from one address, whatever the names, throttle that address only', async () => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    const { username } = await shop.makeUser();
    expect(await outcomes(times(6, (index) => () => login(`name${index}`, WRONG, from)))).toEqual(
      times(6, () => 401),
    );
    expect([
      outcome(await login('another', WRONG, from)),
      outcome(await login(username, PASSWORD, from)),
    ]).toEqual([429, 429]);
    expect([
      outcome(await login('another', WRONG, elsewhere)),
      outcome(await login(username, PASSWORD, elsewhere)),
    ]).toEqual([401, 200]);
  });
});

describe('counting', () => {
  test('B1 failures at one endpoint count at all of them', async () => {
    for (const [, last] of ENDPOINTS) {
      const from = newAddress();
      for (const [, login] of ENDPOINTS.slice(0, 3))
        expect(outcome(await login('nobody', WRONG, from))).toBe(401);
      expect(outcome(await last('nobody', WRONG, from))).toBe(429);
    }
  });

  test('B1 concurrent guesses at all endpoints cannot exceed the limit', async () => {
    const from = newAddress();
    const found = await Promise.all(
      times(5, () => ENDPOINTS.map(([, login]) => login('nobody', WRONG, from))).flat(),
    );
    expect(countByStatus(found)).toEqual({ 401: 3, 429: 32 });
  });

  test('B1 changePassword throttles guesses of the current password, sequential or concurrent', async () => {
    const user = await shop.makeUser();
    const change = (current: string, from: string) =>
      ask('POST', '/graphql', from, {
        as: user,
        json: { query: CHANGE, variables: { current, new: 'a new password' } },
      });
    const from = newAddress();
    expect(await outcomes(times(4, () => () => change(WRONG, from)))).toEqual([401, 401, 401, 429]);
    expect(outcome(await change(PASSWORD, from))).toBe(429);
    expect(outcome(await token(user.username, PASSWORD, from))).toBe(429);
    const other = newAddress();
    expect(countByStatus(await Promise.all(times(20, () => change(WRONG, other))))).toEqual({
      401: 3,
      429: 17,
    });
    expect(outcome(await token(user.username, PASSWORD, newAddress()))).toBe(200);
  });

  test('B1 a correct password resets the failures of that name there, of no other, and of no address', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    await fail(2, username, from);
    await fail(2, 'victim', from);
    expect(outcome(await token(username, PASSWORD, from))).toBe(200);
    expect(await fail(2, 'victim', from)).toEqual([401, 429]);
    expect(await fail(2, username, from)).toEqual([401, 429]);
    const elsewhere = newAddress();
    await fail(2, username, elsewhere);
    expect(outcome(await token(username, PASSWORD, elsewhere))).toBe(200);
    expect(await fail(4, username, elsewhere)).toEqual([401, 401, 401, 429]);
  });

  test('B2 an attacker who signs in between the guesses is counted all the same', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    const guesses = times(7, (guess) => () => token(`victim${guess}`, WRONG, from));
    const own = () => token(username, PASSWORD, from);
    const found = await outcomes(guesses.flatMap((guess, at) => (at < 6 ? [own, guess] : [guess])));
    expect(found).toEqual([...times(6, () => [200, 401]).flat(), 429]);
  });

  test('B2 an IPv6 network counts as one address, and an IPv4-mapped address as its IPv4 address', async () => {
    const hosts = times(7, (index) => `2001:db8:${addresses}:1:${index}::${index + 1}`);
    expect(
      await outcomes(hosts.map((from, index) => () => token(`name${index}`, WRONG, from))),
    ).toEqual([401, 401, 401, 401, 401, 401, 429]);
    expect(outcome(await token('name', WRONG, `2001:db8:${addresses}:2::1`))).toBe(401);
    const address = newAddress();
    expect(await fail(3, 'nobody', address)).toEqual([401, 401, 401]);
    expect(await fail(1, 'nobody', `::ffff:${address}`)).toEqual([429]);
  });

  test('B3 correct passwords are never rejected, sequential or concurrent', async () => {
    const from = newAddress();
    const users = [await shop.makeUser(), await shop.makeUser(), await shop.makeUser()];
    await fail(2, String(users[0]?.username), from);
    const logins = sized(1_000, 63);
    let remaining = logins;
    const found = new Map<number, number>();
    const client = async (): Promise<void> => {
      while (remaining > 0) {
        const turn = remaining--;
        const [, login] = ENDPOINTS[turn % ENDPOINTS.length] ?? ['', token];
        const status = outcome(
          await login(String(users[turn % users.length]?.username), PASSWORD, from),
        );
        found.set(status, (found.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(times(24, client));
    expect([...found]).toEqual([[200, logins]]);
  });

  test('B3 malformed requests and other endpoints count as no login failure', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    const requests = [
      () => ask('POST', '/token', from, { form: { username } }),
      () => ask('POST', '/session/login', from, { json: { username, password: 1 } }),
      () =>
        ask('POST', '/session/login', from, {
          body: '{',
          headers: { 'Content-Type': 'application/json' },
        }),
      () => ask('POST', '/token', from, { json: { username, password: WRONG } }),
      () => ask('GET', '/users/me/', from, { token: 'x.y.z' }),
      () =>
        ask('POST', '/token', from, { form: { grant_type: 'refresh_token', refresh_token: 'x' } }),
    ];
    for (let round = 0; round < 3; round++) await outcomes(requests);
    expect(outcome(await token(username, PASSWORD, from))).toBe(200);
    expect(await shop.sql('select * from login_failure')).toEqual([]);
  });
});

/** Returns a response without Date, X-Request-Id and Retry-After. */
function comparable({ status, headers, text }: Answer): string {
  const compared = [...headers].filter(
    ([name]) => !['date', 'x-request-id', 'retry-after'].includes(name),
  );
  return JSON.stringify([status, compared, text.replace(/"retryAfter":\d+/, '')]);
}

function countByStatus(answers: Answer[]): Record<number, number> {
  const found: Record<number, number> = {};
  for (const answer of answers) found[outcome(answer)] = (found[outcome(answer)] ?? 0) + 1;
  return found;
}
