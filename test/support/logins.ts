import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken, createRefreshToken } from '../../src/features/auth/tokens/token.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import type { Answer, RequestOptions, Shop } from './shop.ts';

/** Signs in at one endpoint, with the rest of the request. */
type LoginEndpoint = (
  shop: Shop,
  username: string,
  password: string,
  request?: RequestOptions,
) => Promise<Answer>;

const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { sessionKey accessToken refreshToken } }';

const form =
  (path: string): LoginEndpoint =>
  (shop, username, password, request) =>
    shop.rest('POST', path, { ...request, form: { username, password } });

const json =
  (path: string): LoginEndpoint =>
  (shop, username, password, request) =>
    shop.rest('POST', path, { ...request, json: { username, password } });

/** Every login endpoint, with each way to send credentials. */
export const LOGIN_ENDPOINTS: readonly (readonly [string, LoginEndpoint])[] = [
  ['POST /token', form('/token')],
  ['POST /login', form('/login')],
  ['POST /session/login', json('/session/login')],
  [
    'GET /api/v2/auth/login by Basic',
    (shop, username, password, request) =>
      shop.rest('GET', '/api/v2/auth/login', {
        ...request,
        headers: {
          ...request?.headers,
          Authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
        },
      }),
  ],
  [
    'GET /api/v2/auth/login by query',
    (shop, username, password, request) =>
      shop.rest(
        'GET',
        `/api/v2/auth/login?${new URLSearchParams({ username, password }).toString()}`,
        request,
      ),
  ],
  ['POST /api/v2/auth/login', json('/api/v2/auth/login')],
  [
    'login of GraphQL',
    (shop, username, password, request) => shop.graphql(LOGIN, { username, password }, request),
  ],
];

/** A session with its credentials. */
export interface SessionCredentials {
  user: User;
  sid: string;
  key: string;
  token: string;
  refreshToken: string;
}

/** Opens a session of this user, or of a new one, without a login request. */
export async function openSession(shop: Shop, by?: User): Promise<SessionCredentials> {
  const user = by ?? (await shop.makeUser());
  const { key, session } = await sessions.open(shop.context(), user, null);
  const { sid, expiresAt, createdAt } = session;
  const token = createAccessToken(shop.context(), { username: user.username, sid });
  return {
    user,
    sid,
    key,
    token,
    refreshToken: createRefreshToken(shop.context(), { sid, generation: 0 }, expiresAt, createdAt),
  };
}
