import { MAX_BCRYPT_COST } from '../../../core/config.ts';
import type { Context } from '../../../request/context.ts';
import { MAX_PASSWORD_BYTES } from '../../users/user.rules.ts';
import * as hashing from './hashing.ts';

/** The least that bcrypt can do. */
const MIN_COST = 4;

/** bcrypt's text form of the password, at the configured cost. The password must have passed `newPassword`. */
export function hashPassword(ctx: Context, password: string): Promise<string> {
  return hashing.make(ctx, password, ctx.config.bcryptCost);
}

/** How many ms a hash of the configured cost takes here, just now. */
export async function measureHash(ctx: Pick<Context, 'config'>): Promise<number> {
  // The first one starts the thread.
  await hashing.make(ctx, '', ctx.config.bcryptCost);
  const start = performance.now();
  await hashing.make(ctx, '', ctx.config.bcryptCost);
  return Math.round(performance.now() - start);
}

/**
 * Whether the password is the one of this hash: null where the user has none, undefined where there is no user. A wrong one takes
 * as long whatever the hash is, so that the time does not tell whether the user exists.
 */
export async function verifyPassword(ctx: Context, password: string, hash: string | null | undefined): Promise<boolean> {
  const isHash = typeof hash === 'string' && costOf(hash) !== undefined;
  if (hash !== undefined && !isHash) ctx.log.warn({ event: 'auth.hash_invalid' }, 'a user has no password hash, or one that is none');
  // A longer one could not have been set.
  const isPassword = password.isWellFormed() && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES;
  // PHP and htpasswd write 2y for what bcrypt calls 2b.
  return hashing.check(ctx, password, isHash && isPassword ? hash.replace(/^\$2y/, '$2b') : undefined);
}

/** Whether the hash was made with less work than is configured now. */
export function isOutdated(ctx: Context, hash: string): boolean {
  return (costOf(hash) ?? 0) < ctx.config.bcryptCost;
}

function costOf(hash: string): number | undefined {
  const cost = Number(/^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1]);
  return cost >= MIN_COST && cost <= MAX_BCRYPT_COST ? cost : undefined;
}
