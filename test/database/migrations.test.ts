import { expect, test } from '../support/jest.ts';
import { Migration } from '@mikro-orm/migrations';
import pg from 'pg';
import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase, type Database } from '../../src/database/database.ts';
import { jobsOf } from '../../src/database/jobs.ts';
import { migrations as ours } from '../../src/database/migrations/migrations.ts';
import { makeDatabase } from '../support/databases.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();

test('the migrations create the tables of the entities', async () => {
  const differences = await shop.database.orm.schema.getUpdateSchemaSQL({
    safe: false,
    dropTables: false,
  });
  // Triggers are only in the migrations.
  expect(differences.match(/^(?!set names|drop (trigger|function)).+/gm)).toBeNull();
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
      const migrating = expect(database.migrate()).rejects.toThrow('lock timeout');
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

// If it fails: add a migration, which makes `migrate` update the tables of jobs.
test('the tables of jobs are those of the library', async () => {
  const library = await jobsOf(shop.context());
  expect([await library.schemaVersion(), (await library.detectSchemaDrift()).ok]).toEqual([
    46,
    true,
  ]);
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

test('deleting a user deletes everything of the user', async () => {
  await shop.makeUser({ username: 'ada' });
  await shop.sql(`
    insert into session (sid, user_pk, key_hash, created_at, last_seen_at, expires_at)
    values (gen_random_uuid(), 1, '', now(), now(), now())`);
  await shop.sql(`insert into item (owner_pk, item_id, created_at) values (1, 'lamp', now())`);
  await shop.sql(
    `insert into blog_entry (title, body, creator_pk, created_at, updated_at) values ('Title', 'Text', 1, now(), now())`,
  );
  await shop.sql(`delete from "user"`);
  expect(
    await shop.sql(
      'select sid::text from session union all select item_id from item union all select title from blog_entry',
    ),
  ).toEqual([]);
});
