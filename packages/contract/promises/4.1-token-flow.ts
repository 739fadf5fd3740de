import { memberOf } from '../response.ts';
import { partsOf, type Deployment } from '../deployment.ts';
import {
  hasBearerChallenge,
  expectOf,
  hasHeader,
  hasOnly,
  hasStatus,
  isError,
  isRejected,
  listOf,
  hasMessage,
} from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import { getAsUser, BLOG, ITEMS, ME, rightForm, MESSAGES, wrongForm } from './common.ts';

const LOGINS = [
  { name: 'token', path: '/token' },
  { name: 'login', path: '/login' },
] as const;

/** Logins with a form, and endpoints with a bearer token. */
export const tokenFlow = section('4.1', 'Token flow', [
  ...LOGINS.flatMap(({ name, path }) => [
    {
      id: `${name}-right`,
      endpoint: `POST ${path}`,
      level: 'interface' as const,
      needs: ['user'] as const,
      says: 'A form with valid credentials returns 200 with a token response.',
      check: async (at: Deployment) => {
        const response = await rightForm(at, path);
        hasStatus(response, 200);
        const isToken =
          typeof response.member('access_token') === 'string' &&
          typeof response.member('token_type') === 'string';
        expectOf(response, 'access_token and token_type', isToken);
      },
    },
    {
      id: `${name}-no-store`,
      endpoint: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'A token response has Cache-Control: no-store.',
      check: async (at: Deployment) =>
        hasHeader(await rightForm(at, path), 'Cache-Control', /no-store/),
    },
    {
      id: `${name}-wrong-as-unknown`,
      endpoint: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'A wrong password and an unknown username return the same response.',
      check: async (at: Deployment) => {
        const unknown = await wrongForm(at, path);
        const wrong = await at.send('POST', path, {
          form: { username: at.user.username, password: 'wrong' },
        });
        hasStatus(wrong, unknown.status);
        expectOf(
          wrong,
          `the body for an unknown username, ${unknown.text}`,
          wrong.text === unknown.text,
        );
      },
    },
    {
      id: `${name}-disabled`,
      endpoint: `POST ${path}`,
      level: 'decision' as const,
      needs: ['disabled user', 'disabled password'] as const,
      says: 'A disabled user with the right password returns 400 "Inactive user".',
      check: async (at: Deployment) =>
        isError(await at.send('POST', path, { form: { ...at.disabledUser } }), 400, {
          detail: 'Inactive user',
        }),
    },
    {
      id: `${name}-disabled-wrong`,
      endpoint: `POST ${path}`,
      level: 'decision' as const,
      needs: ['disabled user'] as const,
      says: 'A wrong password does not reveal that the user is disabled.',
      check: async (at: Deployment) => {
        const unknown = await wrongForm(at, path);
        const { username } = at.disabledUser;
        const wrong = await at.send('POST', path, { form: { username, password: 'wrong' } });
        hasStatus(wrong, unknown.status);
        expectOf(
          wrong,
          `the body for an unknown username, ${unknown.text}`,
          wrong.text === unknown.text,
        );
      },
    },
    {
      id: `${name}-offline`,
      endpoint: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'With the scope offline_access, the response also has expires_in, refresh_token and scope.',
      check: async (at: Deployment) => {
        const response = await at.send('POST', path, {
          form: { ...at.user, scope: 'offline_access' },
        });
        hasStatus(response, 200);
        hasOnly(
          response,
          response.body,
          'access_token',
          'token_type',
          'expires_in',
          'refresh_token',
          'scope',
        );
      },
    },
  ]),
  {
    id: 'token-wrong',
    endpoint: 'POST /token',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials return 401 with detail and WWW-Authenticate: Bearer.',
    check: async (at) => {
      const response = await wrongForm(at, '/token');
      hasStatus(response, 401);
      hasMessage(
        response,
        'detail',
        MESSAGES.wrongCredentials,
        'that the credentials are incorrect',
      );
      hasBearerChallenge(response);
    },
  },
  {
    id: 'login-wrong',
    endpoint: 'POST /login',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials return an error with detail.',
    check: async (at) => {
      const response = await wrongForm(at, '/login');
      isRejected(response);
      hasMessage(
        response,
        'detail',
        MESSAGES.wrongCredentials,
        'that the credentials are incorrect',
      );
    },
  },
  {
    id: 'login-wrong-as-token',
    endpoint: 'POST /login',
    level: 'decision',
    needs: [],
    says: 'Wrong credentials return the response of POST /token: 401 "Incorrect username or password" with WWW-Authenticate: Bearer.',
    check: async (at) => {
      for (const { path } of LOGINS) {
        const response = await wrongForm(at, path);
        isError(response, 401, { detail: 'Incorrect username or password' });
        hasHeader(response, 'WWW-Authenticate', 'Bearer');
      }
    },
  },
  {
    id: 'token-oauth-error',
    endpoint: 'POST /token',
    level: 'decision',
    needs: [],
    says: 'Errors have error and error_description (RFC 6749, 5.2) only if the request has grant_type.',
    check: async (at) => {
      for (const { path } of LOGINS) {
        const form = { username: at.unknownUsername, password: 'wrong' };
        const response = await at.send('POST', path, { form: { ...form, grant_type: 'password' } });
        hasStatus(response, 401);
        expectOf(response, 'the error invalid_grant', response.member('error') === 'invalid_grant');
        hasOnly(response, response.body, 'detail', 'error', 'error_description');
        const plain = await at.send('POST', path, { form });
        hasOnly(plain, plain.body, 'detail');
      }
    },
  },
  {
    id: 'token-json',
    endpoint: 'POST /token',
    level: 'decision',
    needs: [],
    says: 'A body that is not a form returns 415.',
    check: async (at) =>
      hasStatus(
        await at.send('POST', '/token', {
          json: { username: at.unknownUsername, password: 'wrong' },
        }),
        415,
      ),
  },
  {
    id: 'token-unknown-fields',
    endpoint: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'Unknown fields of the form are ignored.',
    check: async (at) => {
      const form = { ...at.user, grant_type: 'password', client_id: 'contract', disabled: 'true' };
      hasStatus(await at.send('POST', '/token', { form }), 200);
    },
  },
  {
    id: 'token-scope',
    endpoint: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'The field scope limits the scopes of the token, which are in the claim scopes.',
    check: async (at) => {
      const response = await at.send('POST', '/token', {
        form: { ...at.user, scope: 'contract:none' },
      });
      hasStatus(response, 200);
      const [, { scopes }] = partsOf(String(response.member('access_token')));
      expectOf(
        response,
        'a token with no scopes',
        Array.isArray(scopes) && scopes.length === 0,
        `a token with ${JSON.stringify(scopes)}`,
      );
    },
  },
  {
    id: 'refresh',
    endpoint: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'A refresh_token returns new, valid tokens; one older than the last used one ends the session.',
    check: async (at) => {
      const login = await at.send('POST', '/token', {
        form: { ...at.user, scope: 'offline_access' },
      });
      const refresh_token = login.member('refresh_token');
      expectOf(login, 'a refresh_token', typeof refresh_token === 'string');
      const refresh = (refreshToken: unknown) =>
        at.send('POST', '/token', {
          form: { grant_type: 'refresh_token', refresh_token: String(refreshToken) },
        });
      const second = await refresh(refresh_token);
      hasStatus(second, 200);
      // The last used token may be used again for some seconds.
      const refreshed = await refresh(second.member('refresh_token'));
      hasStatus(refreshed, 200);
      const token = String(refreshed.member('access_token'));
      hasStatus(await at.send('GET', ME, { token }), 200);
      isRejected(await refresh(refresh_token));
      hasStatus(await at.send('GET', ME, { token }), 401);
    },
  },
  {
    id: 'me',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'With a token, the response is the user of the token.',
    check: async (at) => {
      const response = await getAsUser(at, ME);
      hasStatus(response, 200);
      expectOf(
        response,
        `the username ${at.user.username}`,
        response.member('username') === at.user.username,
      );
    },
  },
  {
    id: 'items',
    endpoint: `GET ${ITEMS}`,
    level: 'interface',
    needs: ['user'],
    says: 'With a token, the response is an array of the items of the user.',
    check: async (at) => isArray(at, ITEMS),
  },
  {
    id: 'login-get',
    endpoint: 'GET /login',
    level: 'interface',
    needs: [],
    says: 'The message in detail says that the method is not allowed.',
    check: async (at) =>
      hasMessage(
        await at.send('GET', '/login'),
        'detail',
        MESSAGES.method,
        'that the method is not allowed',
      ),
  },
  {
    id: 'login-get-405',
    endpoint: 'GET /login',
    level: 'decision',
    needs: [],
    says: 'The response is 405 with Allow and the message of the original services.',
    check: async (at) => {
      const response = await at.send('GET', '/login');
      isError(response, 405, { detail: 'Method "GET" not allowed.' });
      hasHeader(response, 'Allow', 'POST, OPTIONS');
    },
  },
  {
    id: 'blog',
    endpoint: `GET ${BLOG}`,
    level: 'interface',
    needs: ['user'],
    says: 'With a token, the response is an array of blog entries.',
    check: async (at) => isArray(at, BLOG),
  },
  {
    id: 'blog-drafts',
    endpoint: `GET ${BLOG}`,
    level: 'decision',
    needs: ['user'],
    says: 'Unpublished entries are only returned to their creator.',
    check: async (at) => {
      const response = await getAsUser(at, BLOG);
      const entries = listOf(response);
      if (entries.length === 0) throw new Skipped('there are no blog entries');
      for (const entry of entries) {
        const isVisible =
          memberOf(entry, 'published') === true ||
          memberOf(memberOf(entry, 'creator'), 'username') === at.user.username;
        expectOf(
          response,
          'published entries, and those of the caller',
          isVisible,
          'the draft of another user',
        );
      }
    },
  },
  {
    id: 'blog-anonymous',
    endpoint: `GET ${BLOG}`,
    level: 'interface',
    needs: [],
    says: 'Without a token, the message in detail says that the caller is not authenticated.',
    check: async (at) =>
      hasMessage(
        await at.send('GET', BLOG),
        'detail',
        MESSAGES.missingLogin,
        'that the caller is not authenticated',
      ),
  },
]);

async function isArray(at: Deployment, path: string): Promise<void> {
  const response = await getAsUser(at, path);
  hasStatus(response, 200);
  expectOf(response, 'an array', Array.isArray(response.body));
}
