import { Migration } from '@mikro-orm/migrations';

/** The items of one owner in the order in which they are listed, so that a page of them is all that is read. */
export class Migration20261122000001_items_in_order extends Migration {
  override up(): void {
    this.addSql(`create index item_owner_pk_pk_index on item (owner_pk, pk)`);
  }

  override down(): void {
    this.addSql(`drop index item_owner_pk_pk_index`);
  }
}
