import { Migration } from '@mikro-orm/migrations';

/** REST usage: calls by endpoint, client and subject (src/features/rest-usage). */
export class Migration20261123000000_legacy_call extends Migration {
  override up(): void {
    // The same rows are updated every few seconds: free space on the page keeps the new version
    // next to the old.
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
