import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import bcrypt from 'bcrypt';
import { Piscina } from 'piscina';
import { counted } from '../support/statements.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

// Hashing is dear. However many passwords come in at once, a few are hashed, some wait, and the rest is told to come back.
// Two logins of users with very slow hashes hold both threads, so that what happens meanwhile does not depend on the machine.

const THREADS = 2;
const QUEUE = 64;
const LOGINS = 200;
const WRONG = 'wrong password';
const LOGIN = 'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey } }';
const CHANGE = 'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';

// How long the last in the line waits is the machine's affair.
const shop = useShop({
  HASH_THREADS: String(THREADS),
  REQUEST_DEADLINE_MS: '100000',
  LOGIN_FAILURES_PER_ACCOUNT: '100000',
  LOGIN_FAILURES_PER_ADDRESS: '100000',
});

/** The hashes that were given to the threads, and by whom. */
const seen = { started: 0, pools: new Set<Piscina>(), testsOver: 0 };
const run: unknown = Reflect.get(Piscina.prototype, 'run');
beforeAll(() => {
  Piscina.prototype.run = function (this: Piscina, ...args: unknown[]): unknown {
    seen.started++;
    seen.pools.add(this);
    return Reflect.apply(run as () => unknown, this, args);
  } as typeof Piscina.prototype.run;
});
afterAll(() => void Reflect.set(Piscina.prototype, 'run', run));
beforeEach(() => void (seen.started = 0));
afterEach(() => void seen.testsOver++);

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));
const token = (username: string, password = WRONG): Promise<Answer> => shop.rest('POST', '/token', { form: { username, password } });
const slowHash = bcrypt.hash(PASSWORD, 14);

/** Resolves when so many hashes have been given to the threads. */
async function startedReach(count: number): Promise<void> {
  const own = seen.testsOver;
  while (seen.started < count) {
    if (own !== seen.testsOver) throw new Error(`${seen.started} of ${count} were given to the threads`);
    await new Promise((done) => setImmediate(done));
  }
}

/** Takes both threads, and resolves when they are taken. `ended` is when the first is free again. */
async function takeThreads(): Promise<{ isFree: () => boolean; ended: Promise<Answer[]> }> {
  let free = false;
  const users = await Promise.all(times(THREADS, async () => shop.makeUser({ hashedPassword: await slowHash })));
  const before = seen.started;
  const held = users.map(async ({ username }) => {
    const answer = await token(username, PASSWORD);
    free = true;
    return answer;
  });
  await startedReach(before + THREADS);
  return { isFree: () => free, ended: Promise.all(held) };
}

/** Takes both threads and all places behind them. */
async function fill(): Promise<{ isFree: () => boolean; ended: Promise<Answer[]> }> {
  const { isFree, ended } = await takeThreads();
  const before = seen.started;
  const waiting = times(QUEUE, (index) => token(`waiting${index}`));
  await startedReach(before + QUEUE);
  return { isFree, ended: Promise.all([ended, ...waiting]).then((answers) => answers.flat()) };
}

function tally(answers: Answer[]): Record<number, number> {
  const found: Record<number, number> = {};
  for (const { status } of answers) found[status] = (found[status] ?? 0) + 1;
  return found;
}

