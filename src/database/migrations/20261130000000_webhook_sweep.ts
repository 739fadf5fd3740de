import { Migration } from '@mikro-orm/migrations';

/** Finds successful deliveries, which are deleted long before failed ones, without the latter. */
export class Migration20261130000000_webhook_sweep extends Migration {
  override up(): void {
    this.addSql(
      `create index webhook_delivery_status_ended_at_index on webhook_delivery (status, ended_at)`,
    );
    this.addSql(`drop index webhook_delivery_ended_at_index`);
  }

  override down(): void {
    this.addSql(`create index webhook_delivery_ended_at_index on webhook_delivery (ended_at)`);
    this.addSql(`drop index webhook_delivery_status_ended_at_index`);
  }
}
