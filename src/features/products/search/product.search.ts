import type { Context } from '../../../request/context.ts';
import { rankIn } from '../../../pagination/cursor.ts';
import type { PageArgs } from '../../../pagination/keyset.ts';
import { readPk } from '../../../core/pk.ts';
import { readRows } from '../../../database/row-mapper.ts';
import { join, sql, type Sql } from '../../../database/sql.ts';
import type { Tier, TieredListing } from '../../../pagination/ranked-list.ts';
import type { Product } from '../product.entity.ts';
import { OrderDirection, ProductOrderField, type ProductOrder } from '../product.inputs.ts';
import { listingOf } from '../product-lists.ts';
import type { CheckedFilter } from '../product.rules.ts';
import { isCorrectable, meantBy } from './spelling.ts';
import { haveAll, weighty } from './search-terms.ts';

// What is found, by rank: the ranks stand in cursors.
const CODE = 1;
const BEGINNING = 2;
const WORDS = 3;
/** With a bit for each word that is taken for mistyped: the next page takes the same ones, whatever was added meanwhile. */
const MISTYPED = 4;

const MAX_MISTYPED = 4;
/** How many words one may have been meant for. */
const MAX_MEANT = 20;
/** Follows whatever a name goes on with. */
const END = '\u{10ffff}';

const BY_NAME: ProductOrder = { field: ProductOrderField.NAME, direction: OrderDirection.ASC };

/** A search as it is understood: conditions on products. */
export interface Search {
  /** The product that it names by barcode or pk. */
  code?: Sql;
  /** Names that begin with it. */
  beginning: Sql;
  /** Names that have all its words. */
  words: Sql;
  /** The rank of these. */
  rank: number;
}

/** Reads a search; undefined where there is not a word in it. */
export async function readSearch(ctx: Context, asked: string, { after, before }: PageArgs): Promise<Search | undefined> {
  const text = asked.trim().replace(/\s+/g, ' ');
  const known = text === '' ? new Map<string, boolean>() : await wordsOf(ctx, text);
  const words = weighty([...known.keys()]);
  if (words.length === 0) return undefined;
  const unsure = words.filter(isCorrectable).slice(0, MAX_MISTYPED);
  const rank = Math.max(rankIn(after) ?? CODE, rankIn(before) ?? CODE);
  const unknown = unsure.reduce((bits, word, place) => (known.get(word) ? bits : bits | (1 << place)), 0);
  const mask = rank === CODE ? unknown : Math.max(rank - MISTYPED, 0) & ((1 << unsure.length) - 1);
  const mistyped = unsure.filter((_word, place) => ((mask >> place) & 1) === 1);
  const code = codeIn(text, words);
  return {
    ...(code && { code }),
    beginning: sql`name_key >= search_fold(${text}) and name_key < search_fold(${text}) || ${END}::text`,
    words: haveAll(words, await meantFor(ctx, mistyped)),
    rank: mask === 0 ? WORDS : MISTYPED + mask,
  };
}

/** The products that a search finds and the filter lets through: the best first, or in the order that is asked for. */
export function foundBy(
  { code, beginning, words, rank }: Search,
  filter: CheckedFilter,
  orderBy?: ProductOrder | null,
): TieredListing<Product> {
  const whole = listingOf(filter, orderBy, code ? sql`((${code}) or ${words})` : words);
  if (orderBy) return { tiers: [{ rank, listing: whole }], whole };
  const others = code ? [sql`(${code}) is not true`] : [];
  const tiers: Tier<Product>[] = [];
  if (code) tiers.push({ rank: CODE, listing: { ...listingOf(filter, null, code), isFew: true } });
  if (rank === WORDS) {
    tiers.push({ rank: BEGINNING, listing: { ...listingOf(filter, BY_NAME, every(others)), range: beginning } });
    others.push(sql`(${beginning}) is not true`);
  }
  tiers.push({ rank, listing: listingOf(filter, null, every([words, ...others])) });
  return { tiers, whole: { ...whole, name: 'products found' } };
}

/** The words of a text, folded, and whether the catalogue has one that begins so. */
async function wordsOf(ctx: Context, text: string): Promise<Map<string, boolean>> {
  const rows = await readRows(
    ctx,
    sql`
      select word, exists (
        select from product_word as known where known.word >= given.word collate "C" and known.word < (given.word || ${END}::text) collate "C")::text
      from unnest(search_words(search_fold(${text}))) with ordinality as given (word, place) order by place`,
    true,
  );
  return new Map(rows.map(([word, isKnown]) => [String(word), isKnown === 'true']));
}

/** For each of these words, beginnings of words that it may have been meant for and that there are, the fuller ones. */
async function meantFor(ctx: Context, words: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const meant = new Map(words.map((word) => [word, meantBy(word)]));
  if (words.length === 0) return meant;
  const rows = await readRows(
    ctx,
    sql`
      select meant from unnest(${[...meant.values()].flat()}::text[]) as meant where exists (
        select from product_word where word >= meant collate "C" and word < (meant || ${END}::text) collate "C")`,
  );
  const there = new Set(rows.map(([word]) => word));
  return new Map([...meant].map(([word, all]) => [word, weighty(all.filter((one) => there.has(one))).slice(0, MAX_MEANT)]));
}

function codeIn(text: string, words: readonly string[]): Sql | undefined {
  const whole = barcodeOf(text.replace(/[ -]/g, ''));
  if (whole !== undefined) return sql`barcode = ${whole}`;
  const pk = readPk(text);
  if (pk !== undefined) return sql`pk = ${pk}`;
  const word = words.find((one) => barcodeOf(one) !== undefined);
  if (word === undefined) return undefined;
  const others = words.filter((one) => one !== word);
  return sql`barcode = ${barcodeOf(word)}${others.length > 0 ? sql` and ${haveAll(others, new Map())}` : sql``}`;
}

// A UPC-A has no leading zero, a GTIN-14 one more.
function barcodeOf(digits: string): string | undefined {
  return /^\d{12,13}$/.test(digits) ? digits.padStart(13, '0') : /^0(\d{13})$/.exec(digits)?.[1];
}

function every(conditions: readonly Sql[]): Sql | undefined {
  return conditions.length > 0 ? join(conditions, ' and ') : undefined;
}
