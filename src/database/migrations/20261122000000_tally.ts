import { Migration } from '@mikro-orm/migrations';

/** The catalogue's rows counted as they come and go, by ranges of primary keys (kit/tally.ts). */
export class Migration20261122000000_tally extends Migration {
  override up(): void {
    this.addSql(`
      create table product_tally (
        pk bigserial primary key,
        level smallint not null,
        bucket integer not null,
        rows integer not null,
        writes bigint not null
      ) with (fillfactor = 50)`);
    this.addSql(`create index product_tally_level_bucket_index on product_tally (level, bucket)`);

    // A range may have several rows: who finds them all locked by others adds one, so that no writer ever waits for another here.
    this.addSql(`
      create function product_tally_add(at_level smallint, at_bucket integer, delta integer) returns void language plpgsql as $$
      begin
        update product_tally set rows = rows + delta, writes = writes + 1 where pk = (
          select pk from product_tally where level = at_level and bucket = at_bucket limit 1 for update skip locked);
        if not found then
          insert into product_tally (level, bucket, rows, writes) values (at_level, at_bucket, delta, 1);
        end if;
      end $$`);
    // The first primary key is 1.
    this.addSql(`
      create function product_tally_insert() returns trigger language plpgsql as $$
      begin
        perform product_tally_add(1::smallint, bucket, rows) from (
          select (pk - 1) >> 8 as bucket, count(*)::integer as rows from added group by 1) as changed;
        perform product_tally_add(2::smallint, bucket, rows) from (
          select (pk - 1) >> 16 as bucket, count(*)::integer as rows from added group by 1) as changed;
        return null;
      end $$`);
    this.addSql(`
      create function product_tally_delete() returns trigger language plpgsql as $$
      begin
        perform product_tally_add(1::smallint, bucket, -rows) from (
          select (pk - 1) >> 8 as bucket, count(*)::integer as rows from removed group by 1) as changed;
        perform product_tally_add(2::smallint, bucket, -rows) from (
          select (pk - 1) >> 16 as bucket, count(*)::integer as rows from removed group by 1) as changed;
        return null;
      end $$`);
    // A change of the primary key is a removal and an addition; any other leaves the rows as many as they were.
    this.addSql(`
      create function product_tally_update() returns trigger language plpgsql as $$
      begin
        perform product_tally_add(1::smallint, bucket, rows) from (
          select bucket, sum(delta)::integer as rows from (
            select (pk - 1) >> 8 as bucket, 1 as delta from added union all select (pk - 1) >> 8, -1 from removed) as moved
          group by 1 having sum(delta) <> 0) as changed;
        perform product_tally_add(2::smallint, bucket, rows) from (
          select bucket, sum(delta)::integer as rows from (
            select (pk - 1) >> 16 as bucket, 1 as delta from added union all select (pk - 1) >> 16, -1 from removed) as moved
          group by 1) as changed;
        return null;
      end $$`);
    this.addSql(`
      create function product_tally_truncate() returns trigger language plpgsql as $$
      declare
        written bigint;
      begin
        select coalesce(sum(writes), 0) into written from product_tally where level = 2;
        delete from product_tally;
        insert into product_tally (level, bucket, rows, writes) values (2, 0, 0, written + 1);
        return null;
      end $$`);

    this.addSql(`lock table product in share row exclusive mode`);
    this.addSql(`
      insert into product_tally (level, bucket, rows, writes)
      select 1, (pk - 1) >> 8, count(*), 1 from product group by 2`);
    this.addSql(`
      insert into product_tally (level, bucket, rows, writes)
      select 2, bucket >> 8, sum(rows), 1 from product_tally where level = 1 group by 2`);
    this.addSql(`
      create trigger product_tally_insert after insert on product
      referencing new table as added for each statement execute function product_tally_insert()`);
    this.addSql(`
      create trigger product_tally_delete after delete on product
      referencing old table as removed for each statement execute function product_tally_delete()`);
    this.addSql(`
      create trigger product_tally_update after update on product
      referencing old table as removed new table as added for each statement execute function product_tally_update()`);
    this.addSql(`create trigger product_tally_truncate after truncate on product for each statement execute function product_tally_truncate()`);
  }

  override down(): void {
    for (const event of ['insert', 'delete', 'update', 'truncate']) {
      this.addSql(`drop trigger product_tally_${event} on product`);
      this.addSql(`drop function product_tally_${event}()`);
    }
    this.addSql(`drop function product_tally_add(smallint, integer, integer)`);
    this.addSql(`drop table product_tally`);
  }
}
