import bcrypt from 'bcrypt';
import type { EntityManager } from '@mikro-orm/postgresql';
import { diff, record } from './audit/audit.log.ts';
import { DomainError } from '../core/errors.ts';
import { osUserName } from '../core/os-user.ts';
import type { Scope } from '../core/scopes.ts';
import { execute, sql } from '../database/sql.ts';
import { checkDigit } from './products/check-digit.ts';

/** Users of the demo data with a password; the passwords are public. */
export const demoUsers: readonly {
  username: string;
  password: string;
  fullName: string;
  scopes: Scope[];
  disabled: boolean;
}[] = [
  {
    username: 'alice',
    password: 'alice-demo-1',
    fullName: 'Alice Archer',
    scopes: ['products:write', 'blog:write'],
    disabled: false,
  },
  { username: 'bob', password: 'bob-demo-1', fullName: 'Bob Baker', scopes: [], disabled: false },
  {
    username: 'admin',
    password: 'admin-demo-1',
    fullName: 'Ada Admin',
    scopes: ['products:write', 'users:read', 'blog:write', 'audit:read'],
    disabled: false,
  },
  { username: 'zoe', password: 'zoe-demo-1', fullName: 'Zoe Zander', scopes: [], disabled: true },
];

const OTHER_USERS = 120;
const PRODUCTS = 1_200;

/** Materials, each with its factor of the price. */
const MATERIALS = [
  { name: 'Oak', factor: 1.2 },
  { name: 'Steel', factor: 1 },
  { name: 'Linen', factor: 0.9 },
  { name: 'Copper', factor: 1.35 },
  { name: 'Bamboo', factor: 0.7 },
  { name: 'Glass', factor: 0.95 },
  { name: 'Wool', factor: 1.1 },
  { name: 'Cotton', factor: 0.75 },
  { name: 'Walnut', factor: 1.5 },
  { name: 'Slate', factor: 1.25 },
];

/** Things, each with its usual price. */
const THINGS = [
  { name: 'Table', price: 320 },
  { name: 'Chair', price: 95 },
  { name: 'Lamp', price: 70 },
  { name: 'Kettle', price: 42 },
  { name: 'Blanket', price: 60 },
  { name: 'Bowl', price: 18 },
  { name: 'Shelf', price: 140 },
  { name: 'Clock', price: 55 },
  { name: 'Vase', price: 28 },
  { name: 'Basket', price: 24 },
  { name: 'Mirror', price: 110 },
  { name: 'Tray', price: 21 },
];

/** Kinds of a thing, each with its factor of the price. */
const KINDS = [
  { name: 'Classic', factor: 1 },
  { name: 'Compact', factor: 0.8 },
  { name: 'Tall', factor: 1.15 },
  { name: 'Low', factor: 0.9 },
  { name: 'Light', factor: 0.85 },
  { name: 'Heavy', factor: 1.3 },
  { name: 'Round', factor: 1.05 },
  { name: 'Folding', factor: 1.1 },
  { name: 'Narrow', factor: 0.95 },
  { name: 'Wide', factor: 1.25 },
];

/** Demo users with items. */
const OWNERS = new Set(['alice', 'bob']);
const ITEMS = ['notebook', 'umbrella', 'bicycle', 'lantern', 'rucksack'];
const ENTRIES = [
  {
    author: 'admin',
    title: 'Opening day',
    body: 'From today, you find our catalogue here.',
    published: true,
  },
  {
    author: 'alice',
    title: 'How we choose our lamps',
    body: 'By the light that they give, and by the hand that made them.',
    published: true,
  },
  {
    author: 'alice',
    title: 'Notes for the spring catalogue',
    body: 'Not ready to be read.',
    published: false,
  },
];

/** Number of rows added, by table, and the users with a password among them. */
export interface SeededRows {
  users: number;
  /** Users of `demoUsers` that were added; their passwords are public. */
  usernames: string[];
  products: number;
  items: number;
  entries: number;
}

/**
 * Adds the demo data to an empty database; with `addToExisting`, to any. Existing rows do not
 * change, and existing users get no items or blog entries. Returns what was added. Throws CONFLICT
 * if the database has users or products and `addToExisting` is false.
 */
