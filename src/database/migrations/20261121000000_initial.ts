import { Migration } from '@mikro-orm/migrations';

/** Users and their sessions, the catalogue, items, the blog. */
export class Migration20261121000000_initial extends Migration {
  override up(): void {
    this.addSql(`
      create table "user" (
        pk serial primary key,
        username text not null constraint user_username_unique unique,
        email text,
        full_name text,
        disabled boolean not null default false,
        hashed_password text,
        scopes text[] not null default '{}',
        constraint user_username_check check (char_length(username) >= 1 and char_length(username) <= 150 and username !~ '[[:cntrl:]]'),
        constraint user_email_check check (email ~ '^[^@[:space:]]+@[^@[:space:]]+$' and char_length(email) <= 254),
        constraint user_full_name_check check (char_length(full_name) >= 1 and char_length(full_name) <= 255 and full_name !~ '[[:cntrl:]]'),
        constraint user_scopes_check check (scopes <@ array['products:write', 'users:read', 'blog:write']::text[])
      )`);

    this.addSql(`
      create table session (
        sid uuid primary key,
        user_pk integer not null constraint session_user_pk_foreign references "user" (pk) on delete cascade,
        key_hash bytea not null constraint session_key_hash_unique unique,
        scopes text[],
        refresh_generation integer not null default 0,
        created_at timestamptz(3) not null,
        last_seen_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        ended_at timestamptz(3),
        user_agent text,
        constraint session_key_hash_check check (octet_length(key_hash) = 32),
        constraint session_times_check check (created_at <= last_seen_at and created_at < expires_at),
        constraint session_refresh_generation_check check (refresh_generation >= 0),
        constraint session_user_agent_check check (char_length(user_agent) <= 255)
      )`);
    this.addSql(
      `create index session_user_pk_created_at_index on session (user_pk, created_at, sid)`,
    );
    this.addSql(`create index session_expires_at_index on session (expires_at)`);

    this.addSql(`
      create table login_failure (
        key varchar(255) primary key,
        points integer not null,
        expire bigint
      )`);
    this.addSql(`create index login_failure_expire_index on login_failure (expire)`);

    this.addSql(`
      create table idempotency_key (
        caller text not null,
        key text not null,
        fingerprint bytea not null,
        answer jsonb,
        created_at timestamptz(3) not null,
        primary key (caller, key),
        constraint idempotency_key_key_check check (char_length(key) >= 1 and char_length(key) <= 255),
        constraint idempotency_key_fingerprint_check check (octet_length(fingerprint) = 32)
      )`);
    this.addSql(`create index idempotency_key_created_at_index on idempotency_key (created_at)`);

    this.addSql(`
      create table product (
        pk serial primary key,
        name text not null,
        name_key text collate "C" generated always as (lower(name)) stored not null,
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
      )`);
    this.addSql(`create index product_name_key_pk_index on product (name_key, pk)`);
    this.addSql(`create index product_price_pk_index on product (price, pk)`);
    this.addSql(`create index product_created_at_pk_index on product (created_at, pk)`);
    this.addSql(`create index product_updated_at_pk_index on product (updated_at, pk)`);

    this.addSql(`
      create table item (
        pk serial primary key,
        owner_pk integer not null constraint item_owner_pk_foreign references "user" (pk) on delete cascade,
        item_id text not null,
        created_at timestamptz(3) not null,
        constraint item_owner_pk_item_id_unique unique (owner_pk, item_id),
        constraint item_item_id_check check (char_length(item_id) >= 1 and char_length(item_id) <= 255 and item_id !~ '[[:cntrl:]]')
      )`);

    this.addSql(`
      create table blog_entry (
        pk serial primary key,
        title text not null,
        body text not null,
        published boolean not null default false,
        creator_pk integer not null constraint blog_entry_creator_pk_foreign references "user" (pk) on delete cascade,
        created_at timestamptz(3) not null,
        updated_at timestamptz(3) not null,
        constraint blog_entry_title_check check (char_length(title) >= 1 and char_length(title) <= 255 and title !~ '[[:cntrl:]]'),
        constraint blog_entry_body_check check (char_length(body) >= 1 and char_length(body) <= 50000)
      )`);
    this.addSql(`create index blog_entry_created_at_index on blog_entry (created_at, pk)`);
    this.addSql(
      `create index blog_entry_creator_pk_created_at_index on blog_entry (creator_pk, created_at, pk)`,
    );
  }

  override down(): void {
    for (const table of [
      'blog_entry',
      'item',
      'product',
      'idempotency_key',
      'login_failure',
      'session',
      '"user"',
    ])
      this.addSql(`drop table ${table}`);
  }
}