describe('200 logins at once', () => {
  test('B7 two are hashed, 64 wait, and the rest is told at once to come back in a second', async () => {
    const { isFree, ended } = await takeThreads();
    const others = times(LOGINS - THREADS, async (index) => {
      const answer = await token(`name${index}`);
      return { answer, isEarly: !isFree() };
    });
    const refused = (await Promise.all([Promise.all(others), ended]))[0].filter(({ answer }) => answer.status === 503);
    expect(tally((await Promise.all(others)).map(({ answer }) => answer))).toEqual({ 401: QUEUE, 503: LOGINS - THREADS - QUEUE });
    expect(tally(await ended)).toEqual({ 200: THREADS });
    for (const { answer, isEarly } of refused) {
      expect([isEarly, answer.headers.get('Retry-After'), answer.body]).toEqual([
        true,
        '1',
        { detail: 'The service is not available at the moment' },
      ]);
      expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    }
    expect(seen.started).toBe(THREADS + QUEUE);
    // What was not hashed was not wrong.
    const [row] = await shop.sql("select max(points) as points from login_failure where key like 'network%'");
    expect(Number(row?.['points'])).toBe(QUEUE);
  });

  test('B7 without anyone in the way, too, each is answered, none is lost, and the door is open afterwards', async () => {
    const { username } = await shop.makeUser();
    const found = tally(await Promise.all(times(LOGINS, (index) => token(`name${index}`))));
    const { 401: hashed = 0, 503: refused = 0 } = found;
    expect(found).toEqual({ 401: LOGINS - refused, ...(refused > 0 && { 503: refused }) });
    expect(hashed).toBeGreaterThanOrEqual(THREADS + QUEUE);
    expect(seen.started).toBe(hashed);
    expect((await token(username, PASSWORD)).status).toBe(200);
  });

  test('B7 what is refused asks nothing of the database and hashes nothing', async () => {
    const { isFree, ended } = await fill();
    const before = seen.started;
    const { answer, statements } = await counted(() => Promise.all(times(LOGINS, (index) => token(`name${index}`))));
    expect([isFree(), tally(answer), statements.length, seen.started - before]).toEqual([false, { 503: LOGINS }, 0, 0]);
    expect(tally(await ended)).toEqual({ 200: THREADS, 401: QUEUE });
    expect(await shop.sql('select * from session')).toHaveLength(THREADS);
  });

  test('B7 reads at both doors go on meanwhile', async () => {
    const product = await shop.makeProduct();
    const { isFree, ended } = await fill();
    const storm = Promise.all(times(LOGINS, (index) => token(`name${index}`)));
    const answers = await Promise.all(
      times(20, () => [
        shop.rest('GET', `/api/v1/shop/product/${product.pk}`),
        shop.rest('GET', '/api/v2/shop/products'),
        shop.graphql('query ($pk: ID!) { product(pk: $pk) { name } }', { pk: product.pk }),
        shop.rest('OPTIONS', '/token'),
        shop.rest('GET', '/livez'),
      ]).flat(),
    );
    expect([isFree(), tally(answers)]).toEqual([false, { 200: 100 }]);
    expect(tally(await storm)).toEqual({ 503: LOGINS });
    await ended;
  });

  test('B7 a right password is refused then as a wrong one is, and tells nothing', async () => {
    const [user, disabled] = [await shop.makeUser(), await shop.makeUser({ disabled: true })];
    const { isFree, ended } = await fill();
    const asked = [token(user.username, PASSWORD), token(user.username), token('nobody'), token(disabled.username, PASSWORD)];
    const answers = await Promise.all(asked);
    expect(isFree()).toBe(false);
    expect(new Set(answers.map(({ status, text, headers }) => JSON.stringify([status, text, headers.get('Retry-After')]))).size).toBe(1);
    expect(answers[0]?.status).toBe(503);
    await ended;
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });

  test('B7 each door says so in its own words', async () => {
    const user = await shop.makeUser();
    const { username } = user;
    const form = { username, password: PASSWORD };
    const query = `?${new URLSearchParams(form).toString()}`;
    const headers = { Authorization: `Basic ${Buffer.from(`${username}:${PASSWORD}`).toString('base64')}` };
    const text = 'The service is not available at the moment';
    const { isFree, ended } = await fill();
    const found = await Promise.all([
      shop.rest('POST', '/token', { form }),
      shop.rest('POST', '/login', { form }),
      shop.rest('POST', '/session/login', { json: form }),
      shop.rest('GET', '/api/v2/auth/login', { headers }),
      shop.rest('GET', `/api/v2/auth/login${query}`),
      shop.rest('POST', '/api/v2/auth/login', { json: form }),
    ]);
    const graphql = await Promise.all([
      shop.graphql(LOGIN, form),
      shop.graphql(CHANGE, { current: PASSWORD, new: 'a new password' }, { as: user }),
    ]);
    expect(isFree()).toBe(false);
    expect(found.map(({ status, headers: sent, body }) => [status, sent.get('Retry-After'), body])).toEqual([
      ...times(2, () => [503, '1', { detail: text }]),
      ...times(4, () => [503, '1', { data: text }]),
    ]);
    for (const { body } of graphql) {
      expect(body.errors).toMatchObject([{ message: text, extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }]);
    }
    await ended;
    expect((await token(username, PASSWORD)).status).toBe(200);
  });

  test('E3 in a crowd, too, a wrong password for an older hash is refused when its turn comes, and a right one lets in', async () => {
    const hashedPassword = bcrypt.hashSync(PASSWORD, 8);
    const older = [await shop.makeUser({ hashedPassword }), await shop.makeUser({ hashedPassword })];
    const rehashed = await shop.makeUser({ hashedPassword });
    const { ended } = await takeThreads();
    const order: string[] = [];
    const enter = async (username: string, password = WRONG): Promise<number> => {
      const { status } = await token(username, password);
      order.push(username);
      return status;
    };
    const before = seen.started;
    const first = older.map(({ username }) => enter(username));
    await startedReach(before + first.length);
    const last = enter(rehashed.username, PASSWORD);
    const others = times(QUEUE - 3, (index) => enter(`name${index}`));
    expect(await Promise.all([...first, last, ...others])).toEqual([401, 401, 200, ...others.map(() => 401)]);
    await ended;
    // They were the first in the line; with a step for each part of the work they would stand in it again and again.
    for (const { username } of older) expect(order.indexOf(username)).toBeLessThan((QUEUE * 3) / 4);
  });

  test('B7 a client that leaves does not keep its place from others for good', async () => {
    const { username } = await shop.makeUser();
    const { ended } = await takeThreads();
    const gone = new AbortController();
    const before = seen.started;
    const body = (index: number) => new URLSearchParams({ username: `gone${index}`, password: WRONG });
    const left = times(QUEUE, (index) => fetch(`${shop.url}/token`, { method: 'POST', body: body(index), signal: gone.signal }));
    const settled = Promise.allSettled(left);
    await startedReach(before + QUEUE);
    gone.abort();
    await Promise.all([settled, ended]);
    // The places that they had come free again, by and by or at once.
    const statuses = new Set<number>();
    const isBusy = () => [...seen.pools].some(({ queueSize }) => queueSize > 0);
    while (!statuses.has(200) || isBusy()) statuses.add((await token(username, PASSWORD)).status);
    expect([...statuses].filter((status) => status !== 503)).toEqual([200]);
    expect((await token(username, PASSWORD)).status).toBe(200);
  });
});

describe('settings', () => {
  test('B7 the threads that were asked for are all that there are', () => {
    expect(seen.pools.size).toBe(1);
    for (const { options, threads } of seen.pools) {
      expect(options.maxThreads).toBe(THREADS);
      expect(threads.length).toBeLessThanOrEqual(THREADS);
    }
  });

  test('B7 without a setting there are as many threads as processors, and never more than 8', async () => {
    const unset = await new Shop().start();
    await unset.stop();
    expect(unset.config.hashThreads).toBeLessThanOrEqual(8);
    expect(unset.config.hashThreads).toBeGreaterThanOrEqual(1);
  });

  test.each(['9', '64', '0', '-1', '2.5', 'many'])('B7 HASH_THREADS=%s is refused', async (HASH_THREADS) => {
    await expect(new Shop({ HASH_THREADS }).start()).rejects.toThrow('HASH_THREADS must be');
  });
});
