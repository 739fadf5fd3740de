import { InvalidArgumentError } from 'commander';
import { z } from 'zod';

const MAX_LINES = 100_000;

/** Returns the start of a day in UTC. Throws InvalidArgumentError. */
export function readDate(text: string): Date {
  if (!z.iso.date().safeParse(text).success)
    throw new InvalidArgumentError('Must be a date such as 2027-01-31.');
  return new Date(text);
}

/** Returns a maximum number of lines, up to 100,000. Throws InvalidArgumentError. */
export function readLimit(text: string): number {
  const limit = /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LINES)
    throw new InvalidArgumentError(`Must be a whole number from 1 to ${MAX_LINES}.`);
  return limit;
}
