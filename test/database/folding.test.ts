import { execute, sql, type Sql } from '../../src/database/sql.ts';
import { IGNORABLE, LETTERS, MARKS } from '../../src/database/migrations/unicode.ts';
import { describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const CHARACTERS = Array.from({ length: 0x11_0000 }, (_, code) => code)
  .filter((code) => code > 0 && (code < 0xd800 || code > 0xdfff))
  .map((code) => String.fromCodePoint(code));

describe('characters that PostgreSQL has no properties of (Unicode Character Database)', () => {
  test.each([
    ['IGNORABLE', IGNORABLE, /\p{DI}/u],
    [
      'MARKS',
      MARKS,
      /(?=[\p{Mn}\p{Me}])(?=[\p{Diacritic}\p{Script=Inherited}\p{Me}])[^\p{DI}\u3099\u309a]/u,
    ],
  ])('%s has those of the property, and no others', (_name, set, property) => {
    const escapes = set.replace(/\\U000([\da-f]{5})/g, '\\u{$1}');
    const found = new RegExp(`[${escapes}]`, 'u');
    const other = CHARACTERS.filter((text) => found.test(text) !== property.test(text));
    expect(other.map(codeOf)).toEqual([]);
  });

  test('LETTERS has all dashes of the base plane', () => {
    const dashes = CHARACTERS.filter((text) => text.length === 1 && /\p{Pd}/u.test(text));
    // Compatibility characters become others before.
    const own = dashes.filter((text) => text.normalize('NFKC') === text && text !== '-');
    expect(own.filter((text) => !LETTERS.some(([from]) => from.includes(text)))).toEqual([]);
  });
});

describe('search_fold', () => {
  test('letters that differ in case only fold alike (full case folding)', async () => {
    // Those that Unicode 15 to 17 added, which PostgreSQL may not know.
    const added = /[\u019b\u0264\u1c89\u1c8a\ua7c0-\ua7df\u{10d50}-\u{10d8f}\u{16ea0}-\u{16edf}]/u;
    // The iota below a letter is a mark, and marks are ignored.
    const cased = CHARACTERS.filter(
      (text) =>
        !added.test(text) &&
        text.toLowerCase() !== text.toUpperCase() &&
        !text.normalize('NFKD').includes('\u0345'),
    );
    const [low, high] = [
      cased.map((text) => text.toLowerCase()),
      cased.map((text) => text.toUpperCase()),
    ];
    const other = sql`
      select given from unnest(${cased}::text[], ${low}::text[], ${high}::text[]) as cases (given, low, high)
      where search_fold(given) <> search_fold(low) or search_fold(given) <> search_fold(high)`;
    expect(await charactersOf(other)).toEqual([]);
  });

  test('characters that are not displayed fold to nothing', async () => {
    const ignorable = CHARACTERS.filter((text) => /\p{DI}/u.test(text));
    const other = sql`select given from unnest(${ignorable}::text[]) as given where search_fold(given) <> ''`;
    expect(await charactersOf(other)).toEqual([]);
  });

  test('text that is folded stays the same', async () => {
    const texts = CHARACTERS.filter((text) =>
      /(?!\p{Ideographic})[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(text),
    );
    const other = sql`
      select given from unnest(${texts}::text[]) as given
      where search_text(search_text(given)) <> search_text(given)`;
    expect(await charactersOf(other)).toEqual([]);
  });
});

async function charactersOf(statement: Sql): Promise<string[]> {
  const { rows } = await execute(shop.context().em, statement);
  return rows.map(({ given }) => codeOf(String(given)));
}

function codeOf(text: string): string {
  return `U+${text.codePointAt(0)?.toString(16).toUpperCase()} ${text}`;
}
