import { Migration } from '@mikro-orm/migrations';

/** Queued mails, pending registrations and password resets, API keys. */
export class Migration20261126000000_accounts extends Migration {
  override up(): void {
    this.addSql(`create index user_email_index on "user" (lower(email))`);

    this.addSql(`
      create table mail (
        kind text not null,
        asked text not null,
        created_at timestamptz(3) not null,
        due_at timestamptz(3) not null,
        attempts integer not null default 0,
        primary key (kind, asked),
        constraint mail_kind_check check (char_length(kind) <= 50),
        constraint mail_asked_check check (char_length(asked) >= 1 and char_length(asked) <= 254),
        constraint mail_attempts_check check (attempts >= 0)
      )`);
    this.addSql(`create index mail_due_at_index on mail (due_at)`);

    this.addSql(`
      create table mail_count (
        key varchar(255) primary key,
        points integer not null,
        expire bigint
      )`);
    this.addSql(`create index mail_count_expire_index on mail_count (expire)`);

    this.addSql(`
      create table registration (
        email text primary key,
        token_hash bytea not null constraint registration_token_hash_unique unique,
        expires_at timestamptz(3) not null,
        constraint registration_token_hash_check check (octet_length(token_hash) = 32)
      )`);
    this.addSql(`create index registration_expires_at_index on registration (expires_at)`);

    this.addSql(`
      create table password_reset (
        user_pk integer primary key constraint password_reset_user_pk_foreign references "user" (pk) on delete cascade,
        token_hash bytea not null constraint password_reset_token_hash_unique unique,
        expires_at timestamptz(3) not null,
        constraint password_reset_token_hash_check check (octet_length(token_hash) = 32)
      )`);
    this.addSql(`create index password_reset_expires_at_index on password_reset (expires_at)`);

    this.addSql(`
      create table api_key (
        kid uuid primary key,
        user_pk integer not null constraint api_key_user_pk_foreign references "user" (pk) on delete cascade,
        name text not null,
        key_hash bytea not null constraint api_key_key_hash_unique unique,
        scopes text[] not null,
        created_at timestamptz(3) not null,
        expires_at timestamptz(3) not null,
        last_used_at timestamptz(3),
        constraint api_key_name_check check (char_length(name) >= 1 and char_length(name) <= 100 and name !~ '[[:cntrl:]]'),
        constraint api_key_key_hash_check check (octet_length(key_hash) = 32),
        constraint api_key_times_check check (created_at < expires_at)
      )`);
    this.addSql(
      `create index api_key_user_pk_created_at_index on api_key (user_pk, created_at, kid)`,
    );
    this.addSql(`create index api_key_expires_at_index on api_key (expires_at)`);
  }

  override down(): void {
    for (const table of ['api_key', 'password_reset', 'registration', 'mail_count', 'mail'])
      this.addSql(`drop table ${table}`);
    this.addSql(`drop index user_email_index`);
  }
}
