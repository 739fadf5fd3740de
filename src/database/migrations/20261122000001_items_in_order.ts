import { Migration } from '@mikro-orm/migrations';

/** Index of an owner's items in list order, so that a page reads only its own items. */
export class Migration20261122000001_items_in_order extends Migration {
  override up(): void {
    this.addSql(`create index item_owner_pk_pk_index on item (owner_pk, pk)`);
  }

  override down(): void {
    this.addSql(`drop index item_owner_pk_pk_index`);
  }
}
