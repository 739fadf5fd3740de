import { expressionBuilder, sql, type Expression, type SqlBool } from 'kysely';
import type { Context } from '../../../request/context.ts';
import { rankIn } from '../../../pagination/cursor.ts';
import type { PageArgs, RankedList } from '../../../pagination/keyset.ts';
import { readPk } from '../../../core/pk.ts';
import { type Columns, readRows } from '../../../database/kysely.ts';
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
/** Share of the products from which a word is common. */
const COMMON = 0.01;
/** Highest code point: sorts after all continuations of a prefix. */
const HIGHEST = '\u{10ffff}';

const eb = expressionBuilder<{ product: Columns<Product> }, 'product'>();

const BY_NAME: ProductOrder = { field: ProductOrderField.NAME, direction: OrderDirection.ASC };

/** A parsed search, as conditions on products. */
type Search = NonNullable<Awaited<ReturnType<typeof readSearch>>>;

/** Parses a search; returns undefined if it has no words. */
export async function readSearch(ctx: Context, input: string, { after, before }: PageArgs) {
  const text = input.trim().replace(/\s+/g, ' ');
  const { terms: given, known, common } = await termsOf(ctx, text);
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
  const folded = eb.fn<string>('search_fold', [eb.val(text)]);
  return {
    // The product with this barcode or pk.
    code,
    // Names that begin with the text. Apostrophes alone fold to nothing, which every name begins with.
    beginning:
      given.join('').replaceAll("'", '') === ''
        ? eb.lit(false)
        : eb('name_key', '>=', folded).and('name_key', '<', eb(folded, '||', HIGHEST)),
    // Names that have all words, or their corrections.
    words: matchesAll(terms, await correctionsOf(ctx, mistyped), common),
    rank: mask === 0 ? WORDS : MISTYPED + mask,
  };
}

/** Returns the products that match the search and the filter: in order, or best matches first. */
export function searchResults(
  { code, beginning, words, rank }: Search,
  filter: CheckedFilter,
  orderBy?: ProductOrder | null,
): RankedList<Product> {
  const whole = listDefinitionOf(filter, orderBy, code ? eb.or([code, words]) : words);
  if (orderBy) return { parts: [{ ...whole, rank }], whole };
  const not = (condition: Expression<SqlBool>) => eb(eb.parens(condition), 'is not', true);
  const others = code ? [not(code)] : [];
  const parts: RankedList<Product>['parts'][number][] = [];
  if (code) parts.push({ ...listDefinitionOf(filter, null, code), rank: CODE });
  if (rank === WORDS) {
    const rest = others.length > 0 ? eb.and(others) : undefined;
    parts.push({ ...listDefinitionOf(filter, BY_NAME, rest), range: beginning, rank: BEGINNING });
    others.push(not(beginning));
  }
  parts.push({ ...listDefinitionOf(filter, null, eb.and([words, ...others])), rank });
  return { parts, whole: { ...whole, name: 'products found' } };
}

// Returns the folded terms of a search, in order; those terms, or parts of terms, that are prefixes
// of words of the catalogue; and those that are common by the statistics of the planner.
async function termsOf(ctx: Context, text: string) {
  if (text === '') return { terms: [], known: new Set<string>(), common: new Set<string>() };
  const select = sql<Record<'terms' | 'known' | 'common', string[]>>`
    with statistics as materialized (
      select word, share from pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) as most (word, share)
      where schemaname = current_schema and tablename = 'product' and attname = 'words')
    select search_terms(given) as terms,
      array(select part from unnest(search_parts(given)) as part where ${beginsWord(sql.ref('part'))}) as known,
      array(select part from unnest(search_parts(given)) as part where (select sum(share) from statistics where word ^@ part) > ${sql.lit(COMMON)}) as common
    from search_text(${text}) as given`;
  const [row] = await readRows(ctx, select, true);
  return { terms: row?.terms ?? [], known: new Set(row?.known), common: new Set(row?.common) };
}

// Whether a word of the catalogue begins with this text.
function beginsWord(text: Expression<unknown>): Expression<SqlBool> {
  return sql`exists (select from product_word where word >= ${text} collate "C" and word < (${text} || ${HIGHEST}::text) collate "C")`;
}

/** Returns the corrections of each word: known prefixes one edit away. */
async function correctionsOf(
  ctx: Context,
  words: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const candidates = new Map(words.map((word) => [word, oneEditAway(word)]));
  if (words.length === 0) return candidates;
  const select = sql<{ meant: string }>`
    select meant from unnest(${[...candidates.values()].flat()}::text[]) as meant where ${beginsWord(sql.ref('meant'))}`;
  const known = new Set((await readRows(ctx, select)).map(({ meant }) => meant));
  return new Map(
    [...candidates].map(([word, all]) => [
      word,
      significantTerms(all.filter((candidate) => known.has(candidate))).slice(0, MAX_CORRECTIONS),
    ]),
  );
}

function codeCondition(
  given: readonly string[],
  terms: readonly string[],
): Expression<SqlBool> | undefined {
  const barcode = barcodeOf(withoutSeparators(given.join('')));
  if (barcode !== undefined) return eb('barcode', '=', barcode);
  const pk = given.length === 1 ? readPk(given[0] ?? '') : undefined;
  if (pk !== undefined) return eb('pk', '=', pk);
  const code = terms.find((term) => barcodeOf(withoutSeparators(term)) !== undefined);
  if (code === undefined) return undefined;
  const others = terms.filter((other) => other !== code);
  const hasCode = eb('barcode', '=', barcodeOf(withoutSeparators(code)) ?? '');
  return others.length > 0 ? hasCode.and(matchesAll(others, new Map())) : hasCode;
}

// Pads a UPC-A with a zero and removes that of a GTIN-14.
function barcodeOf(digits: string): string | undefined {
  return /^\d{12,13}$/.test(digits) ? digits.padStart(13, '0') : /^0(\d{13})$/.exec(digits)?.[1];
}
