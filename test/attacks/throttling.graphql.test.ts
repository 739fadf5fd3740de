import { describe, expect, test } from '../support/jest.ts';
import { observeHashing } from '../support/hashes.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

// One request is one guess. A document with several is rejected before execution.

const shop = useShop();

const login = (username: string, password = 'wrong password') =>
  `login(username: "${username}", password: "${password}") { sessionKey }`;
const change = (current = 'wrong password') =>
  `changePassword(current: "${current}", new: "a new password") { username }`;
const many = (count: number, field = login('alice')) =>
  Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ');

const DOCUMENTS: [string, string][] = [
  ['a login and a changePassword', `mutation { ${login('alice')} ${change()} }`],

  ['50 changePassword', `mutation { ${many(50, change())} }`],
  [
    'a login and one in a fragment',
    `mutation { ${login('alice')} ...F } fragment F on Mutation { b: ${login('bob')} }`,
  ],
];

describe('guesses in one request', () => {
  test.each(DOCUMENTS)(
    'B8 %s: rejected with 400, without hashing, writing or counting',
    async (_what, query) => {
      const user = await shop.makeUser({ username: 'alice' });
      const json = { query };
      for (const as of [undefined, user]) {
        const {
          answer,
          tasks: hashes,
          statements,
        } = await observeHashing(() => shop.rest('POST', '/graphql', { json, ...(as && { as }) }));
        expect([answer.status, answer.body.data]).toEqual([400, undefined]);
        expect(answer.body.errors[0].extensions.code).toMatch(
          /^(QUERY_TOO_COMPLEX|GRAPHQL_PARSE_FAILED)$/,
        );
        expect(hashes).toBe(0);
        // Only the user of the token is loaded.
        expect(
          statements.filter((text) => /login_failure|insert|update|delete/i.test(text)),
        ).toEqual([]);
        expect(as ? [] : statements).toEqual([]);
      }
      expect(await shop.sql('select * from login_failure')).toEqual([]);
      expect(await shop.sql('select * from session')).toEqual([]);
      const { body } = await shop.graphql(`mutation { ${login('alice', PASSWORD)} }`);
      expect(body).toEqual({ data: { login: { sessionKey: expect.any(String) } } });
    },
  );

  test('B8 of several operations with a login each, only the named one runs', async () => {
    await shop.makeUser({ username: 'alice' });
    const query = `mutation One { ${login('alice', PASSWORD)} } mutation Two { ${login('alice')} }`;
    const { answer, tasks: hashes } = await observeHashing(() =>
      shop.rest('POST', '/graphql', { json: { query, operationName: 'One' } }),
    );
    expect([answer.status, answer.body.errors, hashes]).toEqual([200, undefined, 1]);
    const unnamed = await observeHashing(() => shop.rest('POST', '/graphql', { json: { query } }));
    expect([unnamed.answer.status, unnamed.tasks]).toEqual([400, 0]);
  });

  test('B8 one login beside other fields is served', async () => {
    await shop.makeUser({ username: 'alice' });
    const query = `mutation { __typename ${login('alice', PASSWORD)} logoutEverywhere { ended } }`;
    const { answer, tasks: hashes } = await observeHashing(() => shop.graphql(query));
    expect([answer.status, answer.body.errors, hashes]).toEqual([200, undefined, 1]);
  });
});
