import { beforeEach, describe, expect, test } from '../support/jest.ts';
import * as throttle from '../../src/features/auth/login.ts';
import type { Context } from '../../src/request/context.ts';
import { heapUsed } from '../support/heap.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

// Guesses for many names must not fill the memory or the database.

const NAMES = 1_000;
const MEBIBYTE = 1024 * 1024;
const LIMIT = 6;

const shop = useShop(
  {
    LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3',
    TRUST_PROXY: '127.0.0.1',
    LOG_LEVEL: 'error',
  },
  { loginFailuresPerAddressPer10Minutes: LIMIT },
);

// The tests store the log lines, not the server.
beforeEach(() => void (shop.logged.length = 0));

/** Returns the throttle's outcome of a wrong password. */
async function guess(ctx: Context, username: string): Promise<string> {
  try {
    return String(await throttle.throttled(ctx, username, async () => false));
  } catch (error) {
    return String(Reflect.get(Object(error) as object, 'code'));
  }
}

const token = async (username: string, password: string, from: string): Promise<number> => {
  const answer = await shop.rest('POST', '/token', {
    form: { username, password },
    headers: { 'X-Forwarded-For': from },
  });
  return answer.status;
};

describe('many names', () => {
  test('B4 rejected guesses for many names store nothing', async () => {
    const ctx = { ...shop.context(), network: '198.18.0.1' };
    const found = new Map<string, number>();
    for (let name = 0; name < NAMES; name++) {
      const outcome = await guess(ctx, `name ${name}`);
      found.set(outcome, (found.get(outcome) ?? 0) + 1);
    }
    expect(Object.fromEntries(found)).toEqual({ RATE_LIMITED: NAMES - LIMIT, false: LIMIT });
    expect(await shop.sql('select count(*)::int as count from login_failure')).toEqual([
      { count: LIMIT + 1 },
    ]);
  });

  test('B4 networks with one guess each leave only their own rows, which are deleted after expiry', async () => {
    const before = heapUsed();
    const networks = 500;
    for (let at = 0; at < networks; at += 50) {
      const batch = Array.from({ length: 50 }, (_, index) => ({
        ...shop.context(),
        network: `2001:db8:${at + index}::/64`,
      }));
      expect(new Set(await Promise.all(batch.map((ctx) => guess(ctx, 'alice'))))).toEqual(
        new Set(['false']),
      );
    }
    expect(heapUsed() - before).toBeLessThanOrEqual(64 * MEBIBYTE);
    expect(await shop.sql('select count(*)::int as count from login_failure')).toEqual([
      { count: 2 * networks },
    ]);
    await shop.sql('update login_failure set expire = 1');
    await throttle.sweepFailures(shop.context());
    expect(await shop.sql('select count(*)::int as count from login_failure')).toEqual([
      { count: 0 },
    ]);
  });

  test('B4 an expired failure no longer counts', async () => {
    const { username } = await shop.makeUser();
    const from = '198.18.0.2';
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++)
      statuses.push(await token(username, 'wrong password', from));
    expect(statuses).toEqual([401, 401, 401, 429]);
    await shop.sql('update login_failure set expire = 1');
    expect(await token(username, PASSWORD, from)).toBe(200);
    expect(await token(username, 'wrong password', from)).toBe(401);
  });
});
