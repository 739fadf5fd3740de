import { Migration } from '@mikro-orm/migrations';

/** When a refresh token was rotated, and random bits of that: a client whose response was lost gets the same credentials once more. */
export class Migration20261201000000_refresh extends Migration {
  override up(): void {
    this.addSql(`
      alter table session
        add column refreshed_at timestamptz(3),
        add column refresh_salt bytea constraint session_refresh_salt_check check (octet_length(refresh_salt) = 32)`);
  }

  override down(): void {
    this.addSql(`alter table session drop column refreshed_at, drop column refresh_salt`);
  }
}
