import { Migration } from '@mikro-orm/migrations';

/** Webhooks, their offset in the change log, and their deliveries (src/features/webhooks). */
export class Migration20261128000000_webhook extends Migration {
  override up(): void {
    this.addSql(`
      create table webhook (
        pk serial primary key,
        wid uuid not null constraint webhook_wid_unique unique,
        url text not null,
        description text,
        events text[] not null,
        secret text not null,
        previous_secret text,
        previous_until timestamptz(3),
        is_enabled boolean not null default true,
        since pg_snapshot not null default pg_current_snapshot(),
        created_at timestamptz(3) not null,
        succeeded_at timestamptz(3),
        failed_at timestamptz(3),
        constraint webhook_url_check check (char_length(url) <= 2000 and url ~ '^https?://'),
        constraint webhook_description_check
          check (char_length(description) >= 1 and char_length(description) <= 200 and description !~ '[[:cntrl:]]'),
        constraint webhook_events_check check (
          cardinality(events) >= 1 and events <@ array['product.created', 'product.changed', 'product.deleted', 'products.changed', 'session.ended']::text[])
      )`);

    this.addSql(`
      create table webhook_place (
        is_only boolean primary key default true,
        tx xid8 not null,
        pk bigint not null,
        constraint webhook_place_is_only_check check (is_only)
      )`);
    this.addSql(`insert into webhook_place (tx, pk) values ('0', 0)`);

    this.addSql(`
      create table webhook_delivery (
        pk bigserial primary key,
        mid text not null constraint webhook_delivery_mid_unique unique,
        webhook_pk integer not null constraint webhook_delivery_webhook_pk_foreign references webhook (pk) on delete cascade,
        kind text not null,
        at timestamptz(3) not null,
        subject text,
        state jsonb,
        status text not null default 'pending',
        attempts integer not null default 0,
        due_at timestamptz(3),
        reason text,
        ended_at timestamptz(3),
        constraint webhook_delivery_status_check check (status ~ '^(pending|delivered|dead)$'),
        constraint webhook_delivery_times_check check (num_nonnulls(due_at, ended_at) = 1),
        constraint webhook_delivery_attempts_check check (attempts >= 0)
      )`);
    this.addSql(
      `create index webhook_delivery_webhook_pk_due_at_index on webhook_delivery (webhook_pk, due_at)`,
    );
    this.addSql(`create index webhook_delivery_ended_at_index on webhook_delivery (ended_at)`);
  }

  override down(): void {
    for (const table of ['webhook_delivery', 'webhook_place', 'webhook'])
      this.addSql(`drop table ${table}`);
  }
}
