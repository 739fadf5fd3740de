import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const DAY = 86_400_000;
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' };

describe('with other lifetimes', () => {
  const brief = useShop({ SESSION_IDLE_DAYS: '2', SESSION_LIFETIME_DAYS: '3' });

  test('5.3.2 the idle lifetime and the absolute one may be set', async () => {
    const { username } = await brief.makeUser();
    const json = { username, password: PASSWORD };
    const [used, idle] = [
      await brief.rest('POST', '/session/login', { json }),
      await brief.rest('POST', '/session/login', { json }),
    ];
    const ask = async ({ body }: Answer) =>
      outcomeOf(await brief.rest('GET', '/users/me/', { sessionKey: body.session_key }));
    brief.advanceClock(DAY);
    expect(await ask(used)).toEqual({ status: 200 });
    brief.advanceClock(DAY);
    expect(await ask(idle)).toEqual(ANONYMOUS);
    expect(await ask(used)).toEqual({ status: 200 });
    brief.advanceClock(DAY);
    expect(await ask(used)).toEqual(ANONYMOUS);
  });
});

/** Returns the status, with body and challenge if the key was rejected. */
function outcomeOf({ status, body, headers }: Answer) {
  return status === 200 ? { status } : { status, body, challenge: headers.get('www-authenticate') };
}
