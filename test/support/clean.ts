/** The app's tables, each before those that its rows refer to. */
const TABLES = [
  'session',
  'login_failure',
  'api_key',
  'mail',
  'mail_count',
  'registration',
  'password_reset',
  'product',
  'product_word',
  'item',
  'blog_entry',
  'idempotency_key',
  'legacy_call',
  'product_import_batch',
  'webhook_delivery',
  'webhook',
  '"user"',
];
const SEQUENCES = ['user_pk_seq', 'product_pk_seq', 'item_pk_seq', 'blog_entry_pk_seq', 'audit_entry_pk_seq'];
/** Tables larger than this, in bytes, are truncated. Deleting the rows of smaller ones takes a hundredth of the time. */
const LARGE = 1024 * 1024;

/** Deletes what a test has stored. */
export const CLEAN = 'select test.clean()';

/**
 * Makes the function behind `CLEAN`, in a schema of its own. PostgreSQL plans its statements once a connection, and tables without
 * rows cost no statement.
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
    ${SEQUENCES.map((name) => `if (select is_called from ${name}) then perform setval('${name}', 1, false); end if;`).join('\n    ')}
    -- The deletions are in the audit trail and in the log of changes by now. The trail takes them only from who says so.
    perform set_config('shopfront.audit_prune', 'on', true);
    if exists (select from audit_entry) then delete from audit_entry; end if;
    if exists (select from change) then delete from change; end if;
  end $$`;
