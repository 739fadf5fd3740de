import bcrypt from 'bcrypt';

// Runs in threads of its own (hashing.ts), where waiting for a hash holds up nobody else.

/** A password to be looked at. */
export interface Check {
  password: string;
  /** bcrypt's text form, or undefined where nothing is right. */
  hash: string | undefined;
  /** What a wrong one costs at least. */
  cost: number;
}

// Some hash of nothing: comparing with it costs what comparing with a user's costs.
const DUMMY_SALT = 'CCCCCCCCCCCCCCCCCCCCC.';
const DUMMY_DIGEST = 'CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC';

/**
 * Whether the password is the one of this hash. A wrong one takes as long without a hash, and with one of a lower cost, as with one of
 * the full cost: in one go, so that no queue stands between the steps.
 */
export function check({ password, hash, cost }: Check): boolean {
  if (hash === undefined) {
    spend(cost);
    return false;
  }
  if (bcrypt.compareSync(password, hash)) return true;
  // Work doubles with each step of cost, so the steps from the hash's cost up to the full one add up to the rest.
  for (let step = bcrypt.getRounds(hash); step < cost; step++) spend(step);
  return false;
}

/** bcrypt's text form of the password. */
export function make({ password, cost }: { password: string; cost: number }): string {
  return bcrypt.hashSync(password, cost);
}

function spend(cost: number): void {
  bcrypt.compareSync('', `$2b$${String(cost).padStart(2, '0')}$${DUMMY_SALT}${DUMMY_DIGEST}`);
}
