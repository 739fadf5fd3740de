import { InvalidArgumentError } from 'commander';
import { z } from 'zod';

/** Returns the start of a day in UTC. Throws InvalidArgumentError. */
export function readDate(text: string): Date {
  if (!z.iso.date().safeParse(text).success)
    throw new InvalidArgumentError('Must be a date such as 2027-01-31.');
  return new Date(text);
}

/** Returns a parser of whole numbers from 1 to `max`, which throws InvalidArgumentError. */
export function numberUpTo(max: number): (text: string) => number {
  return (text) => {
    const number = /^\d+$/.test(text) ? Number(text) : 0;
    if (number < 1 || number > max)
      throw new InvalidArgumentError(`Must be a whole number from 1 to ${max}.`);
    return number;
  };
}

/** Reads a maximum number of lines. */
export const readLimit = numberUpTo(100_000);

/** The option `--all`. */
export interface All {
  all?: boolean;
}

/** Returns a line of output. Other people's texts may have characters that a terminal interprets. */
export function lineOf(cells: readonly (Date | string | number | null | undefined)[]): string {
  const texts = cells.map((cell) => (cell instanceof Date ? cell.toISOString() : (cell ?? '-')));
  return texts.map((text) => String(text).replace(/\p{Cc}/gu, '?')).join('  ');
}
