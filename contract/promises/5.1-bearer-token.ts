import type { Answer } from '../answer.ts';
import { isSignedWith, partsOf, type Deployment } from '../deployment.ts';
import { challenges, expectOf, hasHeader, hasStatus, isError, says } from '../expectations.ts';
import { NotTried, section } from '../promised.ts';
import { askAsUser, BLOG, ITEMS, ME, PROTECTED, rightForm, SPEAKS } from './common.ts';

const MINUTE = 60;
/** How far a clock may be off where the interface leaves the issue time to be guessed. */
const TOLERANCE = MINUTE;
const ROWS = [ME, ITEMS, BLOG];

/** Tokens that cannot be decoded or verified, made of a good one or of nothing. */
const UNVERIFIABLE: { name: string; words: string; make: (good: string) => string }[] = [
  { name: 'other-claims', words: 'whose claims were changed', make: (good) => withClaims(good, { sub: 'somebody-else' }) },
  { name: 'longer-life', words: 'whose lifetime was changed', make: (good) => withClaims(good, { exp: 9_999_999_999 }) },
  { name: 'other-signature', words: 'with another signature', make: (good) => good.replace(/[^.]+$/, 'A'.repeat(43)) },
  { name: 'no-signature', words: 'without a signature', make: (good) => good.replace(/[^.]+$/, '') },
  {
    name: 'alg-none',
    words: 'that asks not to be verified',
    make: (good) => withHeader(good, { alg: 'none', typ: 'JWT' }).replace(/[^.]+$/, ''),
  },
];

