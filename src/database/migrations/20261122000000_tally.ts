import { Migration } from '@mikro-orm/migrations';

/**
 * Counts the catalogue's rows on each write, by ranges of primary keys (pagination/row-counts.ts).
 */
export class Migration20261122000000_tally extends Migration {
  override up(): void {
    for (const table of ['product_tally', 'product_tally_fine']) {
      // Rows are updated often: free space on the page keeps the new version next to the old, and a
      // frequent vacuum removes dead versions.
      this.addSql(`
        create table ${table} (
          pk bigserial primary key,
          bucket integer not null,
          rows integer not null,
          writes bigint not null
        ) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`);
      this.addSql(`create index ${table}_bucket_index on ${table} (bucket)`);
      // A range may have several rows: a writer that finds all of them locked adds one, so that no
      // writer waits for another.
      this.addSql(`
        create function ${table}_add(at_bucket integer, delta integer) returns void language plpgsql as $$
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
      perform product_tally_fine_add(bucket, ${sign}rows) from (
        select (pk - 1) >> 8 as bucket, count(*)::integer as rows from ${rows} group by 1) as changed;
      perform product_tally_add(bucket, ${sign}rows) from (
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
        perform product_tally_fine_add(bucket, rows) from (${moved(8)}) as changed where rows <> 0;
        perform product_tally_add(bucket, rows) from (${moved(16)}) as changed;`,
    };
    for (const [event, body] of Object.entries(bodies)) {
      this.addSql(`
        create function product_tally_${event}() returns trigger language plpgsql as $$
        begin
          ${body}
          return null;
        end $$`);
    }
    this.addSql(`
      create function product_tally_truncate() returns trigger language plpgsql as $$
      declare
        written bigint;
      begin
        select coalesce(sum(writes), 0) into written from product_tally;
        delete from product_tally;
        delete from product_tally_fine;
        insert into product_tally (bucket, rows, writes) values (0, 0, written + 1);
        return null;
      end $$`);

    this.addSql(`lock table product in share row exclusive mode`);
    this.addSql(`
      insert into product_tally_fine (bucket, rows, writes)
      select (pk - 1) >> 8, count(*), 1 from product group by 1`);
    this.addSql(`
      insert into product_tally (bucket, rows, writes)
      select bucket >> 8, sum(rows), 1 from product_tally_fine group by 1`);
    this.addSql(`
      create trigger product_tally_insert after insert on product
      referencing new table as added for each statement execute function product_tally_insert()`);
    this.addSql(`
      create trigger product_tally_delete after delete on product
      referencing old table as removed for each statement execute function product_tally_delete()`);
    this.addSql(`
      create trigger product_tally_update after update on product
      referencing old table as removed new table as added for each statement execute function product_tally_update()`);
    this.addSql(
      `create trigger product_tally_truncate after truncate on product for each statement execute function product_tally_truncate()`,
    );
  }

  override down(): void {
    for (const event of ['insert', 'delete', 'update', 'truncate']) {
      this.addSql(`drop trigger product_tally_${event} on product`);
      this.addSql(`drop function product_tally_${event}()`);
    }
    for (const table of ['product_tally', 'product_tally_fine']) {
      this.addSql(`drop function ${table}_add(integer, integer)`);
      this.addSql(`drop table ${table}`);
    }
  }
}
