import { describe, expect, test } from '../support/jest.ts';
import { hashed } from '../support/hashes.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

// One request is one guess. A document that holds many is refused before any of it runs.

const shop = useShop();

const login = (username: string, password = 'wrong password') => `login(username: "${username}", password: "${password}") { sessionKey }`;
const change = (current = 'wrong password') => `changePassword(current: "${current}", new: "a new password") { username }`;
const many = (count: number, field = login('alice')) => Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ');

const DOCUMENTS: [string, string][] = [
  ['50 logins under other names', `mutation { ${many(50)} }`],
  ['1,000 logins under other names', `mutation { ${many(1_000)} }`],
  ['two logins', `mutation { ${many(2)} }`],
  ['two logins of the right password', `mutation { ${many(2, login('alice', PASSWORD))} }`],
  ['a login and a changePassword', `mutation { ${login('alice')} ${change()} }`],
  ['two changePassword', `mutation { ${many(2, change())} }`],
  ['50 changePassword', `mutation { ${many(50, change())} }`],
  ['a login and one in a fragment', `mutation { ${login('alice')} ...F } fragment F on Mutation { b: ${login('bob')} }`],
  [
    'a fragment within a fragment',
    `mutation { ...F } fragment F on Mutation { a: ${login('alice')} ...G } fragment G on Mutation { b: ${login('bob')} }`,
  ],
  ['inline fragments', `mutation { ... { a: ${login('alice')} } ... on Mutation { b: ${login('bob')} } }`],
  [
    'inline fragments under a condition that holds',
    `mutation { ... @include(if: true) { a: ${login('alice')} } ... @skip(if: false) { b: ${login('bob')} } }`,
  ],
  ['an operation of some name beside another', `mutation One { ${many(2)} } query Two { me { id } }`],
  ['refreshes and logouts between them', `mutation { a: ${login('alice')} logoutEverywhere { ended } b: ${login('alice')} }`],
];

describe('guesses in one request', () => {
  test.each(DOCUMENTS)('B8 %s: refused with 400, and nothing hashed, asked of the database, or counted', async (_what, query) => {
    const user = await shop.makeUser({ username: 'alice' });
    const json = { query, ...(query.includes('mutation One') && { operationName: 'One' }) };
    for (const as of [undefined, user]) {
      const { answer, tasks: hashes, statements } = await hashed(() => shop.rest('POST', '/graphql', { json, ...(as && { as }) }));
      expect([answer.status, answer.body.data]).toEqual([400, undefined]);
      expect(answer.body.errors[0].extensions.code).toMatch(/^(QUERY_TOO_COMPLEX|GRAPHQL_PARSE_FAILED)$/);
      expect(hashes).toBe(0);
      // Whose token it is has to be looked up; nothing else has.
      expect(statements.filter((text) => /login_failure|insert|update|delete/i.test(text))).toEqual([]);
      expect(as ? [] : statements).toEqual([]);
    }
    expect(await shop.sql('select * from login_failure')).toEqual([]);
    expect(await shop.sql('select * from session')).toEqual([]);
    const { body } = await shop.graphql(`mutation { ${login('alice', PASSWORD)} }`);
    expect(body).toEqual({ data: { login: { sessionKey: expect.any(String) } } });
  });

  test('B8 so is a list of requests', async () => {
    await shop.makeUser({ username: 'alice' });
    for (const count of [1, 2, 10, 50]) {
      const json = Array.from({ length: count }, () => ({ query: `mutation { ${login('alice')} }` }));
      const { answer, tasks: hashes, statements } = await hashed(() => shop.rest('POST', '/graphql', { json }));
      expect([answer.status, hashes, statements]).toEqual([400, 0, []]);
    }
  });

  test('B8 so is a mutation in the query of a GET request', async () => {
    const query = new URLSearchParams({ query: `mutation { ${login('alice')} }` }).toString();
    const {
      answer,
      tasks: hashes,
      statements,
    } = await hashed(() => shop.rest('GET', `/graphql?${query}`, { headers: { 'apollo-require-preflight': '1' } }));
    expect([answer.status, hashes, statements]).toEqual([405, 0, []]);
  });

  test('B8 of several operations with a login each, the one that is named runs, and no other', async () => {
    await shop.makeUser({ username: 'alice' });
    const query = `mutation One { ${login('alice', PASSWORD)} } mutation Two { ${login('alice')} }`;
    const { answer, tasks: hashes } = await hashed(() => shop.rest('POST', '/graphql', { json: { query, operationName: 'One' } }));
    expect([answer.status, answer.body.errors, hashes]).toEqual([200, undefined, 1]);
    const unnamed = await hashed(() => shop.rest('POST', '/graphql', { json: { query } }));
    expect([unnamed.answer.status, unnamed.tasks]).toEqual([400, 0]);
  });

  test('B8 one login with other fields beside it is served', async () => {
    await shop.makeUser({ username: 'alice' });
    const query = `mutation { __typename ${login('alice', PASSWORD)} logoutEverywhere { ended } }`;
    const { answer, tasks: hashes } = await hashed(() => shop.graphql(query));
    expect([answer.status, answer.body.errors, hashes]).toEqual([200, undefined, 1]);
  });
});
