import type { HttpResponse } from '../response.ts';
import { isSignedWith, partsOf, type Deployment } from '../deployment.ts';
import {
  hasBearerChallenge,
  expectOf,
  hasHeader,
  hasStatus,
  isError,
  hasMessage,
} from '../expectations.ts';
import { Skipped, section } from '../promised.ts';
import { getAsUser, BLOG, ITEMS, ME, PROTECTED, rightForm, MESSAGES } from './common.ts';

const MINUTE = 60;
/** Maximum clock difference between kit and deployment, in seconds. */
const TOLERANCE = MINUTE;
const ENDPOINTS = [ME, ITEMS, BLOG];

/** Tokens that cannot be verified, made from a valid one. */
const UNVERIFIABLE: { name: string; words: string; make: (valid: string) => string }[] = [
  {
    name: 'other-claims',
    words: 'with changed claims',
    make: (valid) => withClaims(valid, { sub: 'somebody-else' }),
  },
  {
    name: 'longer-life',
    words: 'with a changed lifetime',
    make: (valid) => withClaims(valid, { exp: 9_999_999_999 }),
  },
  {
    name: 'other-signature',
    words: 'with another signature',
    make: (valid) => valid.replace(/[^.]+$/, 'A'.repeat(43)),
  },
  {
    name: 'no-signature',
    words: 'without a signature',
    make: (valid) => valid.replace(/[^.]+$/, ''),
  },
  {
    name: 'alg-none',
    words: 'with alg none',
    make: (valid) => withHeader(valid, { alg: 'none', typ: 'JWT' }).replace(/[^.]+$/, ''),
  },
];

