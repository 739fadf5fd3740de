import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PREFLIGHTED = { 'apollo-require-preflight': 'true' };
const JSON_TYPE = { 'Content-Type': 'application/json' };
const ADD = 'mutation Add { addItem(itemId: "lamp") { itemId } }';

let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ username: 'ada' });
});

describe('GET', () => {
  test.each<[string, Record<string, string>]>([
    ['alone', { query: ADD }],

    ['named among two', { query: `query Read { __typename } ${ADD}`, operationName: 'Add' }],
  ])(
    'G2 a mutation by GET, %s, is 405 with Allow: POST, and is not executed',
    async (_how, parameters) => {
      const path = `/graphql?${new URLSearchParams(parameters).toString()}`;
      const answer = await shop.rest('GET', path, { as: user, headers: PREFLIGHTED });
      expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'POST']);
      expect(await items()).toEqual([]);
      expect(await postAdds()).toBe(200);
    },
  );

  test('G2 a link with a mutation opens the explorer, which does not execute it', async () => {
    const headers = {
      Accept: 'text/html,application/json;q=0.5',
      Authorization: `Bearer ${shop.tokenOf(user)}`,
    };
    // By fetch, because each page has another nonce.
    const answer = await fetch(`${shop.url}/graphql?query=${encodeURIComponent(ADD)}`, { headers });
    expect([answer.status, answer.headers.get('Content-Type')]).toEqual([
      200,
      'text/html; charset=utf-8',
    ]);
    expect(await answer.text()).not.toContain('addItem');
    expect(await items()).toEqual([]);
  });

  test('G2 a POST takes its query from the body, not from the URL', async () => {
    const answer = await shop.rest('POST', `/graphql?query=${encodeURIComponent(ADD)}`, {
      as: user,
      json: { query: '{ __typename }' },
    });
    expect(answer.body).toEqual({ data: { __typename: 'Query' } });
    const bare = await shop.rest('POST', `/graphql?query=${encodeURIComponent(ADD)}`, { as: user });
    expect(bare.status).toBe(400);
    expect(await items()).toEqual([]);
  });

  test('G3 a cross-site query by GET is answered as anonymous, and a mutation is 405', async () => {
    const path = `${shop.url}/graphql?query=`;
    const answer = await fetch(
      path + encodeURIComponent('{ products { totalCount } me { username } }'),
    );
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { data: { products: { totalCount: 0 }, me: null } },
    ]);
    const { answer: rejected, statements } = await recordStatements(() =>
      fetch(path + encodeURIComponent(ADD)),
    );
    expect([rejected.status, statements]).toEqual([405, []]);
    expect(await items()).toEqual([]);
  });

  test('G3 a query by GET with another content type than JSON is 415 without a database query', async () => {
    const path = `${shop.url}/graphql?query=${encodeURIComponent('{ products { totalCount } }')}`;
    const { answer, statements } = await recordStatements(() =>
      fetch(path, { headers: { 'Content-Type': 'text/plain' } }),
    );
    expect([answer.status, statements]).toEqual([415, []]);
  });

  test.each(['query={me{id}}', 'operationName=A'])(
    'G3 a duplicate parameter is 400, because a proxy could read another one than the server: %s',
    async (second) => {
      const path = `/graphql?query={__typename}&operationName=A&variables={}&extensions={}&${second}`;
      const answer = await shop.rest('GET', path, { headers: PREFLIGHTED });
      expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
    },
  );

  test.each(['variables=x', 'extensions=[1]'])(
    'G3 a parameter that is not a JSON object is 400: %s',
    async (parameter) => {
      const answer = await shop.rest('GET', `/graphql?query={__typename}&${parameter}`, {
        headers: PREFLIGHTED,
      });
      expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
    },
  );
});

describe('the content type of a body', () => {
  const boundary = 'multipart/form-data; boundary=x';
  const parts = (fields: Record<string, string>) =>
    `${Object.entries(fields)
      .map(
        ([name, value]) =>
          `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
      )
      .join('')}--x--\r\n`;
  const json = JSON.stringify({ query: ADD });

  test.each<[string, string, string]>([
    ['G4 plain text', 'text/plain', json],

    ['G4 a form', 'application/x-www-form-urlencoded', `query=${encodeURIComponent(ADD)}`],

    ['G4 a multipart form', boundary, parts({ query: ADD })],

    [
      'G12 an upload as in the specification',
      boundary,
      parts({
        operations: JSON.stringify({ query: ADD, variables: { file: null } }),
        map: '{"0":["variables.file"]}',
        '0': 'x',
      }),
    ],
  ])(
    '%s is 415, also with the header for uploads, and no operation is executed',
    async (_what, type, body) => {
      for (const headers of [{}, PREFLIGHTED])
        expect((await post(body, type, headers)).status).toBe(415);
      expect(await items()).toEqual([]);
      expect(await postAdds()).toBe(200);
    },
  );

  function post(body: string, type: string, headers: Record<string, string>): Promise<Answer> {
    return shop.rest('POST', '/graphql', {
      as: user,
      body,
      headers: { ...headers, 'Content-Type': type },
    });
  }
});

function items(): Promise<unknown[]> {
  return shop.sql('select item_id from item');
}

/** Expects a valid POST with the mutation to succeed. Returns its status. */
async function postAdds(): Promise<number> {
  const { status } = await shop.rest('POST', '/graphql', {
    as: user,
    body: JSON.stringify({ query: ADD }),
    headers: JSON_TYPE,
  });
  expect(await items()).toEqual([{ item_id: 'lamp' }]);
  return status;
}