/** What a bearer token is, and when it is refused. */
export const bearerToken = section('5.1', 'Bearer token', [
  {
    id: 'right',
    row: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'Credentials are answered with access_token, and token_type bearer.',
    check: async (at) => {
      const answer = await rightForm(at, '/token');
      expectOf(
        answer,
        'access_token, and token_type bearer',
        answer.member('token_type') === 'bearer' && typeof answer.member('access_token') === 'string',
      );
    },
  },
  ...ROWS.map((path) => ({
    id: `opens-${nameOf(path)}`,
    row: `GET ${path}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: 'The header Authorization: Bearer with an access token opens the row.',
    check: async (at: Deployment) => hasStatus(await askAsUser(at, path), 200),
  })),
  {
    id: 'scheme-case',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user'],
    says: 'Bearer may be written in any case.',
    check: async (at) => {
      const token = await at.token();
      for (const scheme of ['bearer', 'BEARER'])
        hasStatus(await at.ask('GET', ME, { headers: { Authorization: `${scheme} ${token}` } }), 200);
    },
  },
  {
    id: 'hs256',
    row: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The token is a JWT signed with HS256.',
    check: async (at) => {
      const [answer, { alg }] = await issued(at);
      expectOf(answer, 'a token of the algorithm HS256', alg === 'HS256', `one of ${JSON.stringify(alg)}`);
    },
  },
  {
    id: 'secret',
    row: 'POST /token',
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'Who shares the secret can verify the token.',
    check: async (at) => {
      const [answer] = await issued(at);
      const isSigned = isSignedWith(String(answer.member('access_token')), at.given.signingSecret ?? '');
      expectOf(answer, 'a token that is signed with the given secret', isSigned, 'one that is not');
    },
  },
  {
    id: 'sub',
    row: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The claim sub holds the username.',
    check: async (at) => {
      const [answer, , { sub }] = await issued(at);
      expectOf(answer, `the claim sub ${at.user.username}`, sub === at.user.username, JSON.stringify(sub));
    },
  },
  {
    id: 'exp',
    row: 'POST /token',
    level: 'interface',
    needs: ['user'],
    says: 'The claim exp is the issue time plus 30 minutes.',
    check: async (at) => {
      const [answer, , { iat, exp }] = await issued(at);
      const dated = Date.parse(answer.headers.get('Date') ?? '') / 1000 || Date.now() / 1000;
      const lifetime = Number(exp) - (typeof iat === 'number' ? iat : dated);
      const isRight = Math.abs(lifetime - 30 * MINUTE) <= (typeof iat === 'number' ? 1 : TOLERANCE);
      expectOf(answer, 'a lifetime of 1800 seconds', isRight, `one of ${Math.round(lifetime)}`);
    },
  },
  {
    id: 'default-lifetime',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user', 'secret'],
    says: 'A token without exp lives 15 minutes from its issue.',
    check: async (at) => {
      const live = await at.forge({ exp: undefined, iat: secondsFromNow(-14 * MINUTE) });
      hasStatus(await at.ask('GET', ME, { token: live }), 200);
      isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge({ exp: undefined, iat: secondsFromNow(-21 * MINUTE) }) }));
    },
  },
  ...ROWS.map((path) => ({
    id: `undecodable-${nameOf(path)}`,
    row: `GET ${path}`,
    level: 'interface' as const,
    needs: [],
    says: 'What cannot be decoded is refused with 401, detail that the credentials could not be validated, and WWW-Authenticate: Bearer.',
    check: async (at: Deployment) => isRefusedAsToken(await at.ask('GET', path, { token: 'no.token.atall' })),
  })),
  ...UNVERIFIABLE.map(({ name, words, make }) => ({
    id: name,
    row: `GET ${ME}`,
    level: 'interface' as const,
    needs: ['user'] as const,
    says: `A token ${words} is refused in the same way.`,
    check: async (at: Deployment) => isRefusedAsToken(await at.ask('GET', ME, { token: make(await at.token()) })),
  })),
  {
    id: 'no-sub',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'A token without sub is refused in the same way.',
    check: async (at) => isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge({ sub: undefined }) })),
  },
  {
    id: 'unknown-sub',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'secret'],
    says: 'A token of a user whom nobody knows is refused in the same way.',
    check: async (at) => isRefusedAsToken(await at.ask('GET', ME, { token: await at.forge({ sub: at.nobody, sid: undefined }) })),
  },
  {
    id: 'refusal-text',
    row: `GET ${ME}`,
    level: 'decision',
    needs: [],
    says: 'At every protected row the text is "Could not validate credentials", and the header WWW-Authenticate is exactly "Bearer".',
    check: async (at) => {
      for (const path of PROTECTED) {
        const answer = await at.ask('GET', path, { token: 'no.token.atall' });
        isError(answer, 401, { detail: 'Could not validate credentials' });
        hasHeader(answer, 'WWW-Authenticate', 'Bearer');
      }
    },
  },
  {
    id: 'disabled',
    row: `GET ${ME}`,
    level: 'interface',
    needs: ['user', 'disabled user', 'secret'],
    says: 'A disabled user is answered 400 with detail that the user is inactive.',
    check: async (at) => {
      const answer = await asDisabled(at);
      hasStatus(answer, 400);
      says(answer, 'detail', SPEAKS.ofInactivity, 'that the user is inactive');
    },
  },
  {
    id: 'disabled-text',
    row: `GET ${ME}`,
    level: 'decision',
    needs: ['user', 'disabled user', 'secret'],
    says: 'The text is "Inactive user".',
    check: async (at) => isError(await asDisabled(at), 400, { detail: 'Inactive user' }),
  },
  ...ROWS.map((path) => ({
    id: `anonymous-${nameOf(path)}`,
    row: `GET ${path}`,
    level: 'interface' as const,
    needs: [],
    says: 'Without a token, detail says that the caller is not authenticated.',
    check: async (at: Deployment) =>
      says(await at.ask('GET', path), 'detail', SPEAKS.ofMissingLogin, 'that the caller is not authenticated'),
  })),
  ...ROWS.map((path) => ({
    id: `anonymous-401-${nameOf(path)}`,
    row: `GET ${path}`,
    level: 'decision' as const,
    needs: [],
    says: 'Without a token the answer is 401 "Not authenticated" with WWW-Authenticate: Bearer.',
    check: async (at: Deployment) => {
      const answer = await at.ask('GET', path);
      isError(answer, 401, { detail: 'Not authenticated' });
      hasHeader(answer, 'WWW-Authenticate', 'Bearer');
    },
  })),
]);

/** The refusal of a token that is not good. */
export function isRefusedAsToken(answer: Answer): void {
  hasStatus(answer, 401);
  says(answer, 'detail', SPEAKS.ofBadToken, 'that the credentials could not be validated');
  challenges(answer);
}

/** The numeric date that lies so many seconds ahead. */
export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds;
}

/** What the token endpoint issued, with header and claims. */
export async function issued(at: Deployment): Promise<[answer: Answer, header: Record<string, unknown>, claims: Record<string, unknown>]> {
  const answer = await rightForm(at, '/token');
  const token = answer.member('access_token');
  if (typeof token !== 'string') throw new NotTried('POST /token gave no token');
  return [answer, ...partsOf(token)];
}

async function asDisabled(at: Deployment): Promise<Answer> {
  return at.ask('GET', ME, { token: await at.forge({ sub: at.disabledUser.username, sid: undefined }) });
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
