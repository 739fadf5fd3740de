import { expressionBuilder, type Expression, type SqlBool } from 'kysely';
import type { Columns } from '../../../database/kysely.ts';
import type { Product } from '../product.entity.ts';

const eb = expressionBuilder<{ product: Columns<Product> }, 'product'>();

/** Maximum number of words to look up in the index, longest first; the rest filter the result. */
const MAX_LOOKED_UP = 4;
/** Minimum length of a rare word: shorter ones begin many words. */
const MIN_RARE = 3;
/** Punctuation that users often omit. Other ASCII signs, and those that are read, count. */
const INSIGNIFICANT = /^(?:[-'/.,;:&+()"!?]|(?![\0-\x7f§¶†‡‰‱※])\p{P})$/u;
/** Signs within a term (migrations: search_words). */
const SEPARATORS = /['-]/g;

/** Removes insignificant symbols, unless all are, and terms that are a prefix of another term. */
export function significantTerms(given: readonly string[]): string[] {
  const significant = given.filter((term) => !INSIGNIFICANT.test(term));
  const terms = [...new Set(significant.length > 0 ? significant : given)];
  return terms.filter((term) => !terms.some((other) => other !== term && other.startsWith(term)));
}

/** Returns the term without apostrophes and hyphens. */
export function withoutSeparators(term: string): string {
  return term.replace(SEPARATORS, '');
}

/** Returns the term, or, of one with apostrophes or hyphens, it without them and its parts. */
export function partsOf(term: string): string[] {
  const whole = withoutSeparators(term);
  return whole === '' || whole === term ? [term] : [whole, ...term.split(SEPARATORS)];
}

/** Condition that each term, or a correction of it, is a prefix of a word of the name. */
export function matchesAll(
  terms: readonly string[],
  corrections: ReadonlyMap<string, readonly string[]>,
  common: ReadonlySet<string> = new Set(),
): Expression<SqlBool> {
  const given = terms.toSorted((a, b) => b.length - a.length).map(partsOf);
  const prefix = (word: string) => {
    const words = [word, ...(corrections.get(word) ?? [])].map(prefixTerm);
    return words.length > 1 ? `(${words.join(' | ')})` : words.join('');
  };
  const conditionOf = ([whole = '', ...parts]: readonly string[]) =>
    parts.length > 0 ? `(${prefix(whole)} | ${parts.map(prefix).join(' & ')})` : prefix(whole);
  // The index reads all products of a common word, even if a rare one leaves few of them.
  const isRare = (word: string) =>
    word.length >= MIN_RARE && !common.has(word) && !corrections.has(word);
  const rare = given.filter((words) => words.every(isRare));
  const lookedUpFirst = rare.length > 0 ? rare : given;
  const indexed: string[] = [];
  const rest = given.filter((words) => !lookedUpFirst.includes(words)).map(conditionOf);
  let left = MAX_LOOKED_UP;
  for (const [whole = '', ...parts] of lookedUpFirst) {
    const longest = parts.toSorted((a, b) => b.length - a.length).slice(0, MAX_LOOKED_UP - 1);
    const lookedUp = [whole, ...longest];
    const fits = left >= lookedUp.length;
    if (fits) indexed.push(conditionOf(lookedUp));
    if (!fits || longest.length < parts.length) rest.push(conditionOf([whole, ...parts]));
    left = fits ? left - lookedUp.length : 0;
  }
  const lookup = eb('words', '@@', indexed.join(' & '));
  // The function behind the operator, which uses no index.
  return rest.length > 0
    ? lookup.and(eb.fn<SqlBool>('ts_match_vq', ['words', eb.val(rest.join(' & '))]))
    : lookup;
}

// Escapes quotes and backslashes, which are words of their own (migrations: search).
function prefixTerm(word: string): string {
  return `'${word.replace(/['\\]/g, (sign) => sign + sign)}':*`;
}
