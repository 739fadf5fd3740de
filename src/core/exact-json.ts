import { isSafeNumber } from 'lossless-json';

/** A JSON number that a double would change. Schemas reject it, so it is never rounded. */
export class InexactNumber {
  constructor(readonly source: string) {}
}

/** Parses JSON. Numbers that a double would change become InexactNumbers. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  // A double represents every number of up to 15 digits without an exponent exactly.
  return /\d(?:[\d.]{15}|[eE])/.test(text) ? JSON.parse(text, keepExact) : JSON.parse(text);
}

function keepExact(
  this: unknown,
  _key: string,
  value: unknown,
  context?: { source?: string },
): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return isSafeNumber(context.source) ? value : new InexactNumber(context.source);
}
