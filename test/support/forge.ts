import { createHmac } from 'node:crypto';
import { afterEach, expect } from './jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from './databases.ts';
import type { Answer, Shop } from './shop.ts';

export type Values = Record<string, unknown>;

export const ME = '{ me { username } }';
/** What every refusal of a token says (decisions, tokens): RFC 6750 has a word for it, so there is more than `Bearer`. */
const CHALLENGE = 'Bearer';
const REFUSAL = 'Could not validate credentials';
/** What the log and answers may never show: an error's stack, SQL, a hash. */
const INTERNALS = /"stack"|node_modules|\b(select|insert into|update|delete from)\b.*\b(from|values|set|where)\b|\$2[aby]\$/i;
/** Parts of tokens that are shorter may stand in the log by chance. */
const TELLING_LENGTH = 16;

/** A token that anyone might write: of any header and claims, signed with any secret. */
export function forge(claims: unknown, header: Values = {}, secret: string | Buffer = TEST_SECRET): string {
  return forgeText(JSON.stringify({ alg: 'HS256', typ: 'JWT', ...header }), JSON.stringify(claims), secret);
}

/** As `forge`, of texts that need not be JSON. */
export function forgeText(header: string, payload: string | Buffer, secret: string | Buffer = TEST_SECRET, hash = 'sha256'): string {
  return signed(base64url(header), base64url(payload), secret, hash);
}

/** As `forge`, of segments that need not be base64url. */
export function signed(header: string, payload: string, secret: string | Buffer = TEST_SECRET, hash = 'sha256'): string {
  return `${header}.${payload}.${createHmac(hash, secret).update(`${header}.${payload}`).digest('base64url')}`;
}

/** The claims of a good token of the user, with others in their place; an undefined one is left out. */
export function claimsOf(at: Shop, { username }: Pick<User, 'username'>, others: Values = {}): Values {
  return { sub: username, iat: seconds(at), exp: seconds(at) + 60, ...others };
}

/** The whole second that the shop's clock shows. */
export function seconds(at: Shop): number {
  return Math.floor(at.now().getTime() / 1000);
}

export function base64url(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

/** What both doors say to the bearer of a token, or to these headers; which refusals are in the log; and what of the inside is, and should not be. */
export async function ask(at: Shop, credentials: string | Record<string, string>): Promise<Values> {
  at.logged.length = 0;
  const headers = typeof credentials === 'string' ? { Authorization: `Bearer ${credentials}` } : credentials;
  const rest = await at.rest('GET', '/users/me/', { headers });
  const graphql = await at.graphql(ME, {}, { headers });
  return {
    rest: seen(rest),
    graphql: seen(graphql),
    refusals: events(at, 'auth.token').filter(({ outcome }) => outcome === 'failure').length,
    leaks: leaksIn(
      at,
      Object.values(headers).flatMap((value) => value.split(/[ .]/)),
    ),
  };
}

/** 401 in the same words, whatever is wrong; only the log says what. */
export const REFUSED = {
  rest: [401, CHALLENGE, 'json', { detail: REFUSAL }],
  graphql: [401, CHALLENGE, 'json', { errors: [{ message: REFUSAL, extensions: { code: 'UNAUTHENTICATED' } }] }],
  refusals: 2,
  leaks: [],
};

/** No credentials came, which GraphQL allows. */
export const ANONYMOUS = {
  rest: [401, 'Bearer', 'json', { detail: 'Not authenticated' }],
  graphql: [200, null, 'json', { data: { me: null } }],
  refusals: 0,
  leaks: [],
};

/** The credentials are good and the user is disabled: a 400 asks for no others. */
export const INACTIVE = {
  rest: [400, null, 'json', { detail: 'Inactive user' }],
  graphql: [400, null, 'json', { errors: [{ message: 'Inactive user', extensions: { code: 'INACTIVE_USER' } }] }],
  refusals: expect.any(Number),
  leaks: [],
};

/** Both doors know the user. */
export function servedAs({ username, email, fullName }: User): Values {
  return {
    rest: [200, null, 'json', { username, email, full_name: fullName, disabled: false }],
    graphql: [200, null, 'json', { data: { me: { username } } }],
    refusals: 0,
    leaks: [],
  };
}

/** What was logged that holds any of these texts, a stack, SQL or a hash. */
export function leaksIn(at: Shop, secrets: readonly string[]): string[] {
  const telling = secrets.filter((secret) => secret.length >= TELLING_LENGTH);
  return at.logged.filter((line) => INTERNALS.test(line) || telling.some((secret) => line.includes(secret)));
}

/** After each test of the file a good token is served, whatever the test sent (row J1). */
export function useControl(at: Shop): void {
  afterEach(async () => {
    const user = await at.makeUser();
    expect(await ask(at, at.tokenOf(user))).toEqual(servedAs(user));
  });
}

/** What was logged of this kind. */
function events(at: Shop, kind: string): Values[] {
  return at.logged.map((line) => JSON.parse(line) as Values).filter(({ event }) => event === kind);
}

function seen({ status, headers, body }: Answer): unknown[] {
  return [
    status,
    headers.get('WWW-Authenticate'),
    /^application\/(?:[\w-]+\+)?(json)\b/.exec(headers.get('Content-Type') ?? '')?.[1],
    body,
  ];
}
