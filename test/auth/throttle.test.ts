import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as throttle from '../../src/features/auth/login.ts';
import { Shop, useShop, type Answer } from '../support/shop.ts';

const shop = useShop({
  LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3',
  TRUST_PROXY: '127.0.0.1',
});

const from = (address: string) => ({ 'X-Forwarded-For': address });
const token = (username: string, password: string, address = '192.0.2.1'): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password }, headers: from(address) });
const fail = async (times: number, username: string, address?: string): Promise<void> => {
  for (let count = 0; count < times; count++) await token(username, 'wrong', address);
};

describe('Decisions, Rate limits', () => {
  test('counters that no longer count are deleted', async () => {
    await fail(1, 'nobody');
    await shop.sql('update login_failure set expire = 1');
    await fail(1, 'somebody');
    const { sweep } = await import('../../src/features/auth/auth.service.ts');
    await sweep(shop.context());
    expect(await shop.sql('select count(*)::int as count from login_failure')).toEqual([
      { count: 2 },
    ]);
  });
});

describe('Decisions, Rate limits: without a configured proxy and on a second instance', () => {
  const direct = new Shop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' });
  beforeAll(() => direct.start());
  afterAll(() => direct.stop());

  test('failures at one instance count at the other', async () => {
    await fail(3, 'nobody', '127.0.0.1');
    expect(
      (await direct.rest('POST', '/token', { form: { username: 'nobody', password: 'x' } })).status,
    ).toBe(429);
  });

  test('concurrent instances reveal no more results than the limit, and count the rest only for the account', async () => {
    const attempts = Array.from({ length: 10 }, () => [
      shop.rest('POST', '/token', { form: { username: 'nobody', password: 'x' } }),
      direct.rest('POST', '/token', { form: { username: 'nobody', password: 'x' } }),
    ]);
    const statuses = (await Promise.all(attempts.flat()))
      .map(({ status }) => status)
      .toSorted((a, b) => a - b);
    expect(statuses).toEqual([401, 401, 401, ...Array<number>(17).fill(429)]);
    expect(await shop.sql("select points from login_failure where key like 'network%'")).toEqual([
      { points: 3 },
    ]);
  });

  test.each([true, false])(
    'a result found after others have used up the limit is not returned (right: %s)',
    async (right) => {
      const ctx = { ...shop.context(), network: '127.0.0.1' };
      const username = `right ${right}`;
      const guess = throttle.throttled(ctx, username, async () => {
        for (let count = 0; count < 3; count++)
          await direct.rest('POST', '/token', { form: { username, password: 'x' } });
        return right;
      });
      await expect(guess).rejects.toMatchObject({ code: 'RATE_LIMITED' });
      const [row] = await shop.sql("select points from login_failure where key like 'account%'");
      expect(row).toEqual({ points: right ? 3 : 4 });
    },
  );
});
