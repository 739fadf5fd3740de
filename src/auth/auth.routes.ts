import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { changed, type Context } from '../kit/context.ts';
import { route, type Routes } from '../kit/route.ts';
import { check } from '../kit/validation.ts';
import { credentials } from './auth.rules.ts';
import * as auth from './auth.service.ts';
import { callerBySessionKey } from './caller.service.ts';

/** The scope that asks for a refresh token, too (OpenID Connect Core, 11). Names no permission. */
const OFFLINE_ACCESS = 'offline_access';
const V2_LOGIN = '/api/v2/auth/login';
const LOGOUT_SUCCESSFUL = 'Logout successful';

const grantType = z.enum(['', 'password', 'refresh_token']).optional();
const tokenForm = z.looseObject({ grant_type: grantType, scope: z.string().optional() });
const refreshForm = z.object({ refresh_token: z.string() });
const tokenBody = z
  .object({
    access_token: z.string().meta({ description: 'For the header Authorization: Bearer.' }),
    token_type: z.string().meta({ description: 'Always bearer.', examples: ['bearer'] }),
    expires_in: z
      .int()
      .optional()
      .meta({ description: 'Seconds that the access token lives; with offline_access.', examples: [1800] }),
    refresh_token: z.string().optional().meta({ description: 'Good once, for grant_type=refresh_token; with offline_access.' }),
    scope: z
      .string()
      .optional()
      .meta({ description: 'What the token may do; with offline_access.', examples: ['products:write'] }),
  })
  .meta({ id: 'Token', description: 'An access token (RFC 6749, 5.1).' });
const sessionBody = z
  .object({ session_key: z.string().meta({ description: 'For the header X-SESSION-ID, and for logout.' }) })
  .meta({ id: 'SessionKey', description: 'The key of a session.' });
const loggedOut = z.string().meta({ description: 'That it has ended.', examples: [LOGOUT_SUCCESSFUL] });

// What a form may hold; which of the two it is, `grant_type` tells.
const passwordGrant = credentials.extend({
  grant_type: z
    .literal('password')
    .optional()
    .meta({ description: 'May be left out.', examples: ['password'] }),
  scope: z
    .string()
    .optional()
    .meta({ description: 'The only scopes that the token may use, and offline_access, space-separated.', examples: [''] }),
});
const refreshGrant = z.object({
  grant_type: z.literal('refresh_token'),
  refresh_token: z.string().meta({ description: 'The last one given out. Used twice, it ends its session.' }),
});

const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) {
    access_token: accessToken
    token_type: tokenType
    session_key: sessionKey
  }
}`;
const loginTwin = { operation: LOGIN, variables: { username: 'alice', password: 'alice-demo-1' } };
const LOGOUT = `mutation ($sessionKey: String) {
  logout(sessionKey: $sessionKey) { ended }
}`;
const sessionRow = { access: 'login', errorKey: 'data', secret: true } as const;

/** Interface, sections 4.1 and 4.2. */
export const authRoutes: Routes = ({ sessionPrefix, legacyQueryLogin }) => [
  ...['/token', '/login'].map((path) =>
    route({
      method: 'POST',
      path,
      summary: 'Signs in, or refreshes, and answers an access token.',
      access: 'login',
      secret: true,
      input: { form: tokenForm },
      documented: { form: z.union([passwordGrant, refreshGrant]) },
      success: { status: 200, body: tokenBody },
      twin: loginTwin,
      handle: (ctx, { form }) => (form.grant_type === 'refresh_token' ? refreshed(ctx, form) : signedIn(ctx, form, form.scope)),
    }),
  ),
  route({
    ...sessionRow,
    method: 'POST',
    path: `${sessionPrefix}/login`,
    summary: 'Signs in and answers a session key.',
    input: { json: credentials },
    success: { status: 200, body: sessionBody },
    twin: loginTwin,
    handle: (ctx, { json }) => newSession(ctx, json),
  }),
  route({
    ...sessionRow,
    method: 'POST',
    path: `${sessionPrefix}/logout`,
    summary: 'Ends the session of the key.',
    input: { json: sessionBody },
    success: { status: 200, body: z.object({ data: loggedOut }) },
    twin: { operation: LOGOUT, variables: { sessionKey: null } },
    handle: async (ctx, { json }) => {
      await auth.logoutByKey(ctx, json.session_key);
      return { data: LOGOUT_SUCCESSFUL };
    },
  }),
  route({
    ...sessionRow,
    method: 'GET',
    path: V2_LOGIN,
    summary: 'Signs in by HTTP Basic, or by query, and answers a session key.',
    reads: ['Authorization'],
    input: { headers: z.object({ authorization: z.string().optional() }), query: z.record(z.string(), z.unknown()) },
    documented: { query: credentials.partial() },
    success: { status: 200, body: sessionBody },
    twin: loginTwin,
    handle: (ctx, { headers, query }) => newSession(ctx, basicCredentials(headers.authorization) ?? (legacyQueryLogin ? query : {})),
  }),
  route({
    ...sessionRow,
    method: 'POST',
    path: V2_LOGIN,
    summary: "Ends the caller's session; with a username in the body, signs in.",
    access: (json) => (json !== undefined && ('username' in json || 'session_key' in json) ? 'login' : 'signed-in'),
    bodyOptional: true,
    input: { json: z.looseObject({ session_key: z.string().optional() }) },
    documented: { json: z.union([sessionBody.partial(), credentials]) },
    success: { status: 200, body: z.union([sessionBody, z.object({ detail: loggedOut, data: loggedOut })]) },
    twin: { operation: LOGOUT, variables: { sessionKey: null } },
    handle: async (ctx, { json }) => {
      if ('username' in json) return newSession(ctx, json);
      const key = json.session_key;
      await auth.logout(key === undefined ? ctx : changed(ctx, { caller: await callerBySessionKey(ctx, key) }));
      return { detail: LOGOUT_SUCCESSFUL, data: LOGOUT_SUCCESSFUL };
    },
  }),
];

async function signedIn(ctx: Context, form: unknown, scope = '') {
  const asked = scope.split(' ').filter((name) => name !== '');
  const scopes = asked.filter((name) => name !== OFFLINE_ACCESS);
  const { user, session } = await auth.login(ctx, check(credentials, form), scopes.length > 0 ? scopes : undefined);
  return tokens(auth.issueTokens(ctx, user, session), asked.includes(OFFLINE_ACCESS));
}

async function refreshed(ctx: Context, form: unknown) {
  const { user, session } = await auth.refresh(ctx, check(refreshForm, form).refresh_token);
  return tokens(auth.issueTokens(ctx, user, session), true);
}

// RFC 6749, 5.1; two members and no more for the clients of the interface, who know no others.
function tokens({ accessToken, expiresIn, refreshToken, scopes }: auth.Tokens, offline: boolean): z.input<typeof tokenBody> {
  const token = { access_token: accessToken, token_type: 'bearer' };
  return offline ? { ...token, expires_in: expiresIn, refresh_token: refreshToken, scope: scopes.join(' ') } : token;
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
  // What is no UTF-8 would be read as another password than was sent.
  if (!isUtf8(bytes)) return undefined;
  const [username = '', ...password] = bytes.toString().split(':');
  return { username, password: password.join(':') };
}
