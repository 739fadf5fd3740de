import type { TimedRequest } from '../support/timing.ts';

/** Builds the request for a name and password. */
export type Login = (username: string, password: string) => TimedRequest;

const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey } }';
const V2 = '/api/v2/auth/login';

const queryOf = (username: string, password: string): string =>
  new URLSearchParams({ username, password }).toString();
const json = (path: string, content: object): TimedRequest => ({
  method: 'POST',
  path,
  type: 'application/json',
  body: JSON.stringify(content),
});

export const formLogin = (path: string): Login => {
  return (username, password) => ({
    method: 'POST',
    path,
    type: 'application/x-www-form-urlencoded',
    body: queryOf(username, password),
  });
};
const jsonLogin = (path: string): Login => {
  return (username, password) => json(path, { username, password });
};

/** Every way to sign in, as it is sent. */
export const LOGIN_REQUESTS: readonly (readonly [string, Login])[] = [
  ['POST /token', formLogin('/token')],
  ['POST /login', formLogin('/login')],
  ['POST /session/login', jsonLogin('/session/login')],
  [
    'GET /api/v2/auth/login by Basic',
    (username, password) => ({
      method: 'GET',
      path: V2,
      authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
    }),
  ],
  [
    'GET /api/v2/auth/login by query',
    (username, password) => ({ method: 'GET', path: `${V2}?${queryOf(username, password)}` }),
  ],
  ['POST /api/v2/auth/login', jsonLogin(V2)],
  [
    'login of GraphQL',
    (username, password) => json('/graphql', { query: LOGIN, variables: { username, password } }),
  ],
];
