import type { HttpResponse } from '../response.ts';
import type { Credentials, Deployment } from '../deployment.ts';
import {
  expectOf,
  hasHeader,
  hasOnly,
  hasStatus,
  isError,
  isExactly,
  isRejected,
  hasMessage,
  isSuccess,
} from '../expectations.ts';
import { section } from '../promised.ts';
import {
  basic,
  ME,
  rightSessionLogin,
  MESSAGES,
  V2_LOGIN,
  wrongLogout,
  wrongSessionLogin,
} from './common.ts';

const BOTH = { detail: 'Logout successful', data: 'Logout successful' };
const NOT_SIGNED_IN = { detail: 'Not authenticated' };

/** The ways in which POST /api/v2/auth/login reads the session to end. */
const LOGOUT_CREDENTIALS: {
  name: string;
  words: string;
  logOut: (at: Deployment, key: string) => Promise<HttpResponse>;
}[] = [
  {
    name: 'x-session-id',
    words: 'X-SESSION-ID',
    logOut: (at, sessionKey) => at.send('POST', V2_LOGIN, { sessionKey }),
  },
  {
    name: 'x-sessionid',
    words: 'X-SESSIONID',
    logOut: (at, key) => at.send('POST', V2_LOGIN, { headers: { 'X-SESSIONID': key } }),
  },
  {
    name: 'body',
    words: 'session_key in the body',
    logOut: (at, session_key) => at.send('POST', V2_LOGIN, { json: { session_key } }),
  },
];

