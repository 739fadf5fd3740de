import { createHmac } from 'node:crypto';
import { afterEach, expect } from './jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from './databases.ts';
import type { Answer, Shop } from './shop.ts';

export type Values = Record<string, unknown>;

export const ME = '{ me { username } }';
/** The challenge and message of every rejected token (decisions, tokens). */
const CHALLENGE = 'Bearer';
const REFUSAL = 'Could not validate credentials';
/** Not allowed in the log and in responses: stack traces, SQL, hashes. */
const INTERNALS =
  /"stack"|node_modules|\b(select|insert into|update|delete from)\b.*\b(from|values|set|where)\b|\$2[aby]\$/i;
/** Minimum length of parts of tokens that are searched for; shorter ones may occur by chance. */
const MIN_SECRET_LENGTH = 16;

/** A token with any header and claims, signed with any secret. */
export function forge(
  claims: unknown,
  header: Values = {},
  secret: string | Buffer = TEST_SECRET,
): string {
  return forgeText(
    JSON.stringify({ alg: 'HS256', typ: 'JWT', ...header }),
    JSON.stringify(claims),
    secret,
  );
}

/** Like `forge`, with texts that need not be JSON. */
export function forgeText(
  header: string,
  payload: string | Buffer,
  secret: string | Buffer = TEST_SECRET,
  hash = 'sha256',
): string {
  return signed(base64url(header), base64url(payload), secret, hash);
}

/** Like `forge`, with segments that need not be base64url. */
export function signed(
  header: string,
  payload: string,
  secret: string | Buffer = TEST_SECRET,
  hash = 'sha256',
): string {
  return `${header}.${payload}.${createHmac(hash, secret).update(`${header}.${payload}`).digest('base64url')}`;
}

/** The claims of a valid token of the user, with replacements; undefined ones are left out. */
export function claimsOf(
  at: Shop,
  { username }: Pick<User, 'username'>,
  others: Values = {},
): Values {
  return { sub: username, iat: seconds(at), exp: seconds(at) + 60, ...others };
}

/** The time of the shop's clock in whole seconds. */
export function seconds(at: Shop): number {
  return Math.floor(at.now().getTime() / 1000);
}

export function base64url(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

/**
 * Sends credentials to both APIs. Returns the responses, the number of logged rejections, and leaks
 * in the log.
 */
export async function tryCredentials(
  at: Shop,
  credentials: string | Record<string, string>,
): Promise<Values> {
  at.logged.length = 0;
  const headers =
    typeof credentials === 'string' ? { Authorization: `Bearer ${credentials}` } : credentials;
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

/** 401 with the same message for every reason; only the log has the reason. */
export const REJECTED = {
  rest: [401, CHALLENGE, 'json', { detail: REFUSAL }],
  graphql: [
    401,
    CHALLENGE,
    'json',
    { errors: [{ message: REFUSAL, extensions: { code: 'UNAUTHENTICATED' } }] },
  ],
  refusals: 2,
  leaks: [],
};

/** Without credentials, which GraphQL allows. */
export const ANONYMOUS = {
  rest: [401, 'Bearer', 'json', { detail: 'Not authenticated' }],
  graphql: [200, null, 'json', { data: { me: null } }],
  refusals: 0,
  leaks: [],
};

/** Valid credentials of a disabled user: 400 has no challenge. */
export const INACTIVE = {
  rest: [400, null, 'json', { detail: 'Inactive user' }],
  graphql: [
    400,
    null,
    'json',
    { errors: [{ message: 'Inactive user', extensions: { code: 'INACTIVE_USER' } }] },
  ],
  refusals: expect.any(Number),
  leaks: [],
};

/** Both APIs return the user. */
export function servedAs({ username, email, fullName }: User): Values {
  return {
    rest: [200, null, 'json', { username, email, full_name: fullName, disabled: false }],
    graphql: [200, null, 'json', { data: { me: { username } } }],
    refusals: 0,
    leaks: [],
  };
}

/** Returns log lines that contain any of these texts, a stack trace, SQL or a hash. */
export function leaksIn(at: Shop, secrets: readonly string[]): string[] {
  const searched = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  return at.logged.filter(
    (line) => INTERNALS.test(line) || searched.some((secret) => line.includes(secret)),
  );
}

/** Checks after each test of the file that a valid token is accepted (attack J1). */
export function useControl(at: Shop): void {
  afterEach(async () => {
    const user = await at.makeUser();
    expect(await tryCredentials(at, at.tokenOf(user))).toEqual(servedAs(user));
  });
}

/** Returns the log events of this kind. */
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
