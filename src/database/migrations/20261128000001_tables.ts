import { Migration } from '@mikro-orm/migrations';

export class Migration20261128000001_tables extends Migration {

  override name = 'Migration20261128000001_tables';

  override up(): void | Promise<void> {
    this.addSql(`create table "audit_entry" ("pk" bigserial primary key, "at" timestamptz(3) not null, "actor_kind" text not null, "actor_name" text null, "actor_pk" bigint null, "api_key" uuid null, "request_id" text null, "network" text null, "action" text not null, "subject_kind" text null, "subject_key" text null, "subject_name" text null, "changes" jsonb not null);`);
    this.addSql(`create index "audit_entry_subject_at_pk_index" on "audit_entry" ("subject_kind", "subject_key", "at", "pk");`);
    this.addSql(`create index "audit_entry_action_at_pk_index" on "audit_entry" ("action", "at", "pk");`);
    this.addSql(`create index "audit_entry_actor_name_at_pk_index" on "audit_entry" ("actor_name", "at", "pk");`);
    this.addSql(`create index "audit_entry_at_pk_index" on "audit_entry" ("at", "pk");`);
    this.addSql(`create table "change" ("tx" xid8 not null default pg_current_xact_id(), "pk" bigserial not null, "at" timestamptz(3) not null default now(), "kind" text not null, "subject" text null, "state" jsonb null, primary key ("tx", "pk"));`);
    this.addSql(`create table "idempotency_key" ("caller" text not null, "key" text not null, "fingerprint" bytea not null, "answer" jsonb null, "created_at" timestamptz(3) not null, primary key ("caller", "key"));`);
    this.addSql(`create index "idempotency_key_created_at_index" on "idempotency_key" ("created_at");`);
    this.addSql(`create table "login_failure" ("key" varchar(255) not null, "points" int not null, "expire" bigint null, primary key ("key"));`);
    this.addSql(`create index "login_failure_expire_index" on "login_failure" ("expire");`);
    this.addSql(`create table "mail_count" ("key" varchar(255) not null, "points" int not null, "expire" bigint null, primary key ("key"));`);
    this.addSql(`create index "mail_count_expire_index" on "mail_count" ("expire");`);
    this.addSql(`create table "product" ("pk" bigserial primary key, "name" text not null, "name_key" text generated always as (search_fold(name)) stored collate "C" not null, "words" tsvector generated always as (search_vector(name)) stored not null, "barcode" text not null, "price" numeric not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null);`);
    this.addSql(`alter table "product" add constraint "product_barcode_unique" unique ("barcode");`);
    this.addSql(`create index product_name_key_trigram_index on product using gin (name_key gin_trgm_ops);`);
    this.addSql(`create index product_words_index on product using gin (words);`);
    this.addSql(`create index "product_updated_at_pk_index" on "product" ("updated_at", "pk");`);
    this.addSql(`create index "product_created_at_pk_index" on "product" ("created_at", "pk");`);
    this.addSql(`create index "product_price_pk_index" on "product" ("price", "pk");`);
    this.addSql(`create index "product_name_key_pk_index" on "product" ("name_key", "pk");`);
    this.addSql(`alter table "product" add constraint "product_price_check" check (price >= 0 and price <= 9999999999.99 and scale(price) <= 2);`);
    this.addSql(`alter table "product" add constraint "product_barcode_check" check (char_length(barcode) = 13 and barcode !~ '[^0-9]');`);
    this.addSql(`create table "product_row_count" ("pk" bigserial primary key, "bucket" bigint not null, "rows" int not null, "writes" bigint not null);`);
    this.addSql(`create index "product_row_count_bucket_index" on "product_row_count" ("bucket");`);
    this.addSql(`create table "product_word" ("pk" bigserial primary key, "word" text collate "C" not null);`);
    this.addSql(`create index "product_word_word_index" on "product_word" ("word");`);
    this.addSql(`create table "registration" ("token_hash" bytea not null, "email" text not null, "expires_at" timestamptz(3) not null, primary key ("token_hash"));`);
    this.addSql(`create index "registration_email_index" on "registration" ("email");`);
    this.addSql(`create index "registration_expires_at_index" on "registration" ("expires_at");`);
    this.addSql(`create table "rest_call" ("endpoint" text not null, "client" text not null, "subject" text not null, "first_at" timestamptz(3) not null, "last_at" timestamptz(3) not null, "calls" bigint not null, primary key ("endpoint", "client", "subject"));`);
    this.addSql(`create table "user" ("pk" bigserial primary key, "username" text not null, "email" text null, "full_name" text null, "disabled" boolean not null default false, "hashed_password" text null, "scopes" text[] not null default '{}');`);
    this.addSql(`alter table "user" add constraint "user_username_unique" unique ("username");`);
    this.addSql(`create index user_username_key_index on "user" (username_key(username));`);
    this.addSql(`create index user_email_index on "user" (lower(email));`);
    this.addSql(`create table "session" ("sid" uuid not null, "user_pk" bigint not null, "key_hash" bytea not null, "scopes" text[] null, "refresh_generation" int not null default 0, "refreshed_at" timestamptz(3) null, "created_at" timestamptz(3) not null, "last_seen_at" timestamptz(3) not null, "expires_at" timestamptz(3) not null, "ended_at" timestamptz(3) null, "user_agent" text null, primary key ("sid"));`);
    this.addSql(`alter table "session" add constraint "session_key_hash_unique" unique ("key_hash");`);
    this.addSql(`create index "session_expires_at_index" on "session" ("expires_at");`);
    this.addSql(`create index "session_user_pk_created_at_sid_index" on "session" ("user_pk", "created_at", "sid");`);
    this.addSql(`create table "password_reset" ("token_hash" bytea not null, "user_pk" bigint not null, "expires_at" timestamptz(3) not null, primary key ("token_hash"));`);
    this.addSql(`create index "password_reset_user_pk_index" on "password_reset" ("user_pk");`);
    this.addSql(`create index "password_reset_expires_at_index" on "password_reset" ("expires_at");`);
    this.addSql(`create table "item" ("pk" bigserial primary key, "owner_pk" bigint not null, "item_id" text not null, "created_at" timestamptz(3) not null);`);
    this.addSql(`create index "item_owner_pk_pk_index" on "item" ("owner_pk", "pk");`);
    this.addSql(`alter table "item" add constraint "item_owner_pk_item_id_unique" unique ("owner_pk", "item_id");`);
    this.addSql(`create table "blog_entry" ("pk" bigserial primary key, "title" text not null, "body" text not null, "published" boolean not null default false, "creator_pk" bigint not null, "created_at" timestamptz(3) not null, "updated_at" timestamptz(3) not null);`);
    this.addSql(`create index "blog_entry_creator_pk_created_at_pk_index" on "blog_entry" ("creator_pk", "created_at", "pk");`);
    this.addSql(`create index "blog_entry_created_at_pk_index" on "blog_entry" ("created_at", "pk");`);
    this.addSql(`create table "api_key" ("key_id" uuid not null, "user_pk" bigint not null, "name" text not null, "key_hash" bytea not null, "scopes" text[] not null, "created_at" timestamptz(3) not null, "expires_at" timestamptz(3) not null, "last_used_at" timestamptz(3) null, primary key ("key_id"));`);
    this.addSql(`alter table "api_key" add constraint "api_key_key_hash_unique" unique ("key_hash");`);
    this.addSql(`create index "api_key_expires_at_index" on "api_key" ("expires_at");`);
    this.addSql(`create index "api_key_user_pk_created_at_key_id_index" on "api_key" ("user_pk", "created_at", "key_id");`);
    this.addSql(`create table "webhook" ("pk" bigserial primary key, "webhook_id" uuid not null, "url" text not null, "events" text[] not null, "secret" text not null, "is_enabled" boolean not null default true, "created_at" timestamptz(3) not null, "succeeded_at" timestamptz(3) null, "failed_at" timestamptz(3) null);`);
    this.addSql(`alter table "webhook" add constraint "webhook_webhook_id_unique" unique ("webhook_id");`);
    this.addSql(`alter table "session" add constraint "session_user_pk_foreign" foreign key ("user_pk") references "user" ("pk") on update no action on delete cascade;`);
    this.addSql(`alter table "password_reset" add constraint "password_reset_user_pk_foreign" foreign key ("user_pk") references "user" ("pk") on update no action on delete cascade;`);
    this.addSql(`alter table "item" add constraint "item_owner_pk_foreign" foreign key ("owner_pk") references "user" ("pk") on update no action on delete cascade;`);
    this.addSql(`alter table "blog_entry" add constraint "blog_entry_creator_pk_foreign" foreign key ("creator_pk") references "user" ("pk") on update no action on delete cascade;`);
    this.addSql(`alter table "api_key" add constraint "api_key_user_pk_foreign" foreign key ("user_pk") references "user" ("pk") on update no action on delete cascade;`);
  }

}
