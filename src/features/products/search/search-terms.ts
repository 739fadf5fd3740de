import { sql, type Sql } from '../../../database/sql.ts';

/** How many words are looked up in their index, the longest ones; what that finds is held against the others. */
const MAX_LOOKED_UP = 4;
/** Signs that people put in or leave out as they like. */
const SLIGHT = /^[-'’/.,;:&+()"!?]$/;

/** Those of the words that say what is looked for: a word that begins another one is found by that. */
export function weighty(given: readonly string[]): string[] {
  const heavy = given.filter((word) => !SLIGHT.test(word));
  const words = heavy.length > 0 ? heavy : given;
  return words.filter((word) => !words.some((other) => other !== word && other.startsWith(word)));
}

/** The condition that a product's name has all these words: each the beginning of a word, or of one that it may have been meant for. */
export function haveAll(words: readonly string[], meant: ReadonlyMap<string, readonly string[]>): Sql {
  const terms = words
    .toSorted((a, b) => b.length - a.length)
    .map((word) => `(${[word, ...(meant.get(word) ?? [])].map(beginning).join(' | ')})`);
  const [first, rest] = [terms.slice(0, MAX_LOOKED_UP), terms.slice(MAX_LOOKED_UP)].map((some) => some.join(' & '));
  const lookedUp = sql`words @@ ${first}::tsquery`;
  // What the operator stands for, and no index does.
  return rest ? sql`${lookedUp} and ts_match_vq(words, ${rest}::tsquery)` : lookedUp;
}

// Of a sign that is a word of its own (migrations: search), the sign.
function beginning(word: string): string {
  return `'${word.replace(/['\\]/g, (sign) => sign + sign)}':*`;
}
