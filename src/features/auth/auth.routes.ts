import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { withContext, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import { route, type Routes } from '../../api/route.ts';
import { check } from '../../core/validation.ts';
import { credentials } from './auth.rules.ts';
import * as auth from './auth.service.ts';
import { callerBySessionKey } from './callers.ts';

/** The scope that requests a refresh token (OpenID Connect Core, 11). Grants no permission. */
const OFFLINE_ACCESS = 'offline_access';
const V2_LOGIN = '/api/v2/auth/login';
const LOGOUT_SUCCESSFUL = 'Logout successful';

const EXAMPLE_KEY = 'an-example-of-a-key-with-43-characters-0000';

const loginHeaders = z.object({
  authorization: z.string().optional(),
  'sec-fetch-site': z.string().optional(),
});
const refreshForm = z.object({ refresh_token: z.string() });
const tokenBody = z
  .object({
    access_token: z.string().meta({
      description: 'A JWT for the header Authorization: Bearer.',
      examples: ['header.claims.signature'],
    }),
    token_type: z.string().meta({ description: 'Always bearer.', examples: ['bearer'] }),
    expires_in: z.int().optional().meta({
      description: 'Lifetime of the access token in seconds; only with offline_access.',
    }),
    refresh_token: z.string().optional().meta({
      description: 'Single-use token for grant_type=refresh_token; only with offline_access.',
    }),
    scope: z.string().optional().meta({
      description: 'Scopes of the token, and offline_access; only with offline_access.',
    }),
  })
  .meta({ id: 'Token', description: 'An access token (RFC 6749, 5.1).' });
const sessionBody = z
  .object({
    session_key: z.string().meta({
      description: 'The key for the header X-SESSION-ID and for the logout.',
      maxLength: 255,
      examples: [EXAMPLE_KEY],
    }),
  })
  .meta({ id: 'SessionKey', description: 'The key of a session.' });
const loggedOut = z
  .string()
  .meta({ description: 'Confirmation of the logout.', examples: [LOGOUT_SUCCESSFUL] });

const grantType = z.string().pipe(z.enum(['', 'password', 'refresh_token']));
// One list of the fields of both grants: client generators handle alternatives in a form badly.
const tokenForm = z.object({
  grant_type: grantType.optional().meta({
    description: 'The grant that is exchanged for tokens.',
    enum: ['password', 'refresh_token'],
    default: 'password',
  }),
  ...credentials.partial().shape,
  scope: z.string().optional().meta({
    description:
      'Space-separated scopes that limit the token, and offline_access for a refresh token.',
  }),
  refresh_token: z.string().optional().meta({
    description:
      'The latest refresh token, with grant_type=refresh_token. An older one ends its session.',
  }),
});
const demoCredentials = { username: 'alice', password: 'alice-demo-1' };
const formExamples = {
  password: { grant_type: 'password', ...demoCredentials, scope: 'products:write offline_access' },
  refresh_token: { grant_type: 'refresh_token', refresh_token: 'header.claims.signature' },
};

const invalidCredentials = new DomainError('INVALID_CREDENTIALS', 'Incorrect username or password');
const basicRequired = new DomainError('CREDENTIALS_REQUIRED', 'Incorrect login and/or password');
const invalidLogin = new DomainError('INVALID_CREDENTIALS', basicRequired.message);
const missing = (field: string) => badInput(field, 'Field required', 'missing');

const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) {
    access_token: accessToken
    token_type: tokenType
    session_key: sessionKey
  }
}`;
const loginEquivalent = { operation: LOGIN, variables: demoCredentials };
const tokenEquivalent = {
  ...loginEquivalent,
  correspondences: [
    { rest: 'access_token', graphql: 'login.access_token', as: 'new' },
    { rest: 'token_type', graphql: 'login.token_type' },
  ],
} as const;
const keyEquivalent = {
  ...loginEquivalent,
  correspondences: [{ rest: 'session_key', graphql: 'login.session_key', as: 'new' }],
} as const;
const LOGOUT = `mutation ($sessionKey: String) {
  logout(sessionKey: $sessionKey) { ended }
}`;
const logoutEquivalent = {
  operation: LOGOUT,
  variables: { sessionKey: null },
  correspondences: [{ rest: 'data', graphql: 'logout.ended', as: 'presence' }],
} as const;
const sessionEndpoint = { access: 'login', errorKey: 'data', secret: true } as const;

/** Interface, sections 4.1 and 4.2. */
export const authRoutes: Routes = ({
  sessionPrefix,
  sessionIdleDays,
  sessionLifetimeDays,
  legacyQueryLogin,
}) => [
  ...['/token', '/login'].map((path) =>
    route({
      method: 'POST',
      path,
      summary: path === '/token' ? 'Get an access token' : 'Get an access token (alternative path)',
      description:
        `${path === '/token' ? '' : 'Equivalent to `POST /token`. '}Checks the username and password of the form, and returns an access token that ` +
        'expires after 30 minutes. With `offline_access` in `scope`, it also returns a refresh token, which `grant_type=refresh_token` exchanges for ' +
        'new tokens. Too many failed logins return 429 for a while.',
      access: 'login',
      errors: [
        invalidCredentials,
        new DomainError('INACTIVE_LOGIN', 'Inactive user'),
        missing('username'),
      ],
      examples: formExamples,
      secret: true,
      oauth: true,
      input: { form: tokenForm },
      success: { status: 200, body: tokenBody },
      graphqlEquivalent: tokenEquivalent,
      handle: (ctx, { form }) => tokenResponse(ctx, form),
    }),
  ),
  route({
    ...sessionEndpoint,
    method: 'POST',
    path: `${sessionPrefix}/login`,
    summary: 'Get a session key',
    description:
      'Checks the username and password, and returns the key of a new session, which later requests send as `X-SESSION-ID`. The session ends at ' +
      `logout, after ${sessionIdleDays} days without a request, or ${sessionLifetimeDays} days after the login. Too many failed logins return 429 for a while.`,
    errors: [invalidCredentials, missing('username')],
    input: { json: credentials },
    success: { status: 200, body: sessionBody },
    graphqlEquivalent: keyEquivalent,
    handle: (ctx, { json }) => newSession(ctx, json),
  }),
  route({
    ...sessionEndpoint,
    method: 'POST',
    path: `${sessionPrefix}/logout`,
    summary: 'End a session',
    description:
      'Ends the session of the key in the body. The access tokens and refresh tokens of the session become invalid. The request needs no ' +
      'other credentials.',
    errors: [new DomainError('INVALID_SESSION_KEY', 'Invalid session key'), missing('session_key')],
    input: { json: sessionBody },
    success: { status: 200, body: z.object({ data: loggedOut }) },
    graphqlEquivalent: logoutEquivalent,
    handle: async (ctx, { json }) => {
      await auth.logoutByKey(ctx, json.session_key);
      return { data: LOGOUT_SUCCESSFUL };
    },
  }),
  route({
    ...sessionEndpoint,
    method: 'GET',
    path: V2_LOGIN,
    summary: 'Get a session key by HTTP Basic',
    description:
      'Checks the username and password of `Authorization: Basic`, and returns the key of a new session. ' +
      (legacyQueryLogin
        ? 'Without that header, it takes them from the query, which proxies may log; prefer the header. '
        : '') +
      'Too many failed logins return 429 for a while.',
    errors: [basicRequired, invalidCredentials, missing('username')],
    input: { headers: loginHeaders, query: z.record(z.string(), z.unknown()) },
    documented: {
      headers: loginHeaders.pick({ authorization: true }),
      ...(legacyQueryLogin && { query: credentials.partial() }),
    },
    success: { status: 200, body: sessionBody },
    graphqlEquivalent: keyEquivalent,
    handle: (ctx, { headers, query }) => {
      const given = basicCredentials(headers.authorization) ?? (legacyQueryLogin ? query : {});
      if ('username' in given || 'password' in given) return newSession(ctx, given);
      // Clients such as wget send a password only after a challenge. Browsers, which send
      // Sec-Fetch-Site, would show a dialog and store the password.
      throw headers['sec-fetch-site'] === undefined ? basicRequired : invalidLogin;
    },
  }),
  route({
    ...sessionEndpoint,
    method: 'POST',
    path: V2_LOGIN,
    summary: 'End the session, or get a session key',
    description:
      "Ends the session of the key in the body, or without a key the session of the request's credentials. A body with a `username` is " +
      `a login, as at \`POST ${sessionPrefix}/login\`, and returns a session key. The interface specifies both for this path.`,
    errors: [
      new DomainError('NOT_AUTHENTICATED', 'Not authenticated'),
      invalidCredentials,
      missing('password'),
    ],
    examples: { logout: { session_key: EXAMPLE_KEY }, login: demoCredentials },
    access: (json) =>
      json !== undefined && ('username' in json || 'session_key' in json) ? 'login' : 'signed-in',
    bodyOptional: true,
    input: {
      json: z.object({ ...sessionBody.partial().shape, ...credentials.partial().shape }),
    },
    success: {
      status: 200,
      body: z.union([sessionBody, z.object({ detail: loggedOut, data: loggedOut })]),
    },
    graphqlEquivalent: logoutEquivalent,
    handle: async (ctx, { json }) => {
      if ('username' in json) return newSession(ctx, json);
      const key = json.session_key;
      await auth.logout(
        key === undefined ? ctx : withContext(ctx, { caller: await callerBySessionKey(ctx, key) }),
      );
      return { detail: LOGOUT_SUCCESSFUL, data: LOGOUT_SUCCESSFUL };
    },
  }),
];

