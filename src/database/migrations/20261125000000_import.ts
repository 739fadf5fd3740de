import { Migration } from '@mikro-orm/migrations';

/** Completed batches of interrupted imports (src/features/products/files/file-import.ts). */
export class Migration20261125000000_import extends Migration {
  override up(): void {
    this.addSql(`
      create table product_import_batch (
        hash bytea primary key,
        imported_at timestamptz(3) not null,
        constraint product_import_batch_hash_check check (octet_length(hash) = 32)
      )`);
    this.addSql(
      `create index product_import_batch_imported_at_index on product_import_batch (imported_at)`,
    );
  }

  override down(): void {
    this.addSql(`drop table product_import_batch`);
  }
}
