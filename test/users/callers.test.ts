import { expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop } from '../support/shop.ts';
import { sized } from '../support/sized.ts';

const shop = useShop();

const USERS = sized(500, 170);
const ROUNDS = sized(20, 3);

test('C8 many concurrent users each get the response for their own account, repeatedly', async () => {
  const names = Array.from({ length: USERS }, (_, at) => `caller${at}`);
  await shop.sql(
    `insert into "user" (username, scopes) select 'caller' || n, '{}' from generate_series(0, ${USERS - 1}) as n`,
  );
  await shop.sql(
    `insert into item (owner_pk, item_id, created_at) select pk, 'of ' || username, now() from "user"`,
  );
  const tokens = names.map((username) => shop.tokenOf({ username } as User));
  let checked = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const found = await Promise.all(tokens.map((token) => nameIn(round, token)));
    expect(found).toEqual(names);
    checked += found.length;
  }
  expect(checked).toBe(USERS * ROUNDS);
});

/** Returns the username in the response of one of the endpoints for the own account. */
async function nameIn(round: number, token: string): Promise<string> {
  if (round % 3 === 0)
    return (await requestBody<{ username: string }>('/users/me/', token)).username;
  if (round % 3 === 1)
    return String(
      (await requestBody<{ item_id: string }[]>('/users/me/items/', token))[0]?.item_id.slice(
        'of '.length,
      ),
    );
  const query = '{ me { username items { nodes { itemId } } } }';
  const { data } = await requestBody<{ data: { me: { username: string; items: unknown } } }>(
    '/graphql',
    token,
    JSON.stringify({ query }),
  );
  expect(data.me.items).toEqual({ nodes: [{ itemId: `of ${data.me.username}` }] });
  return data.me.username;
}

// Without the checks of `shop.rest`, which would take most of the time here.
async function requestBody<Body>(path: string, token: string, body?: string): Promise<Body> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const answer = await fetch(
    shop.url + path,
    body === undefined ? { headers } : { method: 'POST', headers, body },
  );
  return (await answer.json()) as Body;
}
