import { Migration } from '@mikro-orm/migrations';

/**
 * Time and random salt of a refresh token's rotation: a client whose response was lost gets the
 * same credentials again.
 */
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
