import { memberOf } from '../answer.ts';
import { partsOf, type Deployment } from '../deployment.ts';
import { challenges, expectOf, hasHeader, hasOnly, hasStatus, isError, isRefused, listOf, says } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import { askAsUser, BLOG, ITEMS, ME, rightForm, SPEAKS, wrongForm } from './common.ts';

const DOORS = [
  { name: 'token', path: '/token' },
  { name: 'login', path: '/login' },
] as const;

/** The logins that take a form, and the rows that take a bearer token. */
export const tokenFlow = section('4.1', 'Token flow', [
  ...DOORS.flatMap(({ name, path }) => [
    {
      id: `${name}-right`,
      row: `POST ${path}`,
      level: 'interface' as const,
      needs: ['user'] as const,
      says: 'A form with the right username and password is answered 200 with a token response.',
      check: async (at: Deployment) => {
        const answer = await rightForm(at, path);
        hasStatus(answer, 200);
        const isToken = typeof answer.member('access_token') === 'string' && typeof answer.member('token_type') === 'string';
        expectOf(answer, 'access_token and token_type', isToken);
      },
    },
    {
      id: `${name}-no-store`,
      row: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'Nobody on the way may keep a token response.',
      check: async (at: Deployment) => hasHeader(await rightForm(at, path), 'Cache-Control', /no-store/),
    },
    {
      id: `${name}-wrong-as-unknown`,
      row: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'A wrong password is answered as an unknown username is.',
      check: async (at: Deployment) => {
        const unknown = await wrongForm(at, path);
        const wrong = await at.ask('POST', path, { form: { username: at.user.username, password: 'wrong' } });
        hasStatus(wrong, unknown.status);
        expectOf(wrong, `the body that an unknown username gets, ${unknown.text}`, wrong.text === unknown.text);
      },
    },
    {
      id: `${name}-disabled`,
      row: `POST ${path}`,
      level: 'decision' as const,
      needs: ['disabled user', 'disabled password'] as const,
      says: 'A disabled user with the right password is answered 400 that the user is inactive.',
      check: async (at: Deployment) =>
        isError(await at.ask('POST', path, { form: { ...at.disabledUser } }), 400, { detail: 'Inactive user' }),
    },
    {
      id: `${name}-disabled-wrong`,
      row: `POST ${path}`,
      level: 'decision' as const,
      needs: ['disabled user'] as const,
      says: 'A wrong password does not tell that the user is disabled.',
      check: async (at: Deployment) => {
        const unknown = await wrongForm(at, path);
        const { username } = at.disabledUser;
        const wrong = await at.ask('POST', path, { form: { username, password: 'wrong' } });
        hasStatus(wrong, unknown.status);
        expectOf(wrong, `the body that an unknown username gets, ${unknown.text}`, wrong.text === unknown.text);
      },
    },
    {
      id: `${name}-offline`,
      row: `POST ${path}`,
      level: 'decision' as const,
      needs: ['user'] as const,
      says: 'With the scope offline_access, expires_in, refresh_token and scope come, too.',
      check: async (at: Deployment) => {
        const answer = await at.ask('POST', path, { form: { ...at.user, scope: 'offline_access' } });
        hasStatus(answer, 200);
        hasOnly(answer, answer.body, 'access_token', 'token_type', 'expires_in', 'refresh_token', 'scope');
      },
    },
  ]),
  {
    id: 'token-wrong',
    row: 'POST /token',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials are answered 401 with detail and WWW-Authenticate: Bearer.',
    check: async (at) => {
      const answer = await wrongForm(at, '/token');
      hasStatus(answer, 401);
      says(answer, 'detail', SPEAKS.ofWrongCredentials, 'that the credentials are incorrect');
      challenges(answer);
    },
  },
  {
    id: 'login-wrong',
    row: 'POST /login',
    level: 'interface',
    needs: [],
    says: 'Wrong credentials are answered with detail.',
    check: async (at) => {
      const answer = await wrongForm(at, '/login');
      isRefused(answer);
      says(answer, 'detail', SPEAKS.ofWrongCredentials, 'that the credentials are incorrect');
    },
  },
  {
    id: 'login-wrong-as-token',
    row: 'POST /login',
    level: 'decision',
    needs: [],
    says: 'Wrong credentials are answered as at POST /token: 401 "Incorrect username or password" with WWW-Authenticate: Bearer.',
    check: async (at) => {
      for (const { path } of DOORS) {
        const answer = await wrongForm(at, path);
        isError(answer, 401, { detail: 'Incorrect username or password' });
        hasHeader(answer, 'WWW-Authenticate', 'Bearer');
      }
    },
  },
  {
    id: 'token-oauth-error',
    row: 'POST /token',
    level: 'decision',
    needs: [],
    says: 'Where grant_type was sent, error and error_description stand beside detail (RFC 6749, 5.2), and nowhere else.',
    check: async (at) => {
      for (const { path } of DOORS) {
        const form = { username: at.nobody, password: 'wrong' };
        const answer = await at.ask('POST', path, { form: { ...form, grant_type: 'password' } });
        hasStatus(answer, 401);
        expectOf(answer, 'the error invalid_grant', answer.member('error') === 'invalid_grant');
        hasOnly(answer, answer.body, 'detail', 'error', 'error_description');
        const plain = await at.ask('POST', path, { form });
        hasOnly(plain, plain.body, 'detail');
      }
    },
  },
  {
    id: 'token-json',
    row: 'POST /token',
    level: 'decision',
    needs: [],
    says: 'A body that is no form is answered 415.',
    check: async (at) => hasStatus(await at.ask('POST', '/token', { json: { username: at.nobody, password: 'wrong' } }), 415),
  },
  {
    id: 'token-unknown-fields',
    row: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'Fields that the form need not have are ignored.',
    check: async (at) => {
      const form = { ...at.user, grant_type: 'password', client_id: 'contract', disabled: 'true' };
      hasStatus(await at.ask('POST', '/token', { form }), 200);
    },
  },
  {
    id: 'token-scope',
    row: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'The form’s scope narrows what the token may do; the claim scopes says to what.',
    check: async (at) => {
      const answer = await at.ask('POST', '/token', { form: { ...at.user, scope: 'contract:none' } });
      hasStatus(answer, 200);
      const [, { scopes }] = partsOf(String(answer.member('access_token')));
      expectOf(answer, 'a token with no scopes', Array.isArray(scopes) && scopes.length === 0, `a token with ${JSON.stringify(scopes)}`);
    },
  },
  {
    id: 'refresh',
    row: 'POST /token',
    level: 'decision',
    needs: ['user'],
    says: 'A refresh_token gets new tokens, which open the protected rows; one that is older than the last used ends its session.',
    check: async (at) => {
      const login = await at.ask('POST', '/token', { form: { ...at.user, scope: 'offline_access' } });
      const refresh_token = login.member('refresh_token');
      expectOf(login, 'a refresh_token', typeof refresh_token === 'string');
      const refresh = (given: unknown) => at.ask('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token: String(given) } });
      const second = await refresh(refresh_token);
      hasStatus(second, 200);
      // The last one that was used may be used again for some seconds.
      const refreshed = await refresh(second.member('refresh_token'));
      hasStatus(refreshed, 200);
      const token = String(refreshed.member('access_token'));
      hasStatus(await at.ask('GET', ME, { token }), 200);
      isRefused(await refresh(refresh_token));
      hasStatus(await at.ask('GET', ME, { token }), 401);
    },
  },
  {
    id: 'me',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user'],
    says: 'The bearer of a token gets the user whose token it is.',
    check: async (at) => {
      const answer = await askAsUser(at, ME);
      hasStatus(answer, 200);
      expectOf(answer, `the username ${at.user.username}`, answer.member('username') === at.user.username);
    },
  },
  {
    id: 'items',
    row: `GET ${ITEMS}`,
    level: 'interface',
    needs: ['user'],
    says: 'The bearer of a token gets an array of the user’s items.',
    check: async (at) => isArray(at, ITEMS),
  },
  {
    id: 'login-get',
    row: 'GET /login',
    level: 'interface',
    needs: [],
    says: 'The answer’s detail says that the method is not allowed.',
    check: async (at) => says(await at.ask('GET', '/login'), 'detail', SPEAKS.ofMethod, 'that the method is not allowed'),
  },
  {
    id: 'login-get-405',
    row: 'GET /login',
    level: 'decision',
    needs: [],
    says: 'The answer is 405 with Allow and the text of the original services.',
    check: async (at) => {
      const answer = await at.ask('GET', '/login');
      isError(answer, 405, { detail: 'Method "GET" not allowed.' });
      hasHeader(answer, 'Allow', 'POST, OPTIONS');
    },
  },
  {
    id: 'blog',
    row: `GET ${BLOG}`,
    level: 'interface',
    needs: ['user'],
    says: 'The bearer of a token gets an array of blog entries.',
    check: async (at) => isArray(at, BLOG),
  },
  {
    id: 'blog-drafts',
    row: `GET ${BLOG}`,
    level: 'decision',
    needs: ['user'],
    says: 'Of what is not published, only the caller’s own is shown.',
    check: async (at) => {
      const answer = await askAsUser(at, BLOG);
      const entries = listOf(answer);
      if (entries.length === 0) throw new NotTried('there are no blog entries');
      for (const entry of entries) {
        const mayBeSeen = memberOf(entry, 'published') === true || memberOf(memberOf(entry, 'creator'), 'username') === at.user.username;
        expectOf(answer, 'published entries, and the caller’s own', mayBeSeen, 'the draft of somebody else');
      }
    },
  },
  {
    id: 'blog-anonymous',
    row: `GET ${BLOG}`,
    level: 'interface',
    needs: [],
    says: 'Without a token, detail says that the caller is not authenticated.',
    check: async (at) => says(await at.ask('GET', BLOG), 'detail', SPEAKS.ofMissingLogin, 'that the caller is not authenticated'),
  },
]);

async function isArray(at: Deployment, path: string): Promise<void> {
  const answer = await askAsUser(at, path);
  hasStatus(answer, 200);
  expectOf(answer, 'an array', Array.isArray(answer.body));
}
