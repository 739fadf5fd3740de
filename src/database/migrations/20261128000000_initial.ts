import { Migration } from '@mikro-orm/migrations';
import {
  argumentsOf,
  IGNORABLE,
  LETTERS,
  LOOKALIKES,
  MARKS,
  SIGNS,
  type Replacements,
} from './unicode.ts';

/** Maximum number of products per statement that are logged one by one, not as one bulk change. */
const MANY = 1_000;

/** The state of a product in the change log: its columns but for those generated from others. */
const STATE = (row: string) => `to_jsonb(${row}) - '{name_key,words}'::text[]`;

// Ranges of code points, so that names are split the same way in every locale of a database.
const SYMBOLS = String.raw`!-/:-@\[-\u0060{-~\u00a1-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e\u20a0-\u20cf\u3001-\u303f`;
const OTHER_SPACES = String.raw`\u0001-\u001f\u007f-\u00a0\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff`;

const WORD = `[^ ${OTHER_SPACES}${SYMBOLS}]+`;

// Start of a word before its first digit. Its length covers the longest word that is corrected: 24
// letters, and one inserted (features/products/search/spelling.ts).
const BEGINNING = `left(substring(word from '^[^0-9]*'), 25) collate "C"`;
const MIN_LETTERS = 4;

/** All tables, functions and triggers, each after those that it uses. */
export class Migration20261128000000_initial extends Migration {
  override up(): void {
    this.usernameKey();
    this.users();
    this.credentials();
    this.rateLimits();
    this.searchFunctions();
    this.products();
    this.rowCounts();
    this.searchWords();
    this.posts();
    this.mails();
    this.changeLog();
    this.webhooks();
    this.auditTrail();
    this.restUsage();
  }

  /** The form in which usernames are compared, as in features/users/username.ts. */
  private usernameKey(): void {
    this.addSql(
      define(
        'plpgsql',
        'username_key(text) returns text',
        `
        begin
          if octet_length($1) = char_length($1) then
            return btrim(lower($1 collate "C"));
          end if;
          return btrim(translate(${lower(`normalize(regexp_replace($1, '[${IGNORABLE}]+', '', 'g'), NFKC)`)}, ${argumentsOf(LOOKALIKES)}));
        end`,
      ),
    );
  }

  private users(): void {
    this.addSql(`
      create table "user" (
        pk bigserial primary key,
        username text not null constraint user_username_unique unique,
        email text,
        full_name text,
        disabled boolean not null default false,
        hashed_password text,
        scopes text[] not null default '{}',
        constraint user_username_check check (char_length(username) >= 1 and char_length(username) <= 150 and username !~ '[[:cntrl:]]'),
        constraint user_email_check check (email ~ '^[^@[:space:]]+@[^@[:space:]]+$' and char_length(email) <= 254),
        constraint user_full_name_check check (char_length(full_name) >= 1 and char_length(full_name) <= 255 and full_name !~ '[[:cntrl:]]'),
        constraint user_scopes_check check (scopes <@ array['products:write', 'users:read', 'blog:write', 'audit:read']::text[])
      );
      create index user_email_index on "user" (lower(email));
      create index user_username_key_index on "user" (username_key(username));
    `);
  }

  /** Sessions, API keys, idempotency keys. */
  private credentials(): void {
    this.addSql(`
      create table session (
        sid uuid primary key,
        user_pk bigint not null constraint session_user_pk_foreign references "user" (pk) on delete cascade,
        key_hash bytea not null constraint session_key_hash_unique unique,
        scopes text[],
        refresh_generation integer not null default 0,
        created_at timestamptz(3) not null,
        last_seen_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        ended_at timestamptz(3),
        user_agent text,
        refreshed_at timestamptz(3),
        refresh_salt bytea,
        constraint session_key_hash_check check (octet_length(key_hash) = 32),
        constraint session_times_check check (created_at <= last_seen_at and created_at < expires_at),
        constraint session_refresh_generation_check check (refresh_generation >= 0),
        constraint session_refresh_salt_check check (octet_length(refresh_salt) = 32),
        constraint session_user_agent_check check (char_length(user_agent) <= 255)
      );
      create index session_user_pk_created_at_index on session (user_pk, created_at, sid);
      create index session_expires_at_index on session (expires_at);
      create table api_key (
        key_id uuid primary key,
        user_pk bigint not null constraint api_key_user_pk_foreign references "user" (pk) on delete cascade,
        name text not null,
        key_hash bytea not null constraint api_key_key_hash_unique unique,
        scopes text[] not null,
        created_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        last_used_at timestamptz(3),
        constraint api_key_name_check check (char_length(name) >= 1 and char_length(name) <= 100 and name !~ '[[:cntrl:]]'),
        constraint api_key_key_hash_check check (octet_length(key_hash) = 32),
        constraint api_key_times_check check (created_at < expires_at)
      );
      create index api_key_user_pk_created_at_index on api_key (user_pk, created_at, key_id);
      create index api_key_expires_at_index on api_key (expires_at);
      create table idempotency_key (
        caller text not null,
        key text not null,
        fingerprint bytea not null,
        answer jsonb,
        created_at timestamptz(3) not null,
        primary key (caller, key),
        constraint idempotency_key_key_check check (char_length(key) >= 1 and char_length(key) <= 255),
        constraint idempotency_key_fingerprint_check check (octet_length(fingerprint) = 32)
      );
      create index idempotency_key_created_at_index on idempotency_key (created_at);
    `);
  }

