import { describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { useShop } from '../support/shop.ts';

const DAY = 86_400_000;

const shop = useShop();

describe('time', () => {
  test('Decisions, session key: a use is recorded at most once a minute', async () => {
    const { key, session } = await open();
    shop.advanceClock(50_000);
    await statusWith(key);
    expect(await seenAt()).toEqual([session.lastSeenAt.getTime(), session.expiresAt.getTime()]);
    shop.advanceClock(10_000);
    const before = shop.now().getTime();
    await statusWith(key);
    const [seen = 0, expires = 0] = await seenAt();
    expect(seen).toBeGreaterThanOrEqual(before);
    expect(seen).toBeLessThanOrEqual(shop.now().getTime());
    expect(expires - seen).toBe(14 * DAY);
  });

  test('P14 concurrent requests record one use', async () => {
    const { key } = await open();
    await shop.sql('create sequence uses');
    await shop.sql(
      `create function count_use() returns trigger language plpgsql as $$ begin perform nextval('uses'); return new; end $$`,
    );
    await shop.sql(
      'create trigger use before update on session for each row execute function count_use()',
    );
    try {
      shop.advanceClock(60_000);
      const answers = await Promise.all(Array.from({ length: 20 }, () => statusWith(key)));
      expect(new Set(answers)).toEqual(new Set([200]));
      expect(await shop.sql('select last_value::int as uses, is_called from uses')).toEqual([
        { uses: 1, is_called: true },
      ]);
    } finally {
      await shop.sql('drop function count_use cascade');
      await shop.sql('drop sequence uses');
    }
  });

  test('Decisions, session key: a bearer token of the session counts as its use', async () => {
    const { user, session } = await open();
    shop.advanceClock(13 * DAY);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(200);
    const [seen = 0] = await seenAt();
    expect(seen - session.createdAt.getTime()).toBeGreaterThanOrEqual(13 * DAY);
  });
});

async function open() {
  const user = await shop.makeUser();
  return { user, ...(await sessions.open(shop.context(), user, null)) };
}

async function statusWith(sessionKey: string): Promise<number> {
  return (await shop.rest('GET', '/users/me/', { sessionKey })).status;
}

async function seenAt(): Promise<number[]> {
  const [row] = await shop.sql('select last_seen_at, expires_at from session');
  return [row?.['last_seen_at'], row?.['expires_at']].map((time) => (time as Date).getTime());
}
