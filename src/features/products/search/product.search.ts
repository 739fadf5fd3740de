import array from 'postgres-array';
import type { Context } from '../../../request/context.ts';
import { rankIn } from '../../../pagination/cursor.ts';
import type { PageArgs } from '../../../pagination/keyset.ts';
import { readPk } from '../../../core/pk.ts';
import { readRows } from '../../../database/row-mapper.ts';
import { join, sql, type Sql } from '../../../database/sql.ts';
import type { RankedPart, RankedList } from '../../../pagination/ranked-list.ts';
import type { Product } from '../product.entity.ts';
import { OrderDirection, ProductOrderField, type ProductOrder } from '../product.inputs.ts';
import { listDefinitionOf } from '../product-lists.ts';
import type { CheckedFilter } from '../product.rules.ts';
import { isCorrectable, oneEditAway } from './spelling.ts';
import { matchesAll, partsOf, significantTerms, withoutSeparators } from './search-terms.ts';

// Ranks of results. Cursors contain them, so they must not change.
const CODE = 1;
const BEGINNING = 2;
const WORDS = 3;
/** Plus a bit per mistyped word: the next page corrects the same words despite new products. */
const MISTYPED = 4;

const MAX_MISTYPED = 4;
/** Maximum number of corrections of a word. */
const MAX_CORRECTIONS = 20;
/** Highest code point: sorts after all continuations of a prefix. */
const HIGHEST = '\u{10ffff}';

const BY_NAME: ProductOrder = { field: ProductOrderField.NAME, direction: OrderDirection.ASC };

/** A parsed search, as conditions on products. */
export interface Search {
  /** The product with this barcode or pk. */
  code?: Sql;
  /** Names that begin with the text. */
  beginning: Sql;
  /** Names that have all words, or their corrections. */
  words: Sql;
  /** The rank of `words`. */
  rank: number;
}

/** Parses a search; returns undefined if it has no words. */
export async function readSearch(
  ctx: Context,
  input: string,
  { after, before }: PageArgs,
): Promise<Search | undefined> {
  const text = input.trim().replace(/\s+/g, ' ');
  const { terms: given, known } = await termsOf(ctx, text);
  const terms = significantTerms(given);
  if (terms.length === 0) return undefined;
  const isKnown = (term: string) => {
    const [whole = '', ...parts] = partsOf(term);
    return known.has(whole) || (parts.length > 0 && parts.every((part) => known.has(part)));
  };
  const words = terms.flatMap((term) => partsOf(term).map((word) => ({ term, word })));
  const correctable = words.filter(({ word }) => isCorrectable(word)).slice(0, MAX_MISTYPED);
  const rank = Math.max(rankIn(after) ?? CODE, rankIn(before) ?? CODE);
  const unknown = correctable.reduce(
    (bits, { term, word }, index) =>
      known.has(word) || isKnown(term) ? bits : bits | (1 << index),
    0,
  );
  const mask =
    rank === CODE ? unknown : Math.max(rank - MISTYPED, 0) & ((1 << correctable.length) - 1);
  const mistyped = correctable
    .filter((_word, index) => ((mask >> index) & 1) === 1)
    .map(({ word }) => word);
  const code = codeCondition(given, terms);
  return {
    ...(code && { code }),
    // Apostrophes alone fold to nothing, which every name begins with.
    beginning:
      given.join('').replaceAll("'", '') === ''
        ? sql`false`
        : sql`name_key >= search_fold(${text}) and name_key < search_fold(${text}) || ${HIGHEST}::text`,
    words: matchesAll(terms, await correctionsOf(ctx, mistyped)),
    rank: mask === 0 ? WORDS : MISTYPED + mask,
  };
}

/** Returns the products that match the search and the filter: in order, or best matches first. */
export function searchResults(
  { code, beginning, words, rank }: Search,
  filter: CheckedFilter,
  orderBy?: ProductOrder | null,
): RankedList<Product> {
  const whole = listDefinitionOf(filter, orderBy, code ? sql`((${code}) or ${words})` : words);
  if (orderBy) return { parts: [{ rank, list: whole }], whole };
  const others = code ? [sql`(${code}) is not true`] : [];
  const parts: RankedPart<Product>[] = [];
  if (code)
    parts.push({
      rank: CODE,
      list: { ...listDefinitionOf(filter, null, code), isSelective: true },
    });
  if (rank === WORDS) {
    parts.push({
      rank: BEGINNING,
      list: { ...listDefinitionOf(filter, BY_NAME, allOf(others)), range: beginning },
    });
    others.push(sql`(${beginning}) is not true`);
  }
  parts.push({ rank, list: listDefinitionOf(filter, null, allOf([words, ...others])) });
  return { parts, whole: { ...whole, name: 'products found' } };
}

/** Folded terms of a search, in order. */
interface Terms {
  terms: string[];
  /** Terms, and parts of terms, that are prefixes of words of the catalogue. */
  known: Set<string>;
}

async function termsOf(ctx: Context, text: string): Promise<Terms> {
  if (text === '') return { terms: [], known: new Set() };
  const [row] = await readRows(
    ctx,
    sql`
      select search_terms(given)::text, array(select part from unnest(search_parts(given)) as part where exists (
        select from product_word where word >= part collate "C" and word < (part || ${HIGHEST}::text) collate "C"))::text
      from search_text(${text}) as given`,
    true,
  );
  const [terms = [], known = []] = (row ?? []).map((list) => array.parse(String(list)));
  return { terms, known: new Set(known) };
}

/** Returns the corrections of each word: known prefixes one edit away. */
async function correctionsOf(
  ctx: Context,
  words: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const candidates = new Map(words.map((word) => [word, oneEditAway(word)]));
  if (words.length === 0) return candidates;
  const rows = await readRows(
    ctx,
    sql`
      select meant from unnest(${[...candidates.values()].flat()}::text[]) as meant where exists (
        select from product_word where word >= meant collate "C" and word < (meant || ${HIGHEST}::text) collate "C")`,
  );
  const known = new Set(rows.map(([word]) => word));
  return new Map(
    [...candidates].map(([word, all]) => [
      word,
      significantTerms(all.filter((candidate) => known.has(candidate))).slice(0, MAX_CORRECTIONS),
    ]),
  );
}

function codeCondition(given: readonly string[], terms: readonly string[]): Sql | undefined {
  const barcode = barcodeOf(withoutSeparators(given.join('')));
  if (barcode !== undefined) return sql`barcode = ${barcode}`;
  const pk = given.length === 1 ? readPk(given[0] ?? '') : undefined;
  if (pk !== undefined) return sql`pk = ${pk}`;
  const code = terms.find((term) => barcodeOf(withoutSeparators(term)) !== undefined);
  if (code === undefined) return undefined;
  const others = terms.filter((other) => other !== code);
  return sql`barcode = ${barcodeOf(withoutSeparators(code))}${others.length > 0 ? sql` and ${matchesAll(others, new Map())}` : sql``}`;
}

// Pads a UPC-A with a zero and removes that of a GTIN-14.
function barcodeOf(digits: string): string | undefined {
  return /^\d{12,13}$/.test(digits) ? digits.padStart(13, '0') : /^0(\d{13})$/.exec(digits)?.[1];
}

function allOf(conditions: readonly Sql[]): Sql | undefined {
  return conditions.length > 0 ? join(conditions, ' and ') : undefined;
}
