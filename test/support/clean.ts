/** The app's tables, each before those that it references. */
const TABLES = [
  'session',
  'login_failure',
  'api_key',
  'mail_count',
  'registration',
  'password_reset',
  'product',
  'product_word',
  'item',
  'blog_entry',
  'idempotency_key',
  'rest_call',
  'pgboss.job',
  'webhook',
  '"user"',
];
const SEQUENCES = [
  'user_pk_seq',
  'product_pk_seq',
  'item_pk_seq',
  'blog_entry_pk_seq',
  'audit_entry_pk_seq',
];
/**
 * Maximum size in bytes of tables that are emptied by DELETE, which is a hundred times faster for
 * small ones.
 */
const LARGE = 1024 * 1024;

/** Deletes all data of a test. */
export const CLEAN = 'select test.clean()';

/**
 * Creates the function behind `CLEAN`, in its own schema. PostgreSQL plans its statements once per
 * connection, and empty tables cost no statement.
 */
export const MAKE_CLEAN = `
  create schema if not exists test;
  create or replace function test.clean() returns void language plpgsql as $$
  begin
    if (select sum(pg_relation_size(name::regclass)) > ${LARGE} from unnest(array['${TABLES.join("','")}']) name) then
      truncate ${TABLES.join()} restart identity cascade;
    else
      ${TABLES.map((table) => `if exists (select from ${table}) then delete from ${table}; end if;`).join('\n      ')}
    end if;
    delete from pgboss.queue where name like 'webhook/%';
    ${SEQUENCES.map((name) => `if (select is_called from ${name}) then perform setval('${name}', 1, false); end if;`).join('\n    ')}
    -- The deletions were recorded in the audit trail and the change log. The trail requires this
    -- setting for its deletion.
    perform set_config('shopfront.audit_prune', 'on', true);
    if exists (select from audit_entry) then delete from audit_entry; end if;
    if exists (select from change) then delete from change; end if;
  end $$`;
