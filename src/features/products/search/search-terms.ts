import { sql, type Sql } from '../../../database/sql.ts';

/** Maximum number of words to look up in the index, longest first; the rest filter the result. */
const MAX_LOOKED_UP = 4;
/** Symbols that users often omit. */
const INSIGNIFICANT = /^[-'’/.,;:&+()"!?]$/;

/** Removes insignificant symbols, unless all are, and words that are a prefix of another word. */
export function significantTerms(given: readonly string[]): string[] {
  const significant = given.filter((word) => !INSIGNIFICANT.test(word));
  const words = significant.length > 0 ? significant : given;
  return words.filter((word) => !words.some((other) => other !== word && other.startsWith(word)));
}

/** Condition that each word, or a correction of it, is a prefix of a word of the name. */
export function matchesAll(
  words: readonly string[],
  corrections: ReadonlyMap<string, readonly string[]>,
): Sql {
  const terms = words
    .toSorted((a, b) => b.length - a.length)
    .map((word) => `(${[word, ...(corrections.get(word) ?? [])].map(prefixTerm).join(' | ')})`);
  const [indexed, rest] = [terms.slice(0, MAX_LOOKED_UP), terms.slice(MAX_LOOKED_UP)].map((part) =>
    part.join(' & '),
  );
  const lookedUp = sql`words @@ ${indexed}::tsquery`;
  // The function behind the operator, which uses no index.
  return rest ? sql`${lookedUp} and ts_match_vq(words, ${rest}::tsquery)` : lookedUp;
}

// Escapes quotes and backslashes, which are words of their own (migrations: search).
function prefixTerm(word: string): string {
  return `'${word.replace(/['\\]/g, (sign) => sign + sign)}':*`;
}
