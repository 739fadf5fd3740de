import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Piscina } from 'piscina';
import { counted } from '../support/statements.ts';
import { LOGIN_DOORS } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { sized } from '../support/sized.ts';

// Who guesses passwords is slowed down, and nobody else. What an instance remembers of an address outlives the emptying of
// the database, so each test comes from an address of its own.

const LIMITS = { LOGIN_FAILURES_PER_ACCOUNT: '3', LOGIN_FAILURES_PER_ADDRESS: '6' };
const shop = useShop({ ...LIMITS, TRUST_PROXY: '127.0.0.1' });

const WRONG = 'wrong password';
const TEXT = 'Too many failed logins; try again later';
const CHANGE = 'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

type Door = (username: string, password: string, from: string) => Promise<Answer>;

const ask = (method: string, path: string, from: string, options: RequestOptions = {}): Promise<Answer> =>
  shop.rest(method, path, { ...options, headers: { 'X-Forwarded-For': from, ...options.headers } });
const form =
  (path: string): Door =>
  (username, password, from) =>
    ask('POST', path, from, { form: { username, password } });
const basic =
  (method: string): Door =>
  (username, password, from) =>
    ask(method, '/api/v2/auth/login', from, {
      headers: { Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` },
    });
const token = form('/token');

/** Every way to sign in. */
const DOORS: [string, Door][] = LOGIN_DOORS.map(([name, enter]) => [
  name,
  (username, password, from) => enter(shop, username, password, { headers: { 'X-Forwarded-For': from } }),
]);

let addresses = 0;
const newAddress = (): string => `198.18.${Math.floor(++addresses / 250)}.${addresses % 250}`;

/** What became of the login, whatever door it was: its HTTP status, or the one that GraphQL's code stands for. */
function outcome({ status, body }: Answer): number {
  const codes: Record<string, number> = { INVALID_CREDENTIALS: 401, RATE_LIMITED: 429, UNAVAILABLE: 503, QUERY_TOO_COMPLEX: 400 };
  return codes[String(body?.errors?.[0].extensions.code)] ?? status;
}

async function outcomes(asked: (() => Promise<Answer>)[]): Promise<number[]> {
  const found: number[] = [];
  for (const one of asked) found.push(outcome(await one()));
  return found;
}

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));
const fail = (count: number, username: string, from: string, door = token) =>
  outcomes(times(count, () => () => door(username, WRONG, from)));

describe.each(DOORS)('%s', (_door, door) => {
  test('B1 after too many failures for a name: 429 with Retry-After, the same whether somebody has the name or not', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    expect(await fail(3, username, from, door)).toEqual([401, 401, 401]);
    expect(await fail(3, 'nobody', from, door)).toEqual([401, 401, 401]);
    const [known, unknown] = [await door(username, WRONG, from), await door('nobody', WRONG, from)];
    expect([outcome(known), outcome(unknown)]).toEqual([429, 429]);
    expect(comparable(known)).toBe(comparable(unknown));
    expect(known.text).toContain(TEXT);
    expect(known.text).not.toMatch(/lock|attempt|remain|account|blocked|user/i);
    const seconds = Number(known.body.errors?.[0].extensions.retryAfter ?? known.headers.get('Retry-After'));
    expect(seconds).toBeGreaterThanOrEqual(1);
    expect(seconds).toBeLessThanOrEqual(60);
  });

  test('B1 the right password waits there, too, and is hashed no more; from elsewhere it signs in, and frees nobody else', async () => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    const { username } = await shop.makeUser();
    await fail(3, username, from, door);
    const { answer, hashes } = await observed(() => door(username, PASSWORD, from));
    expect([outcome(answer), hashes]).toEqual([429, 0]);
    expect(await shop.sql('select * from session')).toEqual([]);
    expect(outcome(await door(username, PASSWORD, elsewhere))).toBe(200);
    expect(outcome(await door(username, PASSWORD, from))).toBe(429);
  });

  test('B1 a burst cannot outrun the count', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    const found = await Promise.all(times(30, () => door(username, WRONG, from)));
    expect(tally(found)).toEqual({ 401: 3, 429: 27 });
  });

  test('B2 after too many failures from one address, whatever the names, it waits; others do not', async () => {
    const [from, elsewhere] = [newAddress(), newAddress()];
    const { username } = await shop.makeUser();
    expect(await outcomes(times(6, (index) => () => door(`name${index}`, WRONG, from)))).toEqual(times(6, () => 401));
    expect([outcome(await door('another', WRONG, from)), outcome(await door(username, PASSWORD, from))]).toEqual([429, 429]);
    expect([outcome(await door('another', WRONG, elsewhere)), outcome(await door(username, PASSWORD, elsewhere))]).toEqual([401, 200]);
  });
});

describe('what is counted', () => {
  test('B1 failures at one door count at all of them', async () => {
    for (const [, last] of DOORS) {
      const from = newAddress();
      for (const [, door] of DOORS.slice(0, 3)) expect(outcome(await door('nobody', WRONG, from))).toBe(401);
      expect(outcome(await last('nobody', WRONG, from))).toBe(429);
    }
  });

  test('B1 a HEAD request is a login like any other', async () => {
    const from = newAddress();
    expect(await fail(4, 'nobody', from, basic('HEAD'))).toEqual([401, 401, 401, 429]);
    expect(outcome(await token('nobody', WRONG, from))).toBe(429);
  });

  test('B1 a burst over all doors at once cannot outrun the count', async () => {
    const from = newAddress();
    const found = await Promise.all(times(5, () => DOORS.map(([, door]) => door('nobody', WRONG, from))).flat());
    expect(tally(found)).toEqual({ 401: 3, 429: 32 });
  });

  test('B1 the current password of changePassword is guessed as slowly, one by one or all at once', async () => {
    const user = await shop.makeUser();
    const change = (current: string, from: string) =>
      ask('POST', '/graphql', from, { as: user, json: { query: CHANGE, variables: { current, new: 'a new password' } } });
    const from = newAddress();
    expect(await outcomes(times(4, () => () => change(WRONG, from)))).toEqual([401, 401, 401, 429]);
    expect(outcome(await change(PASSWORD, from))).toBe(429);
    expect(outcome(await token(user.username, PASSWORD, from))).toBe(429);
    const other = newAddress();
    expect(tally(await Promise.all(times(20, () => change(WRONG, other))))).toEqual({ 401: 3, 429: 17 });
    expect(outcome(await token(user.username, PASSWORD, newAddress()))).toBe(200);
  });

  test.each([
    ['__proto__', '__proto__'],
    ['constructor', 'constructor'],
    ['toString', 'toString'],
    ['hasOwnProperty', 'hasOwnProperty'],
    ['that is a pattern', '%'],
    ['that is SQL', "' or 1=1 --"],
    ['of 3,000 letters', 'a'.repeat(3_000)],
    ['that is an elephant', '\u{1f418}'],
  ])('B1 a name %s is counted like any other', async (_what, username) => {
    const from = newAddress();
    expect(await fail(4, username, from)).toEqual([401, 401, 401, 429]);
    expect(await fail(1, `${username}x`, from)).toEqual([401]);
  });

  test('B1 names that differ are counted apart, and none of them signs in as another', async () => {
    const from = newAddress();
    await shop.makeUser({ username: 'alice' });
    expect(await outcomes(['Alice', 'alice ', 'ALICE', 'al\u0131ce'].map((name) => () => token(name, PASSWORD, from)))).toEqual([
      401, 401, 401, 401,
    ]);
    expect(outcome(await token('alice', PASSWORD, from))).toBe(200);
  });

  test('B1 a login with the right password forgets the failures of that name there, of no other, and of no address', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    await fail(2, username, from);
    await fail(2, 'victim', from);
    expect(outcome(await token(username, PASSWORD, from))).toBe(200);
    expect(await fail(2, 'victim', from)).toEqual([401, 429]);
    expect(await fail(2, username, from)).toEqual([401, 429]);
  });

  test('B2 an attacker who signs in between the guesses is counted all the same', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    const guesses = times(7, (guess) => () => token(`victim${guess}`, WRONG, from));
    const own = () => token(username, PASSWORD, from);
    const found = await outcomes(guesses.flatMap((guess, at) => (at < 6 ? [own, guess] : [guess])));
    expect(found).toEqual([...times(6, () => [200, 401]).flat(), 429]);
  });

  test('B2 a burst over many names cannot outrun the count of its address', async () => {
    const from = newAddress();
    const found = await Promise.all(times(40, (index) => token(`name${index}`, WRONG, from)));
    expect(tally(found)).toEqual({ 401: 6, 429: 34 });
  });

  test('B2 whoever has a network of IPv6 addresses has one address, and an IPv4 address in the clothes of IPv6 is that address', async () => {
    const hosts = times(7, (index) => `2001:db8:${addresses}:1:${index}::${index + 1}`);
    expect(await outcomes(hosts.map((from, index) => () => token(`name${index}`, WRONG, from)))).toEqual([
      401, 401, 401, 401, 401, 401, 429,
    ]);
    expect(outcome(await token('name', WRONG, `2001:db8:${addresses}:2::1`))).toBe(401);
    const address = newAddress();
    expect(await fail(3, 'nobody', address)).toEqual([401, 401, 401]);
    expect(await fail(1, 'nobody', `::ffff:${address}`)).toEqual([429]);
  });

  test('B3 many logins with the right password are never refused, one by one or many at once', async () => {
    const from = newAddress();
    const users = [await shop.makeUser(), await shop.makeUser(), await shop.makeUser()];
    await fail(2, String(users[0]?.username), from);
    const logins = sized(1_000, 63);
    let left = logins;
    const found = new Map<number, number>();
    const client = async (): Promise<void> => {
      while (left > 0) {
        const turn = left--;
        const [, door] = DOORS[turn % DOORS.length] ?? ['', token];
        const status = outcome(await door(String(users[turn % users.length]?.username), PASSWORD, from));
        found.set(status, (found.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(times(24, client));
    expect([...found]).toEqual([[200, logins]]);
  });

  test('B3 what is malformed or stands at another door is no failure of a login', async () => {
    const from = newAddress();
    const { username } = await shop.makeUser();
    const asked = [
      () => ask('POST', '/token', from, { form: { username } }),
      () => ask('POST', '/session/login', from, { json: { username, password: 1 } }),
      () => ask('POST', '/session/login', from, { body: '{', headers: { 'Content-Type': 'application/json' } }),
      () => ask('POST', '/token', from, { json: { username, password: WRONG } }),
      () => ask('GET', '/users/me/', from, { token: 'x.y.z' }),
      () => ask('POST', '/token', from, { form: { grant_type: 'refresh_token', refresh_token: 'x' } }),
    ];
    for (let round = 0; round < 3; round++) await outcomes(asked);
    expect(outcome(await token(username, PASSWORD, from))).toBe(200);
    expect(await shop.sql('select * from login_failure')).toEqual([]);
  });
});

const ADDRESS_HEADERS = [
  'X-Forwarded-For',
  'Forwarded',
  'X-Real-IP',
  'True-Client-IP',
  'CF-Connecting-IP',
  'X-Client-IP',
  'Client-IP',
  'X-Cluster-Client-IP',
  'X-Originating-IP',
  'X-Remote-Addr',
];
const headerFor = (name: string) => ({ [name]: name === 'Forwarded' ? `for=${newAddress()}` : newAddress() });

describe('addresses that a client makes up', () => {
  const direct = new Shop({ ...LIMITS, LOGIN_FAILURES_PER_ADDRESS: '1000' });
  const behindOther = new Shop({ ...LIMITS, LOGIN_FAILURES_PER_ADDRESS: '1000', TRUST_PROXY: '10.0.0.0/8,2001:db8::/32' });
  beforeAll(async () => void (await Promise.all([direct.start(), behindOther.start()])));
  afterAll(async () => void (await Promise.all([direct.stop(), behindOther.stop()])));

  test.each<[string, () => Shop]>([
    ['where no proxy is configured', () => direct],
    ['from a peer that is none of the proxies', () => behindOther],
  ])('B5 no header is believed %s', async (where, at) => {
    const login = (headers: Record<string, string>) => at().rest('POST', '/token', { form: { username: where, password: WRONG }, headers });
    expect(await outcomes(times(3, () => () => login({})))).toEqual([401, 401, 401]);
    expect(await outcomes(ADDRESS_HEADERS.map((name) => () => login(headerFor(name))))).toEqual(ADDRESS_HEADERS.map(() => 429));
    expect(outcome(await login(Object.assign({}, ...ADDRESS_HEADERS.map(headerFor)) as Record<string, string>))).toBe(429);
  });

  test('B5 from a proxy, too, there is one header for it', async () => {
    const from = newAddress();
    const others = ADDRESS_HEADERS.slice(1);
    const login = (headers: Record<string, string>) =>
      ask('POST', '/token', from, { form: { username: 'nobody', password: WRONG }, headers });
    expect(await outcomes(times(3, () => () => login({})))).toEqual([401, 401, 401]);
    expect(await outcomes(others.map((name) => () => login(headerFor(name))))).toEqual(others.map(() => 429));
  });

  test('B5 of the addresses that a proxy forwards, only the one that it has seen itself counts', async () => {
    const from = newAddress();
    expect(await outcomes(times(4, (index) => () => token('nobody', WRONG, `192.0.2.${index}, 203.0.113.${index}, ${from}`)))).toEqual([
      401, 401, 401, 429,
    ]);
    expect(outcome(await token('nobody', WRONG, from))).toBe(429);
    expect(outcome(await token('nobody', WRONG, `${from}, ${newAddress()}`))).toBe(401);
  });

  test('B5 what a proxy forwards and is no address is served, and counted together', async () => {
    const made = ['unknown', 'evil.example', '1.2.3.4.5', '999.1.1.1', "' or 1=1 --", '<script>', '_hidden'];
    expect(await outcomes(made.map((from, index) => () => token(`made ${index}`, WRONG, from)))).toEqual([
      401, 401, 401, 401, 401, 401, 429,
    ]);
  });
});

/** All of an answer but the time, the name of the request, and the seconds that are left. */
function comparable({ status, headers, text }: Answer): string {
  const kept = [...headers].filter(([name]) => !['date', 'x-request-id', 'retry-after'].includes(name));
  return JSON.stringify([status, kept, text.replace(/"retryAfter":\d+/, '')]);
}

function tally(answers: Answer[]): Record<number, number> {
  const found: Record<number, number> = {};
  for (const answer of answers) found[outcome(answer)] = (found[outcome(answer)] ?? 0) + 1;
  return found;
}

/** What was done, and how many hashes and statements it took. */
async function observed<T>(work: () => Promise<T>): Promise<{ answer: T; hashes: number; statements: number }> {
  const run: unknown = Reflect.get(Piscina.prototype, 'run');
  let hashes = 0;
  Piscina.prototype.run = function (this: Piscina, ...args: unknown[]): unknown {
    hashes++;
    return Reflect.apply(run as () => unknown, this, args);
  } as typeof Piscina.prototype.run;
  try {
    const { answer, statements } = await counted(work);
    return { answer, hashes, statements: statements.length };
  } finally {
    Reflect.set(Piscina.prototype, 'run', run);
  }
}