  /** Counts with an expiry, by key: failed logins and requested mails (database/rate-limiter.ts). */
  private rateLimits(): void {
    for (const table of ['login_failure', 'mail_count'])
      this.addSql(`
        create table ${table} (key varchar(255) primary key, points integer not null, expire bigint);
        create index ${table}_expire_index on ${table} (expire);
      `);
  }

  private products(): void {
    this.addSql(`
      create table product (
        pk bigserial primary key,
        name text not null,
        name_key text collate "C" generated always as (search_fold(name)) stored not null,
        words tsvector generated always as (search_vector(name)) stored not null,
        barcode text not null constraint product_barcode_unique unique,
        price numeric not null,
        created_at timestamptz(3) not null,
        updated_at timestamptz(3) not null,
        constraint product_name_check check (char_length(name) >= 1 and char_length(name) <= 255 and name !~ '[[:cntrl:]]' and name = btrim(name)),
        constraint product_barcode_check check (
          case when barcode ~ '^[0-9]{13}$' then (1 * substr(barcode, 1, 1)::int + 3 * substr(barcode, 2, 1)::int +
            1 * substr(barcode, 3, 1)::int + 3 * substr(barcode, 4, 1)::int +
            1 * substr(barcode, 5, 1)::int + 3 * substr(barcode, 6, 1)::int +
            1 * substr(barcode, 7, 1)::int + 3 * substr(barcode, 8, 1)::int +
            1 * substr(barcode, 9, 1)::int + 3 * substr(barcode, 10, 1)::int +
            1 * substr(barcode, 11, 1)::int + 3 * substr(barcode, 12, 1)::int +
            1 * substr(barcode, 13, 1)::int) % 10 = 0 else false end),
        constraint product_price_check check (price >= 0 and price <= 9999999999.99 and scale(price) <= 2)
      );
      create index product_name_key_pk_index on product (name_key, pk);
      create index product_price_pk_index on product (price, pk);
      create index product_created_at_pk_index on product (created_at, pk);
      create index product_updated_at_pk_index on product (updated_at, pk);
      create table product_import_batch (
        hash bytea primary key,
        imported_at timestamptz(3) not null,
        constraint product_import_batch_hash_check check (octet_length(hash) = 32)
      );
      create index product_import_batch_imported_at_index on product_import_batch (imported_at);
    `);
  }

