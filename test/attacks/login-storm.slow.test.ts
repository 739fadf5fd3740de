import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import bcrypt from 'bcrypt';
import { Piscina } from 'piscina';
import { hashingChannel } from '../../src/core/tracing-channels.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

// Hashing is expensive. Of concurrent logins, a few are hashed, some wait, and the rest get 503.
// Two logins with very slow hashes occupy both threads, so that results do not depend on speed.

const THREADS = 2;
const QUEUE = 64;
const LOGINS = 200;
const WRONG = 'wrong password';

// How long the last login in the queue waits depends on the machine.
const shop = useShop(
  { REQUEST_TIMEOUT_MS: '100000', LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '100000' },
  { passwordHashThreads: THREADS },
);

/** Numbers of hashes that have run or wait, and that a thread has got; the pools of threads. */
const seen = { started: 0, run: 0, pools: new Set<Piscina>(), testsOver: 0 };
const run: unknown = Reflect.get(Piscina.prototype, 'run');
const countStarted = () => void seen.started++;
beforeAll(() => {
  hashingChannel.start.subscribe(countStarted);
  Piscina.prototype.run = function (this: Piscina, ...args: unknown[]): unknown {
    seen.run++;
    seen.pools.add(this);
    return Reflect.apply(run as () => unknown, this, args);
  } as typeof Piscina.prototype.run;
});
afterAll(() => {
  hashingChannel.start.unsubscribe(countStarted);
  Reflect.set(Piscina.prototype, 'run', run);
});
beforeEach(() => void Object.assign(seen, { started: 0, run: 0 }));
afterEach(() => void seen.testsOver++);

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));
const token = (username: string, password = WRONG): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password } });
const slowHash = bcrypt.hash(PASSWORD, 14);

/** Resolves when this many hashes have started. */
async function startedReach(count: number): Promise<void> {
  const own = seen.testsOver;
  while (seen.started < count) {
    if (own !== seen.testsOver) throw new Error(`${seen.started} of ${count} hashes started`);
    await new Promise((done) => setImmediate(done));
  }
}

/** Occupies both threads. `isFree` is true after the first login; `ended` resolves after both. */
async function takeThreads(): Promise<{ isFree: () => boolean; ended: Promise<Answer[]> }> {
  let free = false;
  const users = await Promise.all(
    times(THREADS, async () => shop.makeUser({ hashedPassword: await slowHash })),
  );
  const before = seen.started;
  const logins = users.map(async ({ username }) => {
    const answer = await token(username, PASSWORD);
    free = true;
    return answer;
  });
  await startedReach(before + THREADS);
  return { isFree: () => free, ended: Promise.all(logins) };
}

/** Occupies both threads and the whole queue. */
async function fill(): Promise<{ isFree: () => boolean; ended: Promise<Answer[]> }> {
  const { isFree, ended } = await takeThreads();
  const before = seen.started;
  const waiting = times(QUEUE, (index) => token(`waiting${index}`));
  await startedReach(before + QUEUE);
  return { isFree, ended: Promise.all([ended, ...waiting]).then((answers) => answers.flat()) };
}

function countByStatus(answers: Answer[]): Record<number, number> {
  const found: Record<number, number> = {};
  for (const { status } of answers) found[status] = (found[status] ?? 0) + 1;
  return found;
}

describe('200 logins at once', () => {
  test('B7 two are hashed, 64 wait, and the rest get 503 with Retry-After: 1 at once', async () => {
    const { isFree, ended } = await takeThreads();
    const others = times(LOGINS - THREADS, async (index) => {
      const answer = await token(`name${index}`);
      return { answer, isEarly: !isFree() };
    });
    const rejected = (await Promise.all([Promise.all(others), ended]))[0].filter(
      ({ answer }) => answer.status === 503,
    );
    expect(countByStatus((await Promise.all(others)).map(({ answer }) => answer))).toEqual({
      401: QUEUE,
      503: LOGINS - THREADS - QUEUE,
    });
    expect(countByStatus(await ended)).toEqual({ 200: THREADS });
    for (const { answer, isEarly } of rejected) {
      expect([isEarly, answer.headers.get('Retry-After'), answer.body]).toEqual([
        true,
        '1',
        { detail: 'The service is not available at the moment' },
      ]);
      expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
    }
    expect(seen.started).toBe(THREADS + QUEUE);
    // A login that was not hashed is no failure.
    const [row] = await shop.sql(
      "select max(points) as points from login_failure where key like 'network%'",
    );
    expect(Number(row?.['points'])).toBe(QUEUE);
  });

  test('B7 rejected logins run no statement and no hash', async () => {
    const { isFree, ended } = await fill();
    const before = seen.started;
    const answers = await Promise.all(times(LOGINS, (index) => token(`name${index}`)));
    expect([isFree(), countByStatus(answers), seen.started - before]).toEqual([
      false,
      { 503: LOGINS },
      0,
    ]);
    expect(countByStatus(await ended)).toEqual({ 200: THREADS, 401: QUEUE });
    expect(await shop.sql('select * from session')).toHaveLength(THREADS);
  });

  test('B7 correct and wrong passwords, unknown and disabled users then get the same 503', async () => {
    const [user, disabled] = [await shop.makeUser(), await shop.makeUser({ disabled: true })];
    const { isFree, ended } = await fill();
    const requests = [
      token(user.username, PASSWORD),
      token(user.username),
      token('nobody'),
      token(disabled.username, PASSWORD),
    ];
    const answers = await Promise.all(requests);
    expect(isFree()).toBe(false);
    expect(
      new Set(
        answers.map(({ status, text, headers }) =>
          JSON.stringify([status, text, headers.get('Retry-After')]),
        ),
      ).size,
    ).toBe(1);
    expect(answers[0]?.status).toBe(503);
    await ended;
    expect((await token(user.username, PASSWORD)).status).toBe(200);
  });

  test('B7 a login whose client disconnects while it waits is not hashed, and frees its place', async () => {
    const { username } = await shop.makeUser();
    const { ended } = await takeThreads();
    const gone = new AbortController();
    const before = seen.started;
    const body = (index: number) =>
      new URLSearchParams({ username: `gone${index}`, password: WRONG });
    const abandoned = times(QUEUE, (index) =>
      fetch(`${shop.url}/token`, { method: 'POST', body: body(index), signal: gone.signal }),
    );
    const settled = Promise.allSettled(abandoned);
    await startedReach(before + QUEUE);
    gone.abort();
    await Promise.all([settled, ended]);
    expect((await token(username, PASSWORD)).status).toBe(200);
    expect(await shop.sql('select * from login_failure')).toEqual([]);
  });
});

describe('threads', () => {
  test('B7 one pool runs all hashes, with the configured number of threads', () => {
    expect(seen.pools.size).toBe(1);
    for (const { options, threads } of seen.pools) {
      expect(options.maxThreads).toBe(THREADS);
      expect(threads.length).toBeLessThanOrEqual(THREADS);
    }
  });
});