/** Logins with a session key, and logouts. */
export const sessionFlow = section('4.2', 'Session flow', [
  {
    id: 'login',
    endpoint: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'Valid credentials return 200 with session_key.',
    check: async (at) => {
      const response = await rightSessionLogin(at);
      hasStatus(response, 200);
      expectOf(response, 'a session_key', typeof response.member('session_key') === 'string');
    },
  },
  {
    id: 'login-new',
    endpoint: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'Each login opens a new session with its own key.',
    check: async (at) => {
      const first = await rightSessionLogin(at);
      const second = await at.send('POST', at.session('login'), { json: at.user });
      hasStatus(second, 200);
      const isNew = second.member('session_key') !== first.member('session_key');
      expectOf(second, 'another session_key than before', isNew, 'the same');
    },
  },
  {
    id: 'login-wrong',
    endpoint: 'POST {session}/login',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials return 401 with a message in data.',
    check: async (at) => {
      const response = await wrongSessionLogin(at);
      hasStatus(response, 401);
      hasMessage(
        response,
        'data',
        MESSAGES.wrongCredentials,
        'that login and/or password are incorrect',
      );
    },
  },
  {
    id: 'login-wrong-text',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: [],
    says: 'The message is "Incorrect login and/or password".',
    check: async (at) =>
      isError(await wrongSessionLogin(at), 401, { data: 'Incorrect login and/or password' }),
  },
  {
    id: 'login-wrong-as-unknown',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'A wrong password and an unknown username return the same response.',
    check: async (at) => {
      const unknown = await wrongSessionLogin(at);
      const wrong = await at.send('POST', at.session('login'), {
        json: { username: at.user.username, password: 'wrong' },
      });
      hasStatus(wrong, unknown.status);
      expectOf(
        wrong,
        `the body that an unknown username gets, ${unknown.text}`,
        wrong.text === unknown.text,
      );
    },
  },
  {
    id: 'login-disabled',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: ['disabled user', 'disabled password'],
    says: 'A disabled user with the right password returns 401 with a message in data.',
    check: async (at) => {
      const response = await at.send('POST', at.session('login'), { json: at.disabledUser });
      hasStatus(response, 401);
      hasMessage(response, 'data', MESSAGES.inactivity, 'that the user is inactive');
    },
  },
  {
    id: 'login-no-store',
    endpoint: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'A login response has Cache-Control: no-store.',
    check: async (at) => hasHeader(await rightSessionLogin(at), 'Cache-Control', /no-store/),
  },
  {
    id: 'logout-unknown',
    endpoint: 'POST {session}/logout',
    level: 'interface',
    needs: [],
    says: 'An unknown session key returns 401 with a message in data.',
    check: async (at) => {
      const response = await wrongLogout(at);
      hasStatus(response, 401);
      hasMessage(response, 'data', MESSAGES.badKey, 'that the session key is invalid');
    },
  },
  {
    id: 'logout-unknown-text',
    endpoint: 'POST {session}/logout',
    level: 'decision',
    needs: [],
    says: 'The message is "Invalid session key".',
    check: async (at) => isError(await wrongLogout(at), 401, { data: 'Invalid session key' }),
  },
  {
    id: 'logout',
    endpoint: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'A valid session key returns 200 with a success message in data.',
    check: async (at) => {
      const response = await at.send('POST', at.session('logout'), {
        json: { session_key: await at.newSessionKey() },
      });
      hasStatus(response, 200);
      hasMessage(response, 'data', MESSAGES.success, 'that the logout was successful');
    },
  },
  {
    id: 'logout-text',
    endpoint: 'POST {session}/logout',
    level: 'decision',
    needs: ['user'],
    says: 'The message is "Logout successful".',
    check: async (at) => {
      const response = await at.send('POST', at.session('logout'), {
        json: { session_key: await at.newSessionKey() },
      });
      isError(response, 200, { data: 'Logout successful' });
    },
  },
  {
    id: 'logout-ends',
    endpoint: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'A logout ends the session: a second logout returns 401.',
    check: async (at) => {
      const json = { session_key: await at.newSessionKey() };
      await at.send('POST', at.session('logout'), { json });
      const second = await at.send('POST', at.session('logout'), { json });
      hasStatus(second, 401);
      hasMessage(second, 'data', MESSAGES.badKey, 'that the session key is invalid');
    },
  },
  {
    id: 'logout-ends-one',
    endpoint: 'POST {session}/logout',
    level: 'decision',
    needs: ['user'],
    says: 'A logout ends no other session of the user.',
    check: async (at) => {
      const sessionKey = await at.newSessionKey();
      await at.send('POST', at.session('logout'), {
        json: { session_key: await at.newSessionKey() },
      });
      hasStatus(await at.send('GET', ME, { sessionKey }), 200);
    },
  },
  {
    id: 'v2-get-wrong',
    endpoint: `GET ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'Wrong credentials return an error.',
    check: async (at) =>
      isRejected(
        await at.send('GET', wrongQuery(at), { headers: basic(at.unknownUsername, 'wrong') }),
      ),
  },
  {
    id: 'v2-get-right',
    endpoint: `GET ${V2_LOGIN}`,
    level: 'interface',
    needs: ['user'],
    says: 'Valid credentials, by HTTP Basic or in the query, return a session key.',
    check: async (at) => {
      const byHeader = await at.send('GET', V2_LOGIN, {
        headers: basic(at.user.username, at.user.password),
      });
      const isTaken = typeof byHeader.member('session_key') === 'string';
      const response = isTaken ? byHeader : await at.send('GET', byQuery(at.user));
      isSuccess(response);
      expectOf(response, 'a session_key', typeof response.member('session_key') === 'string');
    },
  },
  {
    id: 'v2-get-basic',
    endpoint: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'HTTP Basic takes precedence over the query; the response has Cache-Control: no-store.',
    check: async (at) => {
      const response = await at.send('GET', wrongQuery(at), {
        headers: basic(at.user.username, at.user.password),
      });
      hasStatus(response, 200);
      expectOf(response, 'a session_key', typeof response.member('session_key') === 'string');
      hasOnly(response, response.body, 'session_key');
      hasHeader(response, 'Cache-Control', /no-store/);
    },
  },
  {
    id: 'v2-get-challenge',
    endpoint: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'Without credentials, the response is 401 with data and a challenge for HTTP Basic.',
    check: async (at) => {
      const response = await at.send('GET', V2_LOGIN);
      isError(response, 401, { data: 'Incorrect login and/or password' });
      hasHeader(response, 'WWW-Authenticate', /^basic realm="[^"]*", charset="UTF-8"$/i);
    },
  },
  {
    id: 'v2-get-query',
    endpoint: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'Wrong credentials, in the query or by HTTP Basic, return 401 with data.',
    check: async (at) => {
      const data = 'Incorrect login and/or password';
      isError(await at.send('GET', wrongQuery(at)), 401, { data });
      isError(
        await at.send('GET', V2_LOGIN, { headers: basic(at.unknownUsername, 'wrong') }),
        401,
        { data },
      );
    },
  },
  {
    id: 'v2-post-logout',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'interface',
    needs: ['user'],
    says: 'A logged-in user is logged out: 200 with a success message in detail.',
    check: async (at) => {
      const session_key = await at.newSessionKey();
      const response = await at.send('POST', V2_LOGIN, {
        sessionKey: session_key,
        headers: { 'X-SESSIONID': session_key },
        json: { session_key },
      });
      hasStatus(response, 200);
      hasMessage(response, 'detail', MESSAGES.success, 'that the logout was successful');
      hasStatus(await at.send('POST', at.session('logout'), { json: { session_key } }), 401);
    },
  },
  {
    id: 'v2-post-anonymous',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'Only logged-in users can log out.',
    check: async (at) => isRejected(await at.send('POST', V2_LOGIN)),
  },
  {
    id: 'v2-post-anonymous-401',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'Without credentials, the response is 401 "Not authenticated".',
    check: async (at) => {
      const response = await at.send('POST', V2_LOGIN);
      isError(response, 401, NOT_SIGNED_IN);
      hasHeader(response, 'WWW-Authenticate', 'Bearer');
    },
  },
  ...LOGOUT_CREDENTIALS.map(({ name, words, logOut }) => ({
    id: `v2-post-${name}`,
    endpoint: `POST ${V2_LOGIN}`,
    level: 'decision' as const,
    needs: ['user'] as const,
    says: `${words} ends the session, with a success message in detail and data; a second logout is 401.`,
    check: async (at: Deployment) => {
      const key = await at.newSessionKey();
      const response = await logOut(at, key);
      hasStatus(response, 200);
      isExactly(response, BOTH);
      isError(await logOut(at, key), 401, NOT_SIGNED_IN);
    },
  })),
  {
    id: 'v2-post-token',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'A bearer token ends its login, and is invalid afterwards.',
    check: async (at) => {
      const token = await at.newToken();
      const response = await at.send('POST', V2_LOGIN, { token });
      hasStatus(response, 200);
      isExactly(response, BOTH);
      hasStatus(await at.send('GET', ME, { token }), 401);
    },
  },
  {
    id: 'v2-post-login',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'A body with username and password is a login: 200 with session_key only.',
    check: async (at) => {
      const response = await at.send('POST', V2_LOGIN, { json: at.user });
      hasStatus(response, 200);
      hasOnly(response, response.body, 'session_key');
      expectOf(response, 'a session_key', typeof response.member('session_key') === 'string');
    },
  },
  {
    id: 'v2-post-login-wrong',
    endpoint: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'A body with wrong credentials returns 401 with data.',
    check: async (at) => {
      const response = await at.send('POST', V2_LOGIN, {
        json: { username: at.unknownUsername, password: 'wrong' },
      });
      isError(response, 401, { data: 'Incorrect login and/or password' });
    },
  },
]);

function wrongQuery({ unknownUsername }: Deployment): string {
  return byQuery({ username: unknownUsername, password: 'wrong' });
}

function byQuery({ username, password }: Credentials): string {
  return `${V2_LOGIN}?${new URLSearchParams({ username, password }).toString()}`;
}