export async function seedDemo(
  em: EntityManager,
  bcryptCost: number,
  now: Date,
  addToExisting = false,
): Promise<SeededRows> {
  const hashes = await Promise.all(
    demoUsers.map(({ password }) => bcrypt.hash(password, bcryptCost)),
  );
  return em.transactional(async (tx) => {
    // Serializes concurrent calls, so that the second one sees the rows of the first.
    await execute(tx, sql`select pg_advisory_xact_lock(hashtext('shopfront demo data'))`);
    if (!addToExisting) await rejectIfFilled(tx);
    const usernames: string[] = [];
    for (const [index, { username, fullName, scopes, disabled }] of demoUsers.entries()) {
      const { affected } = await execute(
        tx,
        sql`
        insert into "user" (username, email, full_name, disabled, hashed_password, scopes)
        values (${username}, ${`${username}@shop.example`}, ${fullName}, ${disabled}, ${hashes[index]}, ${scopes}::text[])
        on conflict do nothing`,
      );
      if (affected > 0) usernames.push(username);
    }
    const otherUsers = await execute(
      tx,
      sql`
      insert into "user" (username, email, full_name)
      select 'customer' || lpad(n::text, 3, '0'), 'customer' || lpad(n::text, 3, '0') || '@shop.example', 'Customer ' || n
      from generate_series(1, ${OTHER_USERS}::int) as n on conflict do nothing`,
    );
    const products = [...Array(PRODUCTS).keys()].map(demoProduct);
    const { affected: added } = await execute(
      tx,
      sql`
      insert into product (name, barcode, price, created_at, updated_at)
      select name, barcode, price, ${now}, ${now}
      from unnest(${products.map(({ name }) => name)}::text[], ${products.map(({ barcode }) => barcode)}::text[], ${products.map(({ price }) => price)}::numeric[])
        as made (name, barcode, price)
      on conflict do nothing`,
    );
    const users = usernames.length + otherUsers.affected;
    const changes = diff({}, { users: String(users), products: String(added) });
    const operator = osUserName();
    if (users + added > 0)
      await record(
        { em: tx, now: () => now, requestId: 'seed', operator },
        'demo.seeded',
        undefined,
        changes,
      );
    let [items, entries] = [0, 0];
    for (const username of usernames.filter((name) => OWNERS.has(name))) {
      const { affected } = await execute(
        tx,
        sql`
        insert into item (owner_pk, item_id, created_at)
        select pk, item, ${now} from "user", unnest(${ITEMS}::text[]) as item where username = ${username}`,
      );
      items += affected;
    }
    for (const [index, { author, title, body, published }] of ENTRIES.entries()) {
      if (!usernames.includes(author)) continue;
      const at = new Date(now.getTime() + index);
      const { affected } = await execute(
        tx,
        sql`
        insert into blog_entry (title, body, published, creator_pk, created_at, updated_at)
        select ${title}, ${body}, ${published}, pk, ${at}, ${at} from "user" where username = ${author}`,
      );
      entries += affected;
    }
    return { users, usernames, products: added, items, entries };
  });
}

async function rejectIfFilled(em: EntityManager): Promise<void> {
  const { rows } = await execute(
    em,
    sql`select exists (select from "user") or exists (select from product) as filled`,
  );
  if (rows[0]?.['filled'] !== true) return;
  throw new DomainError(
    'CONFLICT',
    'The database already has users or products. Use --add-to-existing to add the demo data; the passwords of its users are public',
  );
}

function demoProduct(index: number): { name: string; barcode: string; price: string } {
  const kind = memberOf(KINDS, index);
  const material = memberOf(MATERIALS, index / KINDS.length);
  const thing = memberOf(THINGS, index / (KINDS.length * MATERIALS.length));
  const digits = `400638${String(index).padStart(6, '0')}`;
  return {
    name: `${kind.name} ${material.name} ${thing.name}`,
    barcode: digits + checkDigit(digits),
    price: (Math.round(thing.price * material.factor * kind.factor) - 0.05).toFixed(2),
  };
}

function memberOf<T>(list: readonly T[], index: number): T {
  return list[Math.floor(index) % list.length] as T;
}
