import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;
const NO_KEY = 'A'.repeat(43);
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' };

/** The protected endpoints. */
const PROTECTED: [string, (credentials: RequestOptions) => Promise<Answer>][] = [
  ['GET /users/me/', (credentials) => shop.rest('GET', '/users/me/', credentials)],
  ['GET /users/me/items/', (credentials) => shop.rest('GET', '/users/me/items/', credentials)],
  ['GET /blog', (credentials) => shop.rest('GET', '/blog', credentials)],
  ['GET /api/users', (credentials) => shop.rest('GET', '/api/users', credentials)],
  [
    'POST /api/v1/shop/product/',
    (credentials) =>
      shop.rest('POST', '/api/v1/shop/product/', { json: product(), ...credentials }),
  ],
  [
    'POST /api/v2/auth/login',
    (credentials) => shop.rest('POST', '/api/v2/auth/login', credentials),
  ],
];

test.each(PROTECTED)('5.3.3 %s rejects an unknown key', async (_name, ask) => {
  expect(outcomeOf(await ask({ sessionKey: NO_KEY }))).toEqual(ANONYMOUS);
});

test.each(PROTECTED)(
  '5.3.3 %s rejects a disabled user with 400, by session key',
  async (_name, ask) => {
    const sessionKey = await signIn();
    await shop.sql('update "user" set disabled = true');
    const { status, body } = await ask({ sessionKey });
    expect({ status, body }).toEqual({ status: 400, body: { detail: 'Inactive user' } });
  },
);

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

function product() {
  return { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
}

async function signIn(): Promise<string> {
  const { username } = await shop.makeUser({ scopes: ['products:write'] });
  const { body } = await shop.rest('POST', '/session/login', {
    json: { username, password: PASSWORD },
  });
  return String(body.session_key);
}
