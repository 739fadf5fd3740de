import { Migration } from '@mikro-orm/migrations';

// Ranges of code points, so that names are split the same way in every locale of a database.
const SYMBOLS = String.raw`!-/:-@\[-\u0060{-~\u00a1-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u3001-\u303f`;
const OTHER_SPACES = String.raw`\u0001-\u001f\u007f-\u00a0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff`;

// Start of a word before its first digit. Its length covers the longest word that is corrected: 24
// letters, and one inserted (features/products/search/spelling.ts).
const BEGINNING = `left(substring(word from '^[^0-9]*'), 25) collate "C"`;
const MIN_LETTERS = 4;

/**
 * Folded names and their words, to search for either, and the starts of the words, to detect
 * spelling mistakes.
 */
export class Migration20261124000000_search extends Migration {
  override up(): void {
    for (const extension of ['unaccent', 'pg_trgm'])
      this.addSql(`create extension if not exists ${extension}`);
    // Most names are ASCII and need no dictionary. Some letters fold to several: the result is cut
    // so that it fits into an index, as a name does.
    this.addSql(
      define(
        'unaccent',
        'search_fold(text) returns text',
        `if octet_length($1) = char_length($1) then
          return left(lower($1 collate "C"), 255);
        end if;
        return left(lower(lower(%2$s.unaccent('%2$s.unaccent', normalize($1, NFKC)) collate "C") collate "default"), 255);`,
      ),
    );
    // Words in their order; each symbol is a separate word.
    this.addSql(`
      create function search_words(text) returns text[] language plpgsql immutable strict parallel safe as $$
      begin
        if $1 !~ '[${OTHER_SPACES}${SYMBOLS}]' then
          return array_remove(string_to_array($1, ' '), '');
        end if;
        return array(select word[1] from regexp_matches($1, '[^ ${OTHER_SPACES}${SYMBOLS}]+|[${SYMBOLS}]', 'g') as word);
      end $$`);
    this.addSql(
      define(
        'unaccent',
        'search_vector(text) returns tsvector',
        `return array_to_tsvector(%1$s.search_words(%1$s.search_fold($1)));`,
      ),
    );

    // One statement, because each rewrites the table.
    this.addSql(`
      alter table product
        drop column name_key,
        add column name_key text collate "C" generated always as (search_fold(name)) stored not null,
        add column words tsvector generated always as (search_vector(name)) stored not null`);
    this.addSql(`create index product_name_key_pk_index on product (name_key, pk)`);
    this.addSql(`create index product_words_index on product using gin (words)`);
    this.addSql(
      inSchemaOf(
        'pg_trgm',
        `create index product_name_key_trigram_index on product using gin (name_key %2$s.gin_trgm_ops)`,
      ),
    );

    this.addSql(
      `create table product_word (pk bigserial primary key, word text collate "C" not null)`,
    );
    this.addSql(`create index product_word_word_index on product_word (word)`);
    // Two concurrent writers of a new word both add it, so that no writer waits for another.
    const added = (rows: string) => `
      insert into product_word (word)
      select distinct word from (select ${BEGINNING} as word from ${rows}, unnest(tsvector_to_array(words)) as word) as given
      where char_length(word) >= ${MIN_LETTERS} and not exists (select from product_word as known where known.word = given.word)`;
    this.addSql(added('product'));
    this.addSql(`
      create function product_word_add() returns trigger language plpgsql as $$
      begin
        ${added('added')};
        return null;
      end $$`);
    this.addSql(`
      create function product_word_truncate() returns trigger language plpgsql as $$
      begin
        delete from product_word;
        return null;
      end $$`);
    for (const event of ['insert', 'update']) {
      this.addSql(`
        create trigger product_word_${event} after ${event} on product
        referencing new table as added for each statement execute function product_word_add()`);
    }
    this.addSql(
      `create trigger product_word_truncate after truncate on product for each statement execute function product_word_truncate()`,
    );
  }

  override down(): void {
    for (const event of ['insert', 'update', 'truncate'])
      this.addSql(`drop trigger product_word_${event} on product`);
    this.addSql(`drop function product_word_add(), product_word_truncate()`);
    this.addSql(`drop table product_word`);
    this.addSql(`
      alter table product
        drop column words,
        drop column name_key,
        add column name_key text collate "C" generated always as (lower(name)) stored not null`);
    this.addSql(`create index product_name_key_pk_index on product (name_key, pk)`);
    this.addSql(`drop function search_vector(text), search_words(text), search_fold(text)`);
  }
}

// A restore generates columns again, without a search path. %1$s is our schema.
function define(extension: string, head: string, body: string): string {
  return inSchemaOf(
    extension,
    `create function ${head} language plpgsql immutable strict parallel safe as $body$ begin ${body} end $body$`,
  );
}

/** Returns the statement with %2$s replaced by the schema of an extension, which may be any. */
function inSchemaOf(extension: string, statement: string): string {
  return `
    do $do$
    begin
      execute format($statement$${statement}$statement$, quote_ident(current_schema()),
        (select extnamespace::regnamespace from pg_extension where extname = '${extension}'));
    end $do$`;
}
