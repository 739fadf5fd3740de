import type { Answer } from '../answer.ts';
import type { Credentials, Deployment } from '../deployment.ts';
import { expectOf, hasHeader, hasOnly, hasStatus, isError, isExactly, isRefused, says, succeeds } from '../expectations.ts';
import { section } from '../promised.ts';
import { basic, ME, rightSessionLogin, SPEAKS, V2_LOGIN, wrongLogout, wrongSessionLogin } from './common.ts';

const BOTH = { detail: 'Logout successful', data: 'Logout successful' };
const NOT_SIGNED_IN = { detail: 'Not authenticated' };

/** The credentials by which POST /api/v2/auth/login knows whose session to end. */
const WAYS: { name: string; words: string; leave: (at: Deployment, key: string) => Promise<Answer> }[] = [
  { name: 'x-session-id', words: 'X-SESSION-ID', leave: (at, sessionKey) => at.ask('POST', V2_LOGIN, { sessionKey }) },
  { name: 'x-sessionid', words: 'X-SESSIONID', leave: (at, key) => at.ask('POST', V2_LOGIN, { headers: { 'X-SESSIONID': key } }) },
  { name: 'body', words: 'session_key in the body', leave: (at, session_key) => at.ask('POST', V2_LOGIN, { json: { session_key } }) },
];

