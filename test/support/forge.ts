import { createHmac } from 'node:crypto';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from './databases.ts';
import type { Shop } from './shop.ts';

export type Values = Record<string, unknown>;

export const ME = '{ me { username } }';
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

/** Returns log lines that contain any of these texts, a stack trace, SQL or a hash. */
export function leaksIn(at: Shop, secrets: readonly string[]): string[] {
  const searched = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  return at.logged.filter(
    (line) => INTERNALS.test(line) || searched.some((secret) => line.includes(secret)),
  );
}
