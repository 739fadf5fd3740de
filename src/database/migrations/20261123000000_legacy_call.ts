import { Migration } from '@mikro-orm/migrations';

/** Who calls the REST rows, since when and how often (src/legacy). */
export class Migration20261123000000_legacy_call extends Migration {
  override up(): void {
    // The same rows are written to every few seconds: room on their page keeps the new version beside the old.
    this.addSql(`
      create table legacy_call (
        "row" text not null,
        client text not null,
        subject text not null,
        first_at timestamptz(3) not null,
        last_at timestamptz(3) not null,
        calls bigint not null,
        primary key ("row", client, subject),
        constraint legacy_call_client_check check (char_length(client) <= 255),
        constraint legacy_call_calls_check check (calls > 0 and first_at <= last_at)
      ) with (fillfactor = 50)`);
  }

  override down(): void {
    this.addSql(`drop table legacy_call`);
  }
}
