import { createHash } from 'node:crypto';
import bcrypt from 'bcrypt';
import { Client } from 'pg';
import options from '../mikro-orm.config.ts';
import { openDatabase } from '../src/database/database.ts';
import { readConfig } from '../src/core/config.ts';
import { openLog } from '../src/telemetry/log.ts';
import { SECRET } from './secret.ts';

/** The measured sizes, in products. `BENCH_PRODUCTS` replaces the usual one, to try the benchmark. */
export const SIZES = {
  '1k': 1_000,
  '1m': Number(process.env['BENCH_PRODUCTS'] ?? 1_000_000),
  '10m': 10_000_000,
};

export type Size = keyof typeof SIZES;

/**
 * Users in every database; each has one open session, five items and five published blog entries.
 */
export const USERS = 1_000;
const EACH = 5;
/** The password of every user. */
export const PASSWORD = 'only-for-the-benchmark';
const BCRYPT_COST = 10;

/** The session key of the user of this number, from 1. */
export function sessionKeyOf(user: number): string {
  return createHash('sha256').update(`bench session ${user}`).digest('base64url');
}

/** The `sid` of that session. */
export function sidOf(user: number): string {
  return `00000000-0000-4000-8000-${String(user).padStart(12, '0')}`;
}

/** Creates the database of this size if it is missing, updates it, and returns its URL. */
export async function prepare(server: string, size: Size): Promise<string> {
  const url = await makeDatabase(server, `shopfront_bench_${SIZES[size]}`);
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ filled: boolean }>(
      `select to_regclass('bench_filled') is not null as filled`,
    );
    if (!rows[0]?.filled) await fill(client, SIZES[size]);
    await openSessions(client);
    await tidy(client, size);
  } finally {
    await client.end();
  }
  return url;
}

/**
 * Creates a database of this name if it is missing, applies missing migrations, and returns its
 * URL.
 */
export async function makeDatabase(server: string, name: string): Promise<string> {
  await create(server, name);
  const url = Object.assign(new URL(server), { pathname: `/${name}` }).href;
  await migrate(url);
  return url;
}

/** Deletes data that a benchmark added. */
export async function tidy(client: Client, size: Size): Promise<void> {
  const { rowCount } = await client.query(`delete from product where pk > ${SIZES[size]}`);
  if (rowCount !== 0) await client.query('vacuum (analyze) product, product_row_count');
}

async function create(server: string, name: string): Promise<void> {
  const client = new Client({ connectionString: server });
  await client.connect();
  const { rows } = await client.query('select from pg_database where datname = $1', [name]);
  if (rows.length === 0) await client.query(`create database ${name}`);
  await client.end();
}

async function migrate(url: string): Promise<void> {
  const config = readConfig(
    { DATABASE_URL: url, SIGNING_SECRET: SECRET, REQUEST_TIMEOUT_MS: '600000' },
    () => undefined,
  );
  const database = await openDatabase(config, options, openLog({ logLevel: 'silent' }));
  await database.migrate();
  await database.close();
}

/** Fills an empty database. Creates indexes after the rows, which takes a third of the time. */
export async function fill(client: Client, products: number): Promise<void> {
  const { rows: indexes } = await client.query<{ name: string; definition: string }>(`
    select indexname as name, indexdef as definition from pg_indexes
    where tablename = 'product' and indexname not in (select conname from pg_constraint)`);
  await client.query(`truncate product, "user" restart identity cascade`);
  for (const { name } of indexes) await client.query(`drop index ${name}`);
  await client.query(`set maintenance_work_mem = '512MB'`);
  await client.query(
    `
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Product ' || n || ' ' || (array['Oak', 'Steel', 'Glass', 'Linen'])[1 + n % 4], digits || (10 - (
        select sum(substr(digits, place, 1)::int * case when place % 2 = 0 then 3 else 1 end) from generate_series(1, 12) place) % 10) % 10,
      round((n * 7919::bigint % 100000) / 100.0, 2), timestamptz '2026-01-01' + n * interval '1 second', timestamptz '2026-01-01' + n * interval '1 second'
    from generate_series(1, $1::int) as n, lateral (select '400' || lpad(n::text, 9, '0') as digits) made`,
    [products],
  );
  for (const { definition } of indexes) await client.query(definition);
  await client.query(`
    insert into "user" (username, email, full_name, scopes)
    select 'user' || n, 'user' || n || '@shop.example', 'User ' || n, '{products:write,blog:write}' from generate_series(1, ${USERS}) as n`);
  await client.query(`
    insert into item (owner_pk, item_id, created_at)
    select pk, 'Item ' || n, now() from "user", generate_series(1, ${EACH}) as n`);
  await client.query(`
    insert into blog_entry (title, body, published, creator_pk, created_at, updated_at)
    select 'Entry ' || n, repeat('Text of the entry. ', 10), true, pk, now() + n * interval '1 second', now() + n * interval '1 second'
    from "user", generate_series(1, ${EACH}) as n`);
  await client.query('create table bench_filled ()');
  await client.query('vacuum analyze');
}

async function openSessions(client: Client): Promise<void> {
  const users = Array.from({ length: USERS }, (_, index) => index + 1);
  const hashes = users.map((user) => createHash('sha256').update(sessionKeyOf(user)).digest());
  await client.query('delete from session');
  await client.query('update "user" set hashed_password = $1', [
    await bcrypt.hash(PASSWORD, BCRYPT_COST),
  ]);
  await client.query(
    `insert into session (sid, user_pk, key_hash, created_at, last_seen_at, expires_at)
     select sid, pk, hash, now(), now(), now() + interval '14 days'
     from unnest($1::uuid[], $2::int[], $3::bytea[]) as made (sid, pk, hash)`,
    [users.map(sidOf), users, hashes],
  );
}
