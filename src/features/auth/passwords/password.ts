import { MAX_BCRYPT_COST } from '../../../core/config.ts';
import type { Context } from '../../../request/context.ts';
import { MAX_PASSWORD_BYTES } from '../../users/user.rules.ts';
import * as hashing from './hashing.ts';

/** Minimum cost that bcrypt supports. */
const MIN_COST = 4;

/** Returns the bcrypt hash of a password that has passed `newPassword`, at the configured cost. */
export function hashPassword(ctx: Context, password: string): Promise<string> {
  return hashing.make(ctx, password, ctx.config.bcryptCost);
}

/** Measures a hash of the configured cost. Returns its time in ms. */
export async function measureHash(ctx: Pick<Context, 'config'>): Promise<number> {
  // The first hash also starts the thread.
  await hashing.make(ctx, '', ctx.config.bcryptCost);
  const start = performance.now();
  await hashing.make(ctx, '', ctx.config.bcryptCost);
  return Math.round(performance.now() - start);
}

/**
 * Returns whether the password matches the hash, which is null for a user without a password, and
 * undefined without a user. A wrong password always takes the same time, so that the time does not
 * reveal whether the user exists.
 */
export async function verifyPassword(
  ctx: Context,
  password: string,
  hash: string | null | undefined,
): Promise<boolean> {
  const isHash = typeof hash === 'string' && costOf(hash) !== undefined;
  if (hash !== undefined && !isHash)
    ctx.log.warn({ event: 'auth.hash_invalid' }, 'User without a valid password hash');
  // Such passwords cannot have been set.
  const isPassword = password.isWellFormed() && Buffer.byteLength(password) <= MAX_PASSWORD_BYTES;
  // PHP and htpasswd write 2y for bcrypt's 2b.
  return hashing.check(
    ctx,
    password,
    isHash && isPassword ? hash.replace(/^\$2y/, '$2b') : undefined,
  );
}

/** Returns whether the cost of the hash is lower than the configured one. */
export function isOutdated(ctx: Context, hash: string): boolean {
  return (costOf(hash) ?? 0) < ctx.config.bcryptCost;
}

function costOf(hash: string): number | undefined {
  const cost = Number(/^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash)?.[1]);
  return cost >= MIN_COST && cost <= MAX_BCRYPT_COST ? cost : undefined;
}