// RFC 6749, 5.1. Without offline_access only the two members that clients of the interface know.
async function tokenResponse(
  ctx: Context,
  form: z.output<typeof tokenForm>,
): Promise<z.input<typeof tokenBody>> {
  const requested = (form.scope ?? '').split(' ').filter((name) => name !== '');
  const narrowed = requested.filter((name) => name !== OFFLINE_ACCESS);
  const isRefresh = form.grant_type === 'refresh_token';
  const { user, session } = isRefresh
    ? await auth.refresh(ctx, check(refreshForm, form).refresh_token)
    : await auth.login(ctx, check(credentials, form), narrowed.length > 0 ? narrowed : undefined);
  const { accessToken, expiresIn, refreshToken, scopes } = auth.issueTokens(ctx, user, session);
  const token = { access_token: accessToken, token_type: 'bearer' };
  if (!isRefresh && !requested.includes(OFFLINE_ACCESS)) return token;
  const scope = [...scopes, OFFLINE_ACCESS].join(' ');
  return { ...token, expires_in: expiresIn, refresh_token: refreshToken, scope };
}

async function newSession(ctx: Context, input: unknown): Promise<z.input<typeof sessionBody>> {
  const { sessionKey } = await auth.login(ctx, check(credentials, input));
  return { session_key: sessionKey };
}

// RFC 7617, 2.
function basicCredentials(authorization = ''): { username: string; password: string } | undefined {
  const [, encoded] = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization) ?? [];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64');
  // Decoding invalid UTF-8 would yield another password than was sent.
  if (!isUtf8(bytes)) return undefined;
  const [username = '', ...password] = bytes.toString().split(':');
  return { username, password: password.join(':') };
}
