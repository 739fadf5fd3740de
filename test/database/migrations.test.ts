import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { Migration } from '@mikro-orm/migrations';
import pg from 'pg';
import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase, type Database } from '../../src/database/database.ts';
import { JOBS_VERSION, jobsOf } from '../../src/database/jobs.ts';
import { migrations as ours } from '../../src/database/migrations/migrations.ts';
import { makeDatabase } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();

test('the migrations create the schema of the entities', async () => {
  const differences = await shop.database.orm.schema.getUpdateSchemaSQL({ safe: false });
  expect(differences).not.toMatch(/table "(?!migration")/);
});

test('a migration has no time limit, and is not pending once it is applied', async () => {
  class Slow extends Migration {
    override up(): void {
      this.addSql(
        `create table limit_of_slow as select current_setting('statement_timeout') as value`,
      );
    }
  }
  const made = await makeDatabase(`shopfront_slow_${process.pid}`);
  const migrationsList = [
    ...(options.migrations?.migrationsList ?? []),
    { name: 'slow', class: Slow },
  ];
  const migrations = { ...options.migrations, migrationsList };
  const config = { ...shop.config, databaseUrl: made.env.DATABASE_URL };
  const database = await openDatabase(
    config,
    { ...options, migrations },
    pino({ level: 'silent' }),
    true,
  );
  try {
    const limit = await database.fork().execute('show statement_timeout');
    expect(await database.migrate()).toEqual(['slow']);
    expect(await database.fork().execute('select value from limit_of_slow')).toEqual([
      { value: '0' },
    ]);
    expect(await database.migrate()).toEqual([]);
    expect(await database.fork().execute('show statement_timeout')).toEqual(limit);
  } finally {
    await database.close();
    await made.drop();
  }
});

test('a migration gives up after 2 s if a transaction holds its table, so that writers go on', async () => {
  class Widen extends Migration {
    override up(): void {
      this.addSql(`alter table product add column note text`);
    }
  }
  const made = await makeDatabase(`shopfront_locked_${process.pid}`);
  const migrationsList = [...ours, { name: 'widen', class: Widen }];
  const migrations = { ...options.migrations, migrationsList };
  const config = { ...shop.config, databaseUrl: made.env.DATABASE_URL };
  const log = pino({ level: 'silent' });
  const database = await openDatabase(config, { ...options, migrations }, log, true);
  try {
    const insert = `insert into product (name, barcode, price, created_at, updated_at) values ('Ink', '5901234123457', 1, now(), now())`;
    await database.fork().transactional(async (reader) => {
      await reader.execute('select from product');
      const migrating = expect(database.migrate()).rejects.toThrow(
        'Another transaction holds a lock that a migration needs, for more than 2s. Nothing was changed.',
      );
      const waits = `select from pg_locks where relation = 'product'::regclass and not granted`;
      await until(async () => (await database.fork().execute(waits)).length > 0, 'its lock');
      // While the reader is still in its transaction.
      await database.fork().execute(insert);
      await migrating;
    });
    expect(await database.migrate()).toEqual(['widen']);
    expect(await database.fork().execute('select note from product')).toEqual([{ note: null }]);
  } finally {
    await database.close();
    await made.drop();
  }
});

test('a database with migrations of another version is rejected before anything is written', async () => {
  const made = await makeDatabase(`shopfront_other_${process.pid}`);
  const config = { ...shop.config, databaseUrl: made.env.DATABASE_URL };
  const database = await openDatabase(config, options, pino({ level: 'silent' }), true);
  try {
    await database
      .fork()
      .execute(
        `update migration set name = '20261121000000_initial' where name = '20261128000000_initial'`,
      );
    await expect(database.migrate()).rejects.toThrow(
      'The database is of another version, with the migration 20261121000000_initial',
    );
    expect(await database.fork().execute('select name from migration order by id')).toEqual([
      { name: '20261121000000_initial' },
      ...ours.slice(1).map(({ name }) => ({ name })),
    ]);
  } finally {
    await database.close();
    await made.drop();
  }
});