/** Logins that give a session key, and logouts. */
export const sessionFlow = section('4.2', 'Session flow', [
  {
    id: 'login',
    row: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'The right username and password are answered 200 with the session_key of a session.',
    check: async (at) => {
      const answer = await rightSessionLogin(at);
      hasStatus(answer, 200);
      expectOf(answer, 'a session_key', typeof answer.member('session_key') === 'string');
    },
  },
  {
    id: 'login-new',
    row: 'POST {session}/login',
    level: 'interface',
    needs: ['user'],
    says: 'Each login opens a new session with a key of its own.',
    check: async (at) => {
      const first = await rightSessionLogin(at);
      const second = await at.ask('POST', at.session('login'), { json: at.user });
      hasStatus(second, 200);
      const isNew = second.member('session_key') !== first.member('session_key');
      expectOf(second, 'another session_key than before', isNew, 'the same');
    },
  },
  {
    id: 'login-wrong',
    row: 'POST {session}/login',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials are answered 401 with data that says so.',
    check: async (at) => {
      const answer = await wrongSessionLogin(at);
      hasStatus(answer, 401);
      says(answer, 'data', SPEAKS.ofWrongCredentials, 'that login and/or password are incorrect');
    },
  },
  {
    id: 'login-wrong-text',
    row: 'POST {session}/login',
    level: 'decision',
    needs: [],
    says: 'The text is "Incorrect login and/or password".',
    check: async (at) => isError(await wrongSessionLogin(at), 401, { data: 'Incorrect login and/or password' }),
  },
  {
    id: 'login-wrong-as-unknown',
    row: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'A wrong password is answered as an unknown username is.',
    check: async (at) => {
      const unknown = await wrongSessionLogin(at);
      const wrong = await at.ask('POST', at.session('login'), { json: { username: at.user.username, password: 'wrong' } });
      hasStatus(wrong, unknown.status);
      expectOf(wrong, `the body that an unknown username gets, ${unknown.text}`, wrong.text === unknown.text);
    },
  },
  {
    id: 'login-disabled',
    row: 'POST {session}/login',
    level: 'decision',
    needs: ['disabled user', 'disabled password'],
    says: 'A disabled user with the right password is answered 401 with data that says so.',
    check: async (at) => {
      const answer = await at.ask('POST', at.session('login'), { json: at.disabledUser });
      hasStatus(answer, 401);
      says(answer, 'data', SPEAKS.ofInactivity, 'that the user is inactive');
    },
  },
  {
    id: 'login-no-store',
    row: 'POST {session}/login',
    level: 'decision',
    needs: ['user'],
    says: 'Nobody on the way may keep a login response.',
    check: async (at) => hasHeader(await rightSessionLogin(at), 'Cache-Control', /no-store/),
  },
  {
    id: 'logout-unknown',
    row: 'POST {session}/logout',
    level: 'interface',
    needs: [],
    says: 'A key that no session has is answered 401 with data that it is invalid.',
    check: async (at) => {
      const answer = await wrongLogout(at);
      hasStatus(answer, 401);
      says(answer, 'data', SPEAKS.ofBadKey, 'that the session key is invalid');
    },
  },
  {
    id: 'logout-unknown-text',
    row: 'POST {session}/logout',
    level: 'decision',
    needs: [],
    says: 'The text is "Invalid session key".',
    check: async (at) => isError(await wrongLogout(at), 401, { data: 'Invalid session key' }),
  },
  {
    id: 'logout',
    row: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'The key of a session is answered 200 with data that the logout was successful.',
    check: async (at) => {
      const answer = await at.ask('POST', at.session('logout'), { json: { session_key: await at.newSessionKey() } });
      hasStatus(answer, 200);
      says(answer, 'data', SPEAKS.ofSuccess, 'that the logout was successful');
    },
  },
  {
    id: 'logout-text',
    row: 'POST {session}/logout',
    level: 'decision',
    needs: ['user'],
    says: 'The text is "Logout successful".',
    check: async (at) => {
      const answer = await at.ask('POST', at.session('logout'), { json: { session_key: await at.newSessionKey() } });
      isError(answer, 200, { data: 'Logout successful' });
    },
  },
  {
    id: 'logout-ends',
    row: 'POST {session}/logout',
    level: 'interface',
    needs: ['user'],
    says: 'After the logout there is no such session: a second logout is answered 401.',
    check: async (at) => {
      const json = { session_key: await at.newSessionKey() };
      await at.ask('POST', at.session('logout'), { json });
      const second = await at.ask('POST', at.session('logout'), { json });
      hasStatus(second, 401);
      says(second, 'data', SPEAKS.ofBadKey, 'that the session key is invalid');
    },
  },
  {
    id: 'logout-ends-one',
    row: 'POST {session}/logout',
    level: 'decision',
    needs: ['user'],
    says: 'A logout ends no other session of the user.',
    check: async (at) => {
      const sessionKey = await at.newSessionKey();
      await at.ask('POST', at.session('logout'), { json: { session_key: await at.newSessionKey() } });
      hasStatus(await at.ask('GET', ME, { sessionKey }), 200);
    },
  },
  {
    id: 'v2-get-wrong',
    row: `GET ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'Wrong values are answered with an error.',
    check: async (at) => isRefused(await at.ask('GET', wrongQuery(at), { headers: basic(at.nobody, 'wrong') })),
  },
  {
    id: 'v2-get-right',
    row: `GET ${V2_LOGIN}`,
    level: 'interface',
    needs: ['user'],
    says: 'The right username and password, by HTTP Basic or else in the query, are answered with a session key.',
    check: async (at) => {
      const byHeader = await at.ask('GET', V2_LOGIN, { headers: basic(at.user.username, at.user.password) });
      const isTaken = typeof byHeader.member('session_key') === 'string';
      const answer = isTaken ? byHeader : await at.ask('GET', byQuery(at.user));
      succeeds(answer);
      expectOf(answer, 'a session_key', typeof answer.member('session_key') === 'string');
    },
  },
  {
    id: 'v2-get-basic',
    row: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'HTTP Basic carries username and password, and goes before the query; nobody on the way may keep the answer.',
    check: async (at) => {
      const answer = await at.ask('GET', wrongQuery(at), { headers: basic(at.user.username, at.user.password) });
      hasStatus(answer, 200);
      expectOf(answer, 'a session_key', typeof answer.member('session_key') === 'string');
      hasOnly(answer, answer.body, 'session_key');
      hasHeader(answer, 'Cache-Control', /no-store/);
    },
  },
  {
    id: 'v2-get-challenge',
    row: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'Without credentials, the answer is 401 with data and asks for HTTP Basic.',
    check: async (at) => {
      const answer = await at.ask('GET', V2_LOGIN);
      isError(answer, 401, { data: 'Incorrect login and/or password' });
      hasHeader(answer, 'WWW-Authenticate', /^basic realm="[^"]*", charset="UTF-8"$/i);
    },
  },
  {
    id: 'v2-get-query',
    row: `GET ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'The query carries username and password, too; wrong ones, there or by HTTP Basic, are answered 401 with data.',
    check: async (at) => {
      const data = 'Incorrect login and/or password';
      isError(await at.ask('GET', wrongQuery(at)), 401, { data });
      isError(await at.ask('GET', V2_LOGIN, { headers: basic(at.nobody, 'wrong') }), 401, { data });
    },
  },
  {
    id: 'v2-post-logout',
    row: `POST ${V2_LOGIN}`,
    level: 'interface',
    needs: ['user'],
    says: 'A logged-in user is logged out, and answered 200 with detail that the logout was successful.',
    check: async (at) => {
      const session_key = await at.newSessionKey();
      const answer = await at.ask('POST', V2_LOGIN, {
        sessionKey: session_key,
        headers: { 'X-SESSIONID': session_key },
        json: { session_key },
      });
      hasStatus(answer, 200);
      says(answer, 'detail', SPEAKS.ofSuccess, 'that the logout was successful');
      hasStatus(await at.ask('POST', at.session('logout'), { json: { session_key } }), 401);
    },
  },
  {
    id: 'v2-post-anonymous',
    row: `POST ${V2_LOGIN}`,
    level: 'interface',
    needs: [],
    says: 'The logout is for logged-in users only.',
    check: async (at) => isRefused(await at.ask('POST', V2_LOGIN)),
  },
  {
    id: 'v2-post-anonymous-401',
    row: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'Others are answered 401 that they are not authenticated.',
    check: async (at) => {
      const answer = await at.ask('POST', V2_LOGIN);
      isError(answer, 401, NOT_SIGNED_IN);
      hasHeader(answer, 'WWW-Authenticate', 'Bearer');
    },
  },
  ...WAYS.map(({ name, words, leave }) => ({
    id: `v2-post-${name}`,
    row: `POST ${V2_LOGIN}`,
    level: 'decision' as const,
    needs: ['user'] as const,
    says: `The session is found by ${words}; both detail and data say that the logout was successful, and a second one is 401.`,
    check: async (at: Deployment) => {
      const key = await at.newSessionKey();
      const answer = await leave(at, key);
      hasStatus(answer, 200);
      isExactly(answer, BOTH);
      isError(await leave(at, key), 401, NOT_SIGNED_IN);
    },
  })),
  {
    id: 'v2-post-token',
    row: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'A bearer token ends its login, and is good for nothing afterwards.',
    check: async (at) => {
      const token = await at.newToken();
      const answer = await at.ask('POST', V2_LOGIN, { token });
      hasStatus(answer, 200);
      isExactly(answer, BOTH);
      hasStatus(await at.ask('GET', ME, { token }), 401);
    },
  },
  {
    id: 'v2-post-login',
    row: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: ['user'],
    says: 'A body with username and password is a login, answered 200 with session_key and nothing else.',
    check: async (at) => {
      const answer = await at.ask('POST', V2_LOGIN, { json: at.user });
      hasStatus(answer, 200);
      hasOnly(answer, answer.body, 'session_key');
      expectOf(answer, 'a session_key', typeof answer.member('session_key') === 'string');
    },
  },
  {
    id: 'v2-post-login-wrong',
    row: `POST ${V2_LOGIN}`,
    level: 'decision',
    needs: [],
    says: 'A body with wrong credentials is answered 401 with data.',
    check: async (at) => {
      const answer = await at.ask('POST', V2_LOGIN, { json: { username: at.nobody, password: 'wrong' } });
      isError(answer, 401, { data: 'Incorrect login and/or password' });
    },
  },
]);

function wrongQuery({ nobody }: Deployment): string {
  return byQuery({ username: nobody, password: 'wrong' });
}

function byQuery({ username, password }: Credentials): string {
  return `${V2_LOGIN}?${new URLSearchParams({ username, password }).toString()}`;
}
