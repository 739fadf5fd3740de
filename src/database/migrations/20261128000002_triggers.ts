import { Migration } from '@mikro-orm/migrations';

/** Maximum number of products per statement that are logged one by one, not as one bulk change. */
const MANY = 1_000;

/** The state of a product in the change log: its columns but for those generated from others. */
const stateOf = (row: string) => `to_jsonb(${row}) - '{name_key,words}'::text[]`;

// Start of a word before its first digit. Its length covers the longest word that is corrected: 24
// letters, and one inserted (features/products/search/spelling.ts).
const BEGINNING = `left(substring(word from '^[^0-9]*'), 25) collate "C"`;
const MIN_LETTERS = 4;

/** What the ORM does not describe: triggers, storage, and queues of jobs. */
export class Migration20261128000002_triggers extends Migration {
  override up(): void {
    this.rowCounts();
    this.products();
    this.sessions();
    this.webhooks();
    this.mails();
    this.auditTrail();
  }

  /** Number of products by ranges of 16,384 primary keys (pagination/row-counts.ts). */
  private rowCounts(): void {
    // A range may have several rows: a writer that finds all of them locked adds one, so that no
    // writer waits for another.
    this.addSql(`
      create function product_row_count_add(at_bucket bigint, delta integer) returns void language plpgsql as $$
      begin
        update product_row_count set rows = rows + delta, writes = writes + 1 where pk = (
          select pk from product_row_count where bucket = at_bucket limit 1 for update skip locked);
        if not found then
          insert into product_row_count (bucket, rows, writes) values (at_bucket, delta, 1);
        end if;
      end $$`);
  }

  /**
   * Row counts, words for corrections of a search, and the change log of products. The triggers log
   * every writer, `COPY` and psql included. They run once per statement, so that a million rows in
   * one statement are not a million changes.
   */
  private products(): void {
    this.afterProducts(
      'insert',
      'referencing new table as added',
      counted('select pk, 1 as n from added') +
        WORDS_ADDED +
        logged('added', `select 'product.created', pk, ${stateOf('added')} from added order by pk`),
    );
    this.afterProducts(
      'delete',
      'referencing old table as removed',
      counted('select pk, -1 as n from removed') +
        logged(
          'removed',
          `select 'product.deleted', pk, ${stateOf('removed')} from removed order by pk`,
        ),
    );
    // An unchanged row is no change. A changed primary key is a deletion and a creation.
    this.afterProducts(
      'update',
      'referencing old table as removed new table as added',
      counted('select pk, 1 as n from added union all select pk, -1 from removed') +
        WORDS_ADDED +
        logged(
          'added',
          `select
            case when removed.pk is null then 'product.created' when added.pk is null then 'product.deleted' else 'product.changed' end,
            coalesce(added.pk, removed.pk),
            case when added.pk is null then ${stateOf('removed')} else ${stateOf('added')} end
          from added full join removed on added.pk = removed.pk
          where added is distinct from removed order by 2`,
        ),
    );
    this.afterProducts(
      'truncate',
      '',
      `
      select coalesce(sum(writes), 0) into written from product_row_count;
      delete from product_row_count;
      insert into product_row_count (bucket, rows, writes) values (0, 0, written + 1);
      delete from product_word;
      insert into change (kind) values ('products.changed');`,
    );
  }

  private afterProducts(event: string, tables: string, statements: string): void {
    this.addSql(`
      create function product_${event}() returns trigger language plpgsql as $$
      declare
        written bigint;
      begin
        ${statements}
        return null;
      end $$`);
    this.addSql(
      `create trigger product_${event} after ${event} on product ${tables} for each statement execute function product_${event}()`,
    );
  }

  // An expired session has ended already; deleting it is no change.
  private sessions(): void {
    this.addSql(`
      create function session_change() returns trigger language plpgsql as $$
      begin
        if old.ended_at is null and old.expires_at > now() and (tg_op = 'DELETE' or new.ended_at is not null) then
          insert into change (kind, subject, state) values ('session.ended', old.sid, jsonb_build_object('userPk', old.user_pk));
        end if;
        return null;
      end $$`);
    this.addSql(`
      create trigger session_change after update of ended_at or delete on session
      for each row execute function session_change()`);
  }

  /** The trigger that adds each event to the queues of the webhooks that receive it. */
  private webhooks(): void {
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

  /**
   * The queue of mails, whose delays add up to about a day and which has one mail of each kind to an
   * addressee (singletonKey).
   */
  private mails(): void {
    this.addSql(`
      select pgboss.create_queue('mail', '{
        "policy": "exclusive", "retryLimit": 31, "retryDelay": 10, "retryBackoff": true, "retryDelayMax": 3600,
        "expireInSeconds": 300, "retentionSeconds": 93600, "deleteAfterSeconds": 86400}')`);
  }

  // A statement trigger rejects statements that match no row, too. The setting applies to one
  // transaction.
  private auditTrail(): void {
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
}

/** Adds the numbers of rows, by primary keys, which begin at 1. */
function counted(rows: string): string {
  return `
    perform product_row_count_add(bucket, delta) from (
      select (pk - 1) >> 14 as bucket, sum(n)::integer as delta from (${rows}) as changed group by 1) as changes;`;
}

// Two concurrent writers of a new word both add it, so that no writer waits for another.
const WORDS_ADDED = `
  insert into product_word (word)
  select distinct word from (select ${BEGINNING} as word from added, unnest(tsvector_to_array(words)) as word) as given
  where char_length(word) >= ${MIN_LETTERS} and not exists (select from product_word as known where known.word = given.word);`;

function logged(rows: string, changes: string): string {
  return `
    select count(*) into written from ${rows};
    if written > ${MANY} then
      insert into change (kind, state) values ('products.changed', jsonb_build_object('count', written));
    else
      insert into change (kind, subject, state) ${changes};
    end if;`;
}
