import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as throttle from '../../src/features/auth/login/throttle.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

const shop = useShop(
  { LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '3', TRUST_PROXY: '127.0.0.1' },
  { loginFailuresPerAddressPer10Minutes: 6 },
);

const from = (address: string) => ({ 'X-Forwarded-For': address });
const token = (username: string, password: string, address = '192.0.2.1'): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { username, password }, headers: from(address) });
const fail = async (times: number, username: string, address?: string): Promise<void> => {
  for (let count = 0; count < times; count++) await token(username, 'wrong', address);
};

describe('Decisions, Rate limits', () => {
  test.each(['a user', 'nobody'])(
    'after too many failures of %s from one address: 429 with Retry-After of 1 to 60 seconds',
    async (who) => {
      const { username } = await shop.makeUser({ username: 'carol' });
      const name = who === 'nobody' ? 'nobody' : username;
      await fail(3, name);
      const rejected = await token(name, 'wrong');
      expect(rejected).toMatchObject({
        status: 429,
        body: { detail: 'Too many failed logins; try again later' },
      });
      expect(Number(rejected.headers.get('Retry-After'))).toBeGreaterThanOrEqual(1);
      expect(Number(rejected.headers.get('Retry-After'))).toBeLessThanOrEqual(60);
    },
  );

  test('the correct password is also rejected where others failed; from another address it works', async () => {
    const { username } = await shop.makeUser();
    await fail(3, username);
    expect((await token(username, PASSWORD)).status).toBe(429);
    expect((await token(username, PASSWORD, '192.0.2.2')).status).toBe(200);
  });

  test('many names from one address', async () => {
    for (let name = 0; name < 6; name++) await fail(1, `name${name}`);
    expect((await token('another', 'wrong')).status).toBe(429);
    expect((await token('another', 'wrong', '192.0.2.2')).status).toBe(401);
  });

  test('an IPv6 network of 64 bits counts as one address', async () => {
    for (let host = 1; host <= 6; host++) await fail(1, `name${host}`, `2001:db8::${host}`);
    expect((await token('another', 'wrong', '2001:db8::ffff')).status).toBe(429);
    expect((await token('another', 'wrong', '2001:db8:0:1::1')).status).toBe(401);
  });

  test('requests forwarded without a valid address are served, and counted together', async () => {
    for (let name = 0; name < 6; name++) await fail(1, `name${name}`, 'not-an-address');
    expect((await token('another', 'wrong', 'nor-is-this')).status).toBe(429);
    expect((await token('another', 'wrong')).status).toBe(401);
  });

  test('only failures count, and a login resets those of the account', async () => {
    const { username } = await shop.makeUser();
    await fail(2, username);
    for (let count = 0; count < 4; count++)
      expect((await token(username, PASSWORD)).status).toBe(200);
    await fail(2, username);
    expect((await token(username, PASSWORD)).status).toBe(200);
  });

  test('each endpoint counts, and each has its own error format', async () => {
    const { username } = await shop.makeUser();
    await fail(3, username, '127.0.0.1');
    const json = { username, password: PASSWORD };
    const session = await shop.rest('POST', '/session/login', { json });
    const versioned = await shop.rest('GET', `/api/v2/auth/login?username=${username}&password=x`);
    const graphql = await shop.graphql(
      'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { tokenType } }',
      json,
    );
    const text = 'Too many failed logins; try again later';
    expect([session.status, session.body]).toEqual([429, { data: text }]);
    expect([versioned.status, versioned.body]).toEqual([429, { data: text }]);
    expect(graphql.body.errors).toMatchObject([
      { message: text, extensions: { code: 'RATE_LIMITED', retryAfter: expect.any(Number) } },
    ]);
  });

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

  test('forwarded addresses are not trusted', async () => {
    const statuses: number[] = [];
    for (let count = 1; count <= 4; count++) {
      statuses.push(
        (
          await direct.rest('POST', '/token', {
            form: { username: 'x', password: 'x' },
            headers: from(`192.0.2.${count}`),
          })
        ).status,
      );
    }
    expect(statuses).toEqual([401, 401, 401, 429]);
  });

  test('failures at one instance count at the other', async () => {
    await fail(3, 'nobody', '127.0.0.1');
    expect(
      (await direct.rest('POST', '/token', { form: { username: 'nobody', password: 'x' } })).status,
    ).toBe(429);
  });

  test('concurrent instances check no more passwords than the limit, and count the rest only for the account', async () => {
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
      // An instance briefly caches its rejections.
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