test('the tables of jobs are those of the library, and a database without them is rejected', async () => {
  const library = await jobsOf(shop.context());
  expect([await library.schemaVersion(), (await library.detectSchemaDrift()).ok]).toEqual([
    JOBS_VERSION,
    true,
  ]);
  const made = await makeDatabase(`shopfront_jobs_${process.pid}`);
  const config = { ...shop.config, databaseUrl: made.env.DATABASE_URL };
  const database = await openDatabase(config, options, pino({ level: 'silent' }), true);
  try {
    await database.rejectPendingMigrations();
    await database.fork().execute('update pgboss.version set version = 1');
    await expect(database.rejectPendingMigrations()).rejects.toThrow(
      'The database lacks tables of jobs. Apply with: npm run migrate',
    );
  } finally {
    await database.close();
    await made.drop();
  }
});

test('a role that may not create schemas migrates a database whose administrator created them', async () => {
  const name = `shopfront_rights_${process.pid}`;
  const made = await makeDatabase(name);
  const url = new URL(made.env.DATABASE_URL);
  const admin = new pg.Client({ connectionString: url.href });
  await admin.connect();
  url.username = name;
  url.password = 'secret';
  const config = { ...shop.config, databaseUrl: url.href };
  let database: Database | undefined;
  try {
    await admin.query(`
      create role ${name} login password 'secret';
      drop schema public, pgboss cascade;
      create schema public authorization ${name};
      create schema pgboss authorization ${name};
      create extension unaccent; create extension pg_trgm`);
    database = await openDatabase(config, options, pino({ level: 'silent' }), true);
    expect(await database.migrate()).toEqual(ours.map((migration) => migration.name));
    await expect(database.fork().execute('create schema other')).rejects.toThrow('permission');
  } finally {
    await database?.close();
    await admin.query(`drop owned by ${name} cascade; drop role ${name}`);
    await admin.end();
    await made.drop();
  }
});

