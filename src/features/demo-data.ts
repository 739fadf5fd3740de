import bcrypt from 'bcrypt';
import type { EntityManager } from '@mikro-orm/postgresql';
import { diff, record } from './audit/audit.log.ts';
import { DomainError } from '../core/errors.ts';
import { osUserName } from '../core/os-user.ts';
import type { Scope } from '../core/scopes.ts';
import { execute, sql } from '../database/sql.ts';
import { checkDigit } from './products/ean13.ts';

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

const MATERIALS = [
  'Oak',
  'Steel',
  'Linen',
  'Copper',
  'Bamboo',
  'Glass',
  'Wool',
  'Cotton',
  'Walnut',
  'Slate',
];
const THINGS = [
  'Table',
  'Chair',
  'Lamp',
  'Kettle',
  'Blanket',
  'Bowl',
  'Shelf',
  'Clock',
  'Vase',
  'Basket',
  'Mirror',
  'Tray',
];
const KINDS = [
  'Classic',
  'Compact',
  'Tall',
  'Low',
  'Light',
  'Heavy',
  'Round',
  'Folding',
  'Narrow',
  'Wide',
];

/** Demo users with items and blog entries. */
const AUTHORS = new Set(['alice', 'bob']);
const ITEMS = ['notebook', 'umbrella', 'bicycle', 'lantern', 'rucksack'];
const ENTRIES = [
  { title: 'Opening day', body: 'The doors are open, both of them.', published: true },
  {
    title: 'How we choose our lamps',
    body: 'By the light that they give, and by the hand that made them.',
    published: true,
  },
  { title: 'Notes for the spring catalogue', body: 'Not ready to be read.', published: false },
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
    for (const username of usernames.filter((name) => AUTHORS.has(name))) {
      const { affected } = await execute(
        tx,
        sql`
        insert into item (owner_pk, item_id, created_at)
        select pk, item, ${now} from "user", unnest(${ITEMS}::text[]) as item where username = ${username}`,
      );
      items += affected;
      for (const [index, { title, body, published }] of ENTRIES.entries()) {
        const at = new Date(now.getTime() + index);
        const written = await execute(
          tx,
          sql`
          insert into blog_entry (title, body, published, creator_pk, created_at, updated_at)
          select ${title}, ${body}, ${published}, pk, ${at}, ${at} from "user" where username = ${username}`,
        );
        entries += written.affected;
      }
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
  const kind = KINDS[index % KINDS.length];
  const material = MATERIALS[Math.floor(index / KINDS.length) % MATERIALS.length];
  const thing = THINGS[Math.floor(index / (KINDS.length * MATERIALS.length)) % THINGS.length];
  const digits = `400638${String(index).padStart(6, '0')}`;
  const cents = 199 + ((index * 7_919) % 99_801);
  return {
    name: `${kind} ${material} ${thing}`,
    barcode: digits + checkDigit(digits),
    price: (cents / 100).toFixed(2),
  };
}
