import bcrypt from 'bcrypt';

// Runs in threads of its own (hashing.ts), where waiting for a hash holds up nobody else.

/** Whether the password is the one of this hash. */
export function compare({ password, hash }: { password: string; hash: string }): boolean {
  return bcrypt.compareSync(password, hash);
}

/** bcrypt's text form of the password. */
export function make({ password, cost }: { password: string; cost: number }): string {
  return bcrypt.hashSync(password, cost);
}
