import { describe, expect, test } from '../support/jest.ts';
import { claimsOf, forge, seconds } from '../support/forge.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const REJECTED = {
  status: 401,
  body: { detail: 'Could not validate credentials' },
  challenge: 'Bearer',
};

test('5.2 scopes: a scope removed from the user no longer counts in tokens that name it', async () => {
  const token = forge(
    claimsOf(shop, await shop.makeUser({ scopes: ['products:write'] }), {
      scopes: ['products:write'],
    }),
  );
  await shop.sql(`update "user" set scopes = '{}'`);
  const json = { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
  expect(await shop.rest('POST', '/api/v1/shop/product/', { token, json })).toMatchObject({
    status: 403,
  });
});

describe('with JWT_LEEWAY_SECONDS', () => {
  const lenient = useShop({ JWT_LEEWAY_SECONDS: '300' });

  test('5.2 exp: a token is accepted until the leeway has passed', async () => {
    const token = forge(claimsOf(lenient, await lenient.makeUser(), { exp: seconds(lenient) }));
    lenient.advanceClock(240_000);
    expect(outcomeOf(await lenient.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
    lenient.advanceClock(60_000);
    expect(outcomeOf(await lenient.rest('GET', '/users/me/', { token }))).toEqual(REJECTED);
  });

  test('5.2 nbf: a token is accepted early by the leeway', async () => {
    const now = seconds(lenient);
    const token = forge(
      claimsOf(lenient, await lenient.makeUser(), { nbf: now + 360, exp: now + 720 }),
    );
    expect(outcomeOf(await lenient.rest('GET', '/users/me/', { token }))).toEqual(REJECTED);
    lenient.advanceClock(60_000);
    expect(outcomeOf(await lenient.rest('GET', '/users/me/', { token }))).toEqual({ status: 200 });
  });
});

/** Returns the status, with body and challenge if the token was rejected. */
function outcomeOf({ status, body, headers }: Answer) {
  return status === 200 ? { status } : { status, body, challenge: headers.get('www-authenticate') };
}
