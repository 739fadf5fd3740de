import { Migration } from '@mikro-orm/migrations';

const scopesAre = (scopes: readonly string[]) =>
  `alter table "user" drop constraint user_scopes_check,
    add constraint user_scopes_check check (scopes <@ array[${scopes.map((scope) => `'${scope}'`).join(', ')}]::text[])`;

/** The audit trail, and the scope that reads it. */
export class Migration20261129000000_audit extends Migration {
  override up(): void {
    this.addSql(scopesAre(['products:write', 'users:read', 'blog:write', 'audit:read']));
    this.addSql(`
      create table audit_entry (
        pk bigserial primary key,
        at timestamptz(3) not null,
        actor_kind text not null,
        actor_name text,
        actor_pk integer,
        api_key uuid,
        request_id text,
        network text,
        action text not null,
        subject_kind text,
        subject_key text,
        subject_name text,
        changes jsonb not null,
        constraint audit_entry_action_check check (action ~ '^[a-z_]+\\.[a-z_]+$'),
        constraint audit_entry_actor_kind_check check (actor_kind ~ '^(user|api_key|operator|anonymous)$'),
        constraint audit_entry_actor_name_check check ((actor_name is null) = (actor_kind = 'anonymous')),
        constraint audit_entry_subject_kind_check check (subject_kind ~ '^(user|product|api_key)$'),
        constraint audit_entry_subject_key_check check ((subject_key is null) = (subject_kind is null)),
        constraint audit_entry_subject_name_check check ((subject_name is null) = (subject_kind is null))
      )`);
    this.addSql(`create index audit_entry_at_pk_index on audit_entry (at, pk)`);
    this.addSql(
      `create index audit_entry_actor_name_at_pk_index on audit_entry (actor_name, at, pk)`,
    );
    this.addSql(`create index audit_entry_action_at_pk_index on audit_entry (action, at, pk)`);
    this.addSql(
      `create index audit_entry_subject_at_pk_index on audit_entry (subject_kind, subject_key, at, pk)`,
    );

    // A statement trigger rejects statements that match no row, too. The setting applies to one
    // transaction.
    this.addSql(`
      create function audit_entry_append_only() returns trigger language plpgsql as $$
      begin
        if tg_op <> 'DELETE' or current_setting('shopfront.audit_prune', true) is distinct from 'on' then
          raise exception 'The audit trail is append-only: % is refused', tg_op
            using errcode = 'insufficient_privilege', hint = 'What is old is deleted by the command "audit prune".';
        end if;
        return null;
      end $$`);
    this.addSql(`
      create trigger audit_entry_append_only before update or delete or truncate on audit_entry
      for each statement execute function audit_entry_append_only()`);
  }

  override down(): void {
    this.addSql(`drop table audit_entry`);
    this.addSql(`drop function audit_entry_append_only()`);
    this.addSql(`update "user" set scopes = array_remove(scopes, 'audit:read')`);
    this.addSql(scopesAre(['products:write', 'users:read', 'blog:write']));
  }
}
