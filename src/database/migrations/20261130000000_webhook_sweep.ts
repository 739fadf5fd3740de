import { Migration } from '@mikro-orm/migrations';

/** Deliveries that were made go long before those that were given up: each has to be found without the other. */
export class Migration20261130000000_webhook_sweep extends Migration {
  override up(): void {
    this.addSql(`create index webhook_delivery_status_ended_at_index on webhook_delivery (status, ended_at)`);
    this.addSql(`drop index webhook_delivery_ended_at_index`);
  }

  override down(): void {
    this.addSql(`create index webhook_delivery_ended_at_index on webhook_delivery (ended_at)`);
    this.addSql(`drop index webhook_delivery_status_ended_at_index`);
  }
}