  /**
   * Number of products by ranges of primary keys, counted on each write
   * (pagination/row-counts.ts).
   */
  private rowCounts(): void {
    for (const table of ['product_row_count', 'product_row_count_fine']) {
      // Rows are updated often: free space on the page keeps the new version next to the old, and a
      // frequent vacuum removes dead versions.
      this.addSql(`
        create table ${table} (
          pk bigserial primary key,
          bucket bigint not null,
          rows integer not null,
          writes bigint not null
        ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`);
      this.addSql(`create index ${table}_bucket_index on ${table} (bucket)`);
      // A range may have several rows: a writer that finds all of them locked adds one, so that no
      // writer waits for another.
      this.addSql(`
        create function ${table}_add(at_bucket bigint, delta integer) returns void language plpgsql as $$
        begin
          update ${table} set rows = rows + delta, writes = writes + 1 where pk = (
            select pk from ${table} where bucket = at_bucket limit 1 for update skip locked);
          if not found then
            insert into ${table} (bucket, rows, writes) values (at_bucket, delta, 1);
          end if;
        end $$`);
    }
    // The first primary key is 1.
    const counted = (rows: string, sign: string) => `
      perform product_row_count_fine_add(bucket, ${sign}rows) from (
        select (pk - 1) >> 8 as bucket, count(*)::integer as rows from ${rows} group by 1) as changed;
      perform product_row_count_add(bucket, ${sign}rows) from (
        select (pk - 1) >> 16 as bucket, count(*)::integer as rows from ${rows} group by 1) as changed;`;
    // A changed primary key is a removal and an addition. Any other update leaves the number of
    // rows unchanged, and counts as a write.
    const moved = (bits: number) => `
      select bucket, sum(delta)::integer as rows from (
        select (pk - 1) >> ${bits} as bucket, 1 as delta from added union all select (pk - 1) >> ${bits}, -1 from removed) as moved group by 1`;
    const bodies = {
      insert: counted('added', ''),
      delete: counted('removed', '-'),
      update: `
        perform product_row_count_fine_add(bucket, rows) from (${moved(8)}) as changed where rows <> 0;
        perform product_row_count_add(bucket, rows) from (${moved(16)}) as changed;`,
    };
    for (const [event, body] of Object.entries(bodies)) {
      this.addSql(`
        create function product_row_count_${event}() returns trigger language plpgsql as $$
        begin
          ${body}
          return null;
        end $$`);
    }
    this.addSql(`
      create function product_row_count_truncate() returns trigger language plpgsql as $$
      declare
        written bigint;
      begin
        select coalesce(sum(writes), 0) into written from product_row_count;
        delete from product_row_count;
        delete from product_row_count_fine;
        insert into product_row_count (bucket, rows, writes) values (0, 0, written + 1);
        return null;
      end $$`);
    this.addSql(`
      create trigger product_row_count_insert after insert on product
      referencing new table as added for each statement execute function product_row_count_insert()`);
    this.addSql(`
      create trigger product_row_count_delete after delete on product
      referencing old table as removed for each statement execute function product_row_count_delete()`);
    this.addSql(`
      create trigger product_row_count_update after update on product
      referencing old table as removed new table as added for each statement execute function product_row_count_update()`);
    this.addSql(
      `create trigger product_row_count_truncate after truncate on product for each statement execute function product_row_count_truncate()`,
    );
  }

  /** Folds names and splits them into words. */
  private searchFunctions(): void {
    for (const extension of ['unaccent', 'pg_trgm'])
      this.addSql(`create extension if not exists ${extension}`);
    // Most names are ASCII and need no dictionary. Some letters fold to several: the result is cut
    // so that it fits into an index, as a name does. Apostrophes become ' and hyphens -. What few
    // names need, such as composing Hangul again, happens only for them.
    this.addSql(
      define(
        'unaccent',
        'search_text(text) returns text',
        `
        declare
          folded text := $1;
        begin
          if octet_length($1) = char_length($1) then
            return left(translate(lower($1 collate "C"), '\`', ''''), 255);
          end if;
          ${translated('folded', SIGNS)}
          folded := regexp_replace(${lower('normalize(folded, NFKD)')}, '[${MARKS}${IGNORABLE}]+', '', 'g');
          folded := lower(%2$s.unaccent('%2$s.unaccent', folded) collate "C");
          ${translated('folded', LETTERS)}
          if folded ~ '[\\u1100-\\u11ff\\u3099\\u309a]' then
            folded := normalize(folded, NFKC);
          end if;
          return left(folded, 255);
        end`,
      ),
    );
    // The order of names, and what `nameContains` compares: without apostrophes.
    this.addSql(
      define(
        'unaccent',
        'search_fold(text) returns text',
        `
        begin
          if octet_length($1) = char_length($1) then
            return left(translate(lower($1 collate "C"), '''\`', ''), 255);
          end if;
          return replace(%1$s.search_text($1), '''', '');
        end`,
      ),
    );
    // Words in their order; each symbol is a separate word.
    this.addSql(`
      create function search_words(text) returns text[] language plpgsql immutable strict parallel safe as $$
      begin
        if $1 !~ '[${OTHER_SPACES}${SYMBOLS}]' then
          return array_remove(string_to_array($1, ' '), '');
        end if;
        return array(select word[1] from regexp_matches($1, '${WORD}|[${SYMBOLS}]', 'g') as word);
      end $$`);
    // The same, but an apostrophe or hyphen between letters is part of the word.
    this.addSql(`
      create function search_terms(text) returns text[] language plpgsql immutable strict parallel safe as $$
      begin
        return array(select term[1] from regexp_matches($1, '${WORD}(?:[''-]${WORD})*|[${SYMBOLS}]', 'g') as term);
      end $$`);
    // All that finds a name: its words, and those that it has without apostrophes and hyphens.
    this.addSql(
      define(
        'unaccent',
        'search_parts(text) returns text[]',
        `
        begin
          if strpos($1, '''') = 0 and strpos($1, '-') = 0 then
            return %1$s.search_words($1);
          end if;
          return %1$s.search_words($1) || %1$s.search_words(translate($1, '''-', ''));
        end`,
      ),
    );
    this.addSql(
      define(
        'unaccent',
        'search_vector(text) returns tsvector',
        `begin return array_to_tsvector(%1$s.search_parts(%1$s.search_text($1))); end`,
      ),
    );
  }