/** Format and rejection of bearer tokens. */
export const bearerToken = section('5.1', 'Bearer token', [
  {
    id: 'right',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'Valid credentials return access_token, and token_type bearer.',
    check: async (at) => {
      const response = await rightForm(at, '/token');
      expectOf(
        response,
        'access_token, and token_type bearer',
        response.member('token_type') === 'bearer' &&
          typeof response.member('access_token') === 'string',
      );
    },
  },
  ...ENDPOINTS.map((path) => ({
    id: `opens-${nameOf(path)}`,
    endpoint: `GET ${path}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: 'An access token in Authorization: Bearer authenticates the caller.',
    check: async (at: Deployment) => hasStatus(await getAsUser(at, path), 200),
  })),
  {
    id: 'scheme-case',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'The scheme Bearer is case-insensitive.',
    check: async (at) => {
      const token = await at.token();
      for (const scheme of ['bearer', 'BEARER'])
        hasStatus(
          await at.send('GET', ME, { headers: { Authorization: `${scheme} ${token}` } }),
          200,
        );
    },
  },
  {
    id: 'hs256',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The token is a JWT signed with HS256.',
    check: async (at) => {
      const [response, { alg }] = await issued(at);
      expectOf(
        response,
        'a token with the algorithm HS256',
        alg === 'HS256',
        `one with ${JSON.stringify(alg)}`,
      );
    },
  },
  {
    id: 'secret',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'The token can be verified with the signing secret.',
    check: async (at) => {
      const [response] = await issued(at);
      const isSigned = isSignedWith(
        String(response.member('access_token')),
        at.options.signingSecret ?? '',
      );
      expectOf(response, 'a token signed with the given secret', isSigned, 'one that is not');
    },
  },
  {
    id: 'sub',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The claim sub is the username.',
    check: async (at) => {
      const [response, , { sub }] = await issued(at);
      expectOf(
        response,
        `the claim sub ${at.user.username}`,
        sub === at.user.username,
        JSON.stringify(sub),
      );
    },
  },
  {
    id: 'exp',
    endpoint: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The claim exp is the issue time plus 30 minutes.',
    check: async (at) => {
      const [response, , { iat, exp }] = await issued(at);
      const dated = Date.parse(response.headers.get('Date') ?? '') / 1000 || Date.now() / 1000;
      const lifetime = Number(exp) - (typeof iat === 'number' ? iat : dated);
      const isRight = Math.abs(lifetime - 30 * MINUTE) <= (typeof iat === 'number' ? 1 : TOLERANCE);
      expectOf(response, 'a lifetime of 1800 seconds', isRight, `one of ${Math.round(lifetime)}`);
    },
  },
  {
    id: 'default-lifetime',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user', 'secret'],
    says: 'A token without exp expires 15 minutes after its issue.',
    check: async (at) => {
      const valid = await at.forge({ exp: undefined, iat: secondsFromNow(-14 * MINUTE) });
      hasStatus(await at.send('GET', ME, { token: valid }), 200);
      isRejectedAsToken(
        await at.send('GET', ME, {
          token: await at.forge({ exp: undefined, iat: secondsFromNow(-21 * MINUTE) }),
        }),
      );
    },
  },
  ...ENDPOINTS.map((path) => ({
    id: `undecodable-${nameOf(path)}`,
    endpoint: `GET ${path}`,
    level: 'interface' as const,
    needs: [],
    says: 'A token that cannot be decoded returns 401 with detail and WWW-Authenticate: Bearer.',
    check: async (at: Deployment) =>
      isRejectedAsToken(await at.send('GET', path, { token: 'no.token.atall' })),
  })),
  ...UNVERIFIABLE.map(({ name, words, make }) => ({
    id: name,
    endpoint: `GET ${ME}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: `A token ${words} is rejected in the same way.`,
    check: async (at: Deployment) =>
      isRejectedAsToken(await at.send('GET', ME, { token: make(await at.token()) })),
  })),
  {
    id: 'no-sub',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'A token without sub is rejected in the same way.',
    check: async (at) =>
      isRejectedAsToken(await at.send('GET', ME, { token: await at.forge({ sub: undefined }) })),
  },
  {
    id: 'unknown-sub',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'A token of an unknown user is rejected in the same way.',
    check: async (at) =>
      isRejectedAsToken(
        await at.send('GET', ME, {
          token: await at.forge({ sub: at.unknownUsername, sid: undefined }),
        }),
      ),
  },
  {
    id: 'refusal-text',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: [],
    says: 'Every protected endpoint returns "Could not validate credentials", and exactly WWW-Authenticate: Bearer.',
    check: async (at) => {
      for (const path of PROTECTED) {
        const response = await at.send('GET', path, { token: 'no.token.atall' });
        isError(response, 401, { detail: 'Could not validate credentials' });
        hasHeader(response, 'WWW-Authenticate', 'Bearer');
      }
    },
  },
  {
    id: 'disabled',
    endpoint: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'disabled user', 'secret'],
    says: 'A disabled user returns 400, and detail says that the user is inactive.',
    check: async (at) => {
      const response = await asDisabled(at);
      hasStatus(response, 400);
      hasMessage(response, 'detail', MESSAGES.inactivity, 'that the user is inactive');
    },
  },
  {
    id: 'disabled-text',
    endpoint: `GET ${ME}`,
    level: 'decision',
    needs: ['user', 'disabled user', 'secret'],
    says: 'The message is "Inactive user".',
    check: async (at) => isError(await asDisabled(at), 400, { detail: 'Inactive user' }),
  },
  ...ENDPOINTS.map((path) => ({
    id: `anonymous-${nameOf(path)}`,
    endpoint: `GET ${path}`,
    level: 'interface' as const,
    needs: [],
    says: 'Without a token, the message in detail says that the caller is not authenticated.',
    check: async (at: Deployment) =>
      hasMessage(
        await at.send('GET', path),
        'detail',
        MESSAGES.missingLogin,
        'that the caller is not authenticated',
      ),
  })),
  ...ENDPOINTS.map((path) => ({
    id: `anonymous-401-${nameOf(path)}`,
    endpoint: `GET ${path}`,
    level: 'decision' as const,
    needs: [],
    says: 'Without a token, the response is 401 "Not authenticated" with WWW-Authenticate: Bearer.',
    check: async (at: Deployment) => {
      const response = await at.send('GET', path);
      isError(response, 401, { detail: 'Not authenticated' });
      hasHeader(response, 'WWW-Authenticate', 'Bearer');
    },
  })),
]);

/** The response rejects an invalid token. */
export function isRejectedAsToken(response: HttpResponse): void {
  hasStatus(response, 401);
  hasMessage(response, 'detail', MESSAGES.badToken, 'that the credentials could not be validated');
  hasBearerChallenge(response);
}

/** The NumericDate this number of seconds from now. */
export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds;
}

/** The token response, with header and claims of the token. */
export async function issued(
  at: Deployment,
): Promise<
  [response: HttpResponse, header: Record<string, unknown>, claims: Record<string, unknown>]
> {
  const response = await rightForm(at, '/token');
  const token = response.member('access_token');
  if (typeof token !== 'string') throw new Skipped('POST /token returned no token');
  return [response, ...partsOf(token)];
}

async function asDisabled(at: Deployment): Promise<HttpResponse> {
  return at.send('GET', ME, {
    token: await at.forge({ sub: at.disabledUser.username, sid: undefined }),
  });
}

function withClaims(token: string, changes: Record<string, unknown>): string {
  const [header = '', , signature = ''] = token.split('.');
  const [, claims] = partsOf(token);
  return [header, encoded({ ...claims, ...changes }), signature].join('.');
}

function withHeader(token: string, header: Record<string, unknown>): string {
  return token.replace(/^[^.]+/, encoded(header));
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function nameOf(path: string): string {
  return path.split('/').filter(Boolean).join('-');
}