describe('a CHECK enforces each rule of the domain', () => {
  beforeEach(async () => {
    await shop.makeUser({ username: 'ada' });
  });

  const user = (column: string, value: string) =>
    `insert into "user" (username, ${column}) values ('bea', ${value})`;
  const product = ({ name = `'Ink'`, barcode = `'5901234123457'`, price = '1' }) =>
    `insert into product (name, barcode, price, created_at, updated_at) values (${name}, ${barcode}, ${price}, now(), now())`;
  const session = (values: Record<string, string>) => {
    const all = {
      sid: `gen_random_uuid()`,
      user_pk: '1',
      key_hash: `decode(repeat('00', 32), 'hex')`,
      created_at: 'now()',
      last_seen_at: 'now()',
      expires_at: `now() + interval '1 day'`,
      ...values,
    };
    return `insert into session (${Object.keys(all).join(', ')}) values (${Object.values(all).join(', ')})`;
  };
  const item = (itemId: string) =>
    `insert into item (owner_pk, item_id, created_at) values (1, ${itemId}, now())`;
  const entry = (title: string, body: string) =>
    `insert into blog_entry (title, body, creator_pk, created_at, updated_at) values (${title}, ${body}, 1, now(), now())`;

  const calls = (client: string, first = 'now()', count = '1') =>
    `insert into rest_call values ('GET /blog', ${client}, '', ${first}, now(), ${count})`;

  const daily = (client: string, count = '1') =>
    `insert into rest_call_day values ('2027-01-31', 'GET /blog', ${client}, ${count})`;

  const audited = (values: Record<string, string>) => {
    const all = {
      at: 'now()',
      actor_kind: `'user'`,
      actor_name: `'ada'`,
      action: `'product.created'`,
      changes: `'[]'`,
      ...values,
    };
    return `insert into audit_entry (${Object.keys(all).join(', ')}) values (${Object.values(all).join(', ')})`;
  };
  const subject = { subject_kind: `'product'`, subject_key: `'1'`, subject_name: `'Ink'` };

  test.each([
    ['a user', user('disabled', 'true')],
    ['a product', product({})],
    ['a product at the highest price', product({ price: '9999999999.99' })],
    ['a session', session({})],
    ['an item', item(`'lamp'`)],
    ['calls', calls(`repeat('x', 255)`)],
    ['calls of a day', daily(`repeat('x', 255)`)],
    ['a blog entry', entry(`'Title'`, `E'two\\nlines'`)],
    ['an entry of the audit trail', audited(subject)],
  ])('a valid row is stored: %s', async (_name, statement) => {
    await expect(shop.sql(statement)).resolves.toEqual([]);
  });

  test.each([
    ['user_username_check', `insert into "user" (username) values ('')`],
    ['user_username_check', `insert into "user" (username) values (repeat('x', 151))`],
    ['user_username_check', `insert into "user" (username) values (E'a\\nb')`],
    ['user_username_unique', `insert into "user" (username) values ('ada')`],
    ['user_email_check', user('email', `'nonsense'`)],
    ['user_full_name_check', user('full_name', `''`)],
    ['user_scopes_check', user('scopes', `array['root']`)],
    ['product_name_check', product({ name: `''` })],
    ['product_name_check', product({ name: `' Ink'` })],
    ['product_name_check', product({ name: `repeat('x', 256)` })],
    ['product_name_check', product({ name: `E'a\\tb'` })],
    ['product_barcode_check', product({ barcode: `'5901234123456'` })],
    ['product_barcode_check', product({ barcode: `'590123412345'` })],
    ['product_barcode_check', product({ barcode: `'590123412345x'` })],
    ['product_price_check', product({ price: '-0.01' })],
    ['product_price_check', product({ price: '10000000000' })],
    ['product_price_check', product({ price: '0.005' })],
    ['product_price_check', product({ price: `'NaN'` })],
    ['product_price_check', product({ price: `'Infinity'` })],
    ['session_key_hash_check', session({ key_hash: `'\\x00'` })],
    ['session_times_check', session({ expires_at: 'now()' })],
    ['session_times_check', session({ last_seen_at: `now() - interval '1 day'` })],
    ['session_refresh_generation_check', session({ refresh_generation: '-1' })],
    ['session_user_agent_check', session({ user_agent: `repeat('x', 256)` })],
    ['session_user_pk_foreign', session({ user_pk: '2' })],
    ['item_item_id_check', item(`''`)],
    ['item_item_id_check', item(`E'a\\nb'`)],
    ['blog_entry_title_check', entry(`''`, `'Text'`)],
    ['blog_entry_title_check', entry(`repeat('x', 256)`, `'Text'`)],
    ['blog_entry_body_check', entry(`'Title'`, `''`)],
    ['blog_entry_body_check', entry(`'Title'`, `repeat('x', 50001)`)],
    ['rest_call_client_check', calls(`repeat('x', 256)`)],
    ['rest_call_calls_check', calls(`'x'`, 'now()', '0')],
    ['rest_call_calls_check', calls(`'x'`, `now() + interval '1 day'`)],
    ['rest_call_day_client_check', daily(`repeat('x', 256)`)],
    ['rest_call_day_calls_check', daily(`'x'`, '0')],
    ['audit_entry_action_check', audited({ action: `'Created'` })],
    ['audit_entry_actor_kind_check', audited({ actor_kind: `'users'` })],
    ['audit_entry_actor_name_check', audited({ actor_name: 'null' })],
    ['audit_entry_actor_name_check', audited({ actor_kind: `'anonymous'` })],
    ['audit_entry_subject_kind_check', audited({ ...subject, subject_kind: `'item'` })],
    ['audit_entry_subject_key_check', audited({ ...subject, subject_key: 'null' })],
    ['audit_entry_subject_name_check', audited({ ...subject, subject_name: 'null' })],
    [
      'idempotency_key_key_check',
      `insert into idempotency_key (caller, key, fingerprint, created_at) values ('x', '', decode(repeat('00', 32), 'hex'), now())`,
    ],
    [
      'idempotency_key_fingerprint_check',
      `insert into idempotency_key (caller, key, fingerprint, created_at) values ('x', 'k', '\\x00', now())`,
    ],
  ])('%s rejects %s', async (constraint, statement) => {
    await expect(shop.sql(statement)).rejects.toMatchObject({ constraint });
  });

  test('deleting a user deletes everything of the user', async () => {
    await shop.sql(session({}));
    await shop.sql(item(`'lamp'`));
    await shop.sql(entry(`'Title'`, `'Text'`));
    await shop.sql(`delete from "user"`);
    expect(
      await shop.sql(
        'select sid::text from session union all select item_id from item union all select title from blog_entry',
      ),
    ).toEqual([]);
  });
});