  /** Indexes for the search, and the starts of all words, to detect spelling mistakes. */
  private searchWords(): void {
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

  /** Items and blog entries of users. */
  private posts(): void {
    this.addSql(`
      create table item (
        pk bigserial primary key,
        owner_pk bigint not null constraint item_owner_pk_foreign references "user" (pk) on delete cascade,
        item_id text not null,
        created_at timestamptz(3) not null,
        constraint item_owner_pk_item_id_unique unique (owner_pk, item_id),
        constraint item_item_id_check check (char_length(item_id) >= 1 and char_length(item_id) <= 255 and item_id !~ '[[:cntrl:]]')
      );
      create index item_owner_pk_pk_index on item (owner_pk, pk);
      create table blog_entry (
        pk bigserial primary key,
        title text not null,
        body text not null,
        published boolean not null default false,
        creator_pk bigint not null constraint blog_entry_creator_pk_foreign references "user" (pk) on delete cascade,
        created_at timestamptz(3) not null,
        updated_at timestamptz(3) not null,
        constraint blog_entry_title_check check (char_length(title) >= 1 and char_length(title) <= 255 and title !~ '[[:cntrl:]]'),
        constraint blog_entry_body_check check (char_length(body) >= 1 and char_length(body) <= 50000)
      );
      create index blog_entry_created_at_index on blog_entry (created_at, pk);
      create index blog_entry_creator_pk_created_at_index on blog_entry (creator_pk, created_at, pk);
    `);
  }

  /**
   * The queue of mails, whose delays add up to about a day and which has one mail of each kind to an
   * addressee (singletonKey); pending registrations and password resets.
   */
  private mails(): void {
    this.addSql(`
      select pgboss.create_queue('mail', '{
        "policy": "exclusive", "retryLimit": 31, "retryDelay": 10, "retryBackoff": true, "retryDelayMax": 3600,
        "expireInSeconds": 300, "retentionSeconds": 93600, "deleteAfterSeconds": 86400}');
      create table registration (
        token_hash bytea primary key,
        email text not null,
        expires_at timestamptz(3) not null,
        constraint registration_token_hash_check check (octet_length(token_hash) = 32)
      );
      create index registration_email_index on registration (email);
      create index registration_expires_at_index on registration (expires_at);
      create table password_reset (
        token_hash bytea primary key,
        user_pk bigint not null constraint password_reset_user_pk_foreign references "user" (pk) on delete cascade,
        expires_at timestamptz(3) not null,
        constraint password_reset_token_hash_check check (octet_length(token_hash) = 32)
      );
      create index password_reset_user_pk_index on password_reset (user_pk);
      create index password_reset_expires_at_index on password_reset (expires_at);
    `);
  }

  /**
   * Log of changes of products and sessions, written in the transaction of each change
   * (features/change-log/change-log.ts).
   */
  private changeLog(): void {
    this.addSql(`
      create table change (
        tx xid8 not null default pg_current_xact_id(),
        pk bigserial not null,
        at timestamptz(3) not null default now(),
        kind text not null,
        subject text,
        state jsonb,
        constraint change_pkey primary key (tx, pk),
        constraint change_kind_check check (kind ~ '^[a-z]+\\.[a-z]+$')
      )`);
    this.logProducts();
    this.logSessions();
  }

  // Triggers log every writer, `COPY` and psql included. They run once per statement, so that a
  // million rows in one statement are not a million changes.
  private logProducts(): void {
    const logged = (rows: string, change: string) => `
      declare
        written bigint;
      begin
        select count(*) into written from ${rows};
        if written > ${MANY} then
          insert into change (kind, state) values ('products.changed', jsonb_build_object('count', written));
        else
          insert into change (kind, subject, state) ${change};
        end if;
        return null;
      end`;
    const bodies = {
      insert: logged(
        'added',
        `select 'product.created', added.pk, ${STATE('added')} from added order by added.pk`,
      ),
      delete: logged(
        'removed',
        `select 'product.deleted', removed.pk, ${STATE('removed')} from removed order by removed.pk`,
      ),
      // An unchanged row is no change. A changed primary key is a deletion and a creation.
      update: logged(
        'added',
        `select
          case when removed.pk is null then 'product.created' when added.pk is null then 'product.deleted' else 'product.changed' end,
          coalesce(added.pk, removed.pk),
          case when added.pk is null then ${STATE('removed')} else ${STATE('added')} end
        from added full join removed on added.pk = removed.pk
        where added is distinct from removed order by 2`,
      ),
      truncate: `begin insert into change (kind) values ('products.changed'); return null; end`,
    };
    for (const [event, body] of Object.entries(bodies)) {
      this.addSql(
        `create function product_change_${event}() returns trigger language plpgsql as $$ ${body} $$`,
      );
    }
    const on = (event: string, tables: string) =>
      this.addSql(
        `create trigger product_change_${event} after ${event} on product ${tables} for each statement execute function product_change_${event}()`,
      );
    on('insert', 'referencing new table as added');
    on('delete', 'referencing old table as removed');
    on('update', 'referencing old table as removed new table as added');
    on('truncate', '');
  }

  // An expired session has ended already; deleting it is no change.
  private logSessions(): void {
    this.addSql(`
      create function session_change() returns trigger language plpgsql as $$
      begin
        insert into change (kind, subject, state) values ('session.ended', old.sid, jsonb_build_object('userPk', old.user_pk));
        return null;
      end $$`);
    this.addSql(`
      create trigger session_change_update after update of ended_at on session for each row
      when (old.ended_at is null and new.ended_at is not null and old.expires_at > now()) execute function session_change()`);
    this.addSql(`
      create trigger session_change_delete after delete on session for each row
      when (old.ended_at is null and old.expires_at > now()) execute function session_change()`);
  }

  /** Webhooks, and the trigger that adds each event to the queues of the webhooks that receive it. */
  private webhooks(): void {
    this.addSql(`
      create table webhook (
        pk bigserial primary key,
        webhook_id uuid not null constraint webhook_webhook_id_unique unique,
        url text not null,
        description text,
        events text[] not null,
        secret text not null,
        previous_secret text,
        previous_until timestamptz(3),
        is_enabled boolean not null default true,
        created_at timestamptz(3) not null,
        succeeded_at timestamptz(3),
        failed_at timestamptz(3),
        constraint webhook_url_check check (char_length(url) <= 2000 and url ~ '^https?://'),
        constraint webhook_description_check
          check (char_length(description) >= 1 and char_length(description) <= 200 and description !~ '[[:cntrl:]]'),
        constraint webhook_events_check check (
          cardinality(events) >= 1 and events <@ array['product.created', 'product.changed', 'product.deleted', 'products.changed', 'session.ended']::text[])
      );
    `);
    // In the transaction of the change. Locked, because the queue of a webhook that is being removed
    // must not lack a job's foreign key.
    this.addSql(`
      create function change_webhooks() returns trigger language plpgsql as $$
      begin
        insert into pgboss.job (
          name, data, policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds, keep_until)
        select queue.name, jsonb_build_object('kind', added.kind, 'at', added.at, 'subject', added.subject, 'state', added.state),
          policy, retry_limit, retry_delay, retry_backoff, retry_delay_max, expire_seconds, deletion_seconds, now() + retention_seconds * interval '1 s'
        from added
        join webhook on is_enabled and added.kind = any(events)
        join pgboss.queue on queue.name = 'webhook/' || webhook_id
        order by added.pk for key share of webhook;
        return null;
      end $$`);
    this.addSql(`
      create trigger change_webhooks after insert on change referencing new table as added
      for each statement execute function change_webhooks()`);
  }

  private auditTrail(): void {
    this.addSql(`
      create table audit_entry (
        pk bigserial primary key,
        at timestamptz(3) not null,
        actor_kind text not null,
        actor_name text,
        actor_pk bigint,
        api_key uuid,
        request_id text,
        network text,
        action text not null,
        subject_kind text,
        subject_key text,
        subject_name text,
        changes jsonb not null,
        constraint audit_entry_action_check check (action ~ '^[a-z_]+\\.[a-z_]+$'),
        constraint audit_entry_actor_kind_check check (actor_kind ~ '^(user|api_key|operator|anonymous)$'),
        constraint audit_entry_actor_name_check check ((actor_name is null) = (actor_kind = 'anonymous')),
        constraint audit_entry_subject_kind_check check (subject_kind ~ '^(user|product|api_key)$'),
        constraint audit_entry_subject_key_check check ((subject_key is null) = (subject_kind is null)),
        constraint audit_entry_subject_name_check check ((subject_name is null) = (subject_kind is null))
      )`);
    this.addSql(`create index audit_entry_at_pk_index on audit_entry (at, pk)`);
    this.addSql(
      `create index audit_entry_actor_name_at_pk_index on audit_entry (actor_name, at, pk)`,
    );
    this.addSql(`create index audit_entry_action_at_pk_index on audit_entry (action, at, pk)`);
    this.addSql(
      `create index audit_entry_subject_at_pk_index on audit_entry (subject_kind, subject_key, at, pk)`,
    );

    // A statement trigger rejects statements that match no row, too. The setting applies to one
    // transaction.
    this.addSql(`
      create function audit_entry_append_only() returns trigger language plpgsql as $$
      begin
        if tg_op <> 'DELETE' or current_setting('shopfront.audit_prune', true) is distinct from 'on' then
          raise exception 'The audit trail is append-only: % is refused', tg_op
            using errcode = 'insufficient_privilege', hint = 'The command "audit prune" deletes old entries.';
        end if;
        return null;
      end $$`);
    this.addSql(`
      create trigger audit_entry_append_only before update or delete or truncate on audit_entry
      for each statement execute function audit_entry_append_only()`);
  }

  /** Calls of the REST API by endpoint, client and user, and by day. */
  private restUsage(): void {
    // The same rows are updated every few seconds: free space on the page keeps the new version
    // next to the old.
    this.addSql(`
      create table rest_call (
        endpoint text not null,
        client text not null,
        subject text not null,
        first_at timestamptz(3) not null,
        last_at timestamptz(3) not null,
        calls bigint not null,
        primary key (endpoint, client, subject),
        constraint rest_call_client_check check (char_length(client) <= 255),
        constraint rest_call_calls_check check (calls > 0 and first_at <= last_at)
      ) with (fillfactor = 50)`);
    // The day is first in the key, because old days are deleted.
    this.addSql(`
      create table rest_call_day (
        day date not null,
        endpoint text not null,
        client text not null,
        calls bigint not null,
        primary key (day, endpoint, client),
        constraint rest_call_day_client_check check (char_length(client) <= 255),
        constraint rest_call_day_calls_check check (calls > 0)
      ) with (fillfactor = 50)`);
  }
}

/** The text in small letters, alike in every locale of a database. */
function lower(text: string): string {
  return `lower(lower(${text} collate "C") collate %3$s)`;
}

/** Replaces characters of a variable, if it has any. The check takes a tenth of the time. */
function translated(variable: string, characters: Replacements): string {
  return `
    if ${variable} ~ '[${characters.map(([from]) => from).join('')}]' then
      ${variable} := translate(${variable}, ${argumentsOf(characters)});
    end if;`;
}

// A restore generates columns again, without a search path. %1$s is our schema, %3$s a collation.
function define(extension: string, head: string, body: string): string {
  return inSchemaOf(
    extension,
    `create function ${head} language plpgsql immutable strict parallel safe as $body$ ${body} $body$`,
  );
}

/**
 * Returns the statement with %2$s replaced by the schema of an extension, which may be any, and %3$s
 * by a collation that knows the letters of all scripts, if there is one.
 */
function inSchemaOf(extension: string, statement: string): string {
  return `
    do $do$
    begin
      execute format($statement$${statement}$statement$, quote_ident(current_schema()),
        (select extnamespace::regnamespace from pg_extension where extname = '${extension}'),
        (select quote_ident(coalesce(min(collname), 'default')) from pg_collation where collname in ('pg_c_utf8', 'und-x-icu')));
    end $do$`;
}
