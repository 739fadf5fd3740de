import { Migration } from '@mikro-orm/migrations';

/** Default_Ignorable_Code_Point: PostgreSQL has no properties of characters. */
const IGNORABLE =
  String.raw`\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e` +
  String.raw`\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3` +
  String.raw`\U0001d173-\U0001d17a\U000e0000-\U000e0fff`;

/** Combining Diacritical Marks. */
const MARKS = String.raw`\u0300-\u036f`;

// Ranges of code points, so that names are split the same way in every locale of a database.
const SYMBOLS =
  String.raw`!-/:-@\[-\u0060{-~\u00a1-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e\u20a0-\u20cf` +
  String.raw`\u3001-\u303f`;
const SPACES = String.raw`\u0001- \u007f-\u00a0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff`;
const WORD = `[^${SPACES}${SYMBOLS}]+`;

/** Functions that generated columns and indexes use. */
export class Migration20261128000000_functions extends Migration {
  override async up(): Promise<void> {
    for (const extension of ['unaccent', 'pg_trgm'])
      await this.execute(`create extension if not exists ${extension}`);
    // In some databases, the default collation knows only the letters of ASCII.
    const [database] = await this.execute(`
      select quote_ident(coalesce(min(collname), 'default')) as letters, quote_ident(current_schema()) as schema
      from pg_collation where collname in ('pg_c_utf8', 'und-x-icu')`);
    const lower = (text: string) =>
      `translate(lower(${text} collate ${database?.['letters']}), 'ς', 'σ')`;

    // The form in which usernames are compared, as by usernameForm.
    const visible = `regexp_replace($1, '[${IGNORABLE}]+', '', 'g')`;
    this.define(
      'username_key(text) returns text',
      `btrim(${lower(`translate(normalize(${visible}, NFKC), 'İ', 'i')`)})`,
    );

    // Without case and accents. Some letters become several: the result is cut so that it fits into
    // an index, as a name does.
    const decomposed = `normalize(translate($1, '\`´', ''''''), NFKD)`;
    const letter = `unaccent(regexp_replace(${decomposed}, '[${MARKS}${IGNORABLE}]+', '', 'g'))`;
    this.define('search_text(text) returns text', `left(normalize(${lower(letter)}, NFC), 255)`);
    // The order of names, and what `nameContains` compares: without apostrophes.
    this.define('search_fold(text) returns text', `replace(search_text($1), '''', '')`);
    // Words in their order; each symbol is a separate word. A subquery is 20 times as slow.
    const apart = `regexp_replace($1, '([${SYMBOLS}])', ' \\1 ', 'g')`;
    this.define(
      'search_words(text) returns text[]',
      `string_to_array(btrim(regexp_replace(${apart}, '[${SPACES}]+', ' ', 'g')), ' ')`,
    );
    // The same, but an apostrophe or hyphen between letters is part of the word.
    this.define(
      'search_terms(text) returns text[]',
      `array(select match[1] from regexp_matches($1, '${WORD}(?:[''-]${WORD})*|[${SYMBOLS}]', 'g') as match)`,
    );
    // All that finds a name: its words, also without apostrophes and hyphens. SQL is half as fast.
    const words = `${database?.['schema']}.search_words`;
    this.addSql(
      `create function search_parts(text) returns text[] language plpgsql immutable strict parallel safe as $$
        begin return ${words}($1) || case when $1 ~ '[''-]' then ${words}(translate($1, '''-', '')) end; end $$`,
    );
    this.define(
      'search_vector(text) returns tsvector',
      'array_to_tsvector(search_parts(search_text($1)))',
    );
  }

  // PostgreSQL resolves names in such an expression now: a restore has no search path.
  private define(head: string, expression: string): void {
    this.addSql(
      `create function ${head} language sql immutable strict parallel safe return ${expression}`,
    );
  }
}
