import type { Context } from '../kit/context.ts';
import * as hashing from './hashing.ts';

/** What bcrypt reads of a password; anything longer is not a password that could have been set. */
const MAX_BYTES = 72;

// Some hash of nothing: comparing with it costs what comparing with a user's costs.
const DUMMY_SALT = 'CCCCCCCCCCCCCCCCCCCCC.';
const DUMMY_DIGEST = 'CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC';

/** bcrypt's text form of the password, at the configured cost. The password must have passed `newPassword`. */
export function hashPassword(ctx: Context, password: string): Promise<string> {
  return hashing.make(ctx, password, ctx.config.bcryptCost);
}

/**
 * Whether the password is the one of this hash. A wrong one takes as long without a hash, with a hash that is none,
 * and with one of a lower cost, so that the time does not tell whether the user exists.
 */
export async function verifyPassword(ctx: Context, password: string, hash: string | null): Promise<boolean> {
  const cost = hash === null ? undefined : costOf(hash);
  if (hash !== null && cost === undefined) ctx.log.error({ event: 'auth.hash_invalid' }, 'a stored password hash is no bcrypt hash');
  if (hash === null || cost === undefined || Buffer.byteLength(password) > MAX_BYTES) {
    await spend(ctx, ctx.config.bcryptCost);
    return false;
  }
  // PHP and htpasswd write 2y for what bcrypt calls 2b.
  if (await hashing.compare(ctx, password, hash.replace(/^\$2y/, '$2b'))) return true;
  // Work doubles with each step of cost, so the steps from the hash's cost up to the configured one add up to the rest.
  for (let step = cost; step < ctx.config.bcryptCost; step++) await spend(ctx, step);
  return false;
}

/** Whether the hash was made with less work than is configured now. */
export function isOutdated(ctx: Context, hash: string): boolean {
  return (costOf(hash) ?? 0) < ctx.config.bcryptCost;
}

async function spend(ctx: Context, cost: number): Promise<void> {
  await hashing.compare(ctx, '', `$2b$${String(cost).padStart(2, '0')}$${DUMMY_SALT}${DUMMY_DIGEST}`);
}

function costOf(hash: string): number | undefined {
  const [, cost] = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(hash) ?? [];
  return cost === undefined ? undefined : Number(cost);
}
