import { Migration } from '@mikro-orm/migrations';

/** Maximum number of products per statement that are logged one by one, not as one bulk change. */
const MANY = 1_000;

const STATE = (row: string) =>
  `jsonb_build_object('pk', ${row}.pk, 'name', ${row}.name, 'barcode', ${row}.barcode, 'price', ${row}.price::text,
    'createdAt', ${row}.created_at, 'updatedAt', ${row}.updated_at)`;

/**
 * Log of changes of products and sessions, written in the transaction of each change
 * (features/change-log/change-log.ts).
 */
export class Migration20261127000000_change extends Migration {
  override up(): void {
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
    this.noteProducts();
    this.noteSessions();
  }

  override down(): void {
    for (const event of ['insert', 'update', 'delete', 'truncate'])
      this.addSql(`drop trigger product_change_${event} on product`);
    for (const event of ['insert', 'update', 'delete', 'truncate'])
      this.addSql(`drop function product_change_${event}()`);
    for (const event of ['update', 'delete'])
      this.addSql(`drop trigger session_change_${event} on session`);
    this.addSql(`drop function session_change()`);
    this.addSql(`drop table change`);
  }

  // Triggers log every writer, `COPY` and psql included. They run once per statement, so that a
  // million rows in one statement are not a million changes.
  private noteProducts(): void {
    const noting = (rows: string, change: string) => `
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
      insert: noting(
        'added',
        `select 'product.created', added.pk, ${STATE('added')} from added order by added.pk`,
      ),
      delete: noting(
        'removed',
        `select 'product.deleted', removed.pk, ${STATE('removed')} from removed order by removed.pk`,
      ),
      // An unchanged row is no change. A changed primary key is a deletion and a creation.
      update: noting(
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
  private noteSessions(): void {
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
}
