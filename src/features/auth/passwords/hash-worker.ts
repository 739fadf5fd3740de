import bcrypt from 'bcrypt';

// Runs in worker threads (hashing.ts), so that hashing does not block the event loop.

/** A password to check. */
export interface Check {
  password: string;
  /** bcrypt hash, or undefined if no password is correct. */
  hash: string | undefined;
  /** Minimum bcrypt cost of checking a wrong password. */
  cost: number;
}

// A dummy hash. A comparison with it costs as much as one with a user's hash.
const DUMMY_SALT = 'CCCCCCCCCCCCCCCCCCCCC.';
const DUMMY_DIGEST = 'CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC';

/**
 * Returns whether the password matches the hash. A wrong password takes as long without a hash, or
 * with a hash of a lower cost, as with a hash of the full cost. All steps run in one task, without
 * queueing in between.
 */
export function check({ password, hash, cost }: Check): boolean {
  if (hash === undefined) {
    compareDummy(cost);
    return false;
  }
  if (bcrypt.compareSync(password, hash)) return true;
  // Each cost step doubles the work, so the steps from the hash's cost to `cost` add up to the
  // rest.
  for (let step = bcrypt.getRounds(hash); step < cost; step++) compareDummy(step);
  return false;
}

/** Returns the bcrypt hash of the password. */
export function make({ password, cost }: { password: string; cost: number }): string {
  return bcrypt.hashSync(password, cost);
}

function compareDummy(cost: number): void {
  bcrypt.compareSync('', `$2b$${String(cost).padStart(2, '0')}$${DUMMY_SALT}${DUMMY_DIGEST}`);
}
