import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as throttle from '../../src/features/auth/login.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' });

describe('Decisions, Rate limits: on a second instance', () => {
  const direct = new Shop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3' });
  beforeAll(() => direct.start());
  afterAll(() => direct.stop());

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
