import bcrypt from 'bcrypt';
import type { EntityManager } from '@mikro-orm/postgresql';
import { record } from './audit/audit.log.ts';
import { DomainError } from '../core/errors.ts';
import { osUserName } from '../core/os-user.ts';
import { run, type Columns } from '../database/kysely.ts';
import type { BlogEntry } from './blog/blog-entry.entity.ts';
import { checkDigit } from './products/ean13.ts';
import type { Product } from './products/product.entity.ts';
import type { Item } from './profile/item.entity.ts';
import { User } from './users/user.entity.ts';

/** Users of the demo data with a password; the passwords are public. */
export const demoUsers: readonly (Pick<User, 'username' | 'scopes' | 'disabled'> & {
  password: string;
  fullName: string;
})[] = [
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

/** Kinds of a thing, materials, and things: the factors of a price, and the usual prices. */
const KINDS = {
  Classic: 1,
  Compact: 0.8,
  Tall: 1.15,
  Low: 0.9,
  Light: 0.85,
  Heavy: 1.3,
  Round: 1.05,
  Folding: 1.1,
  Narrow: 0.95,
  Wide: 1.25,
};
const MATERIALS = {
  Oak: 1.2,
  Steel: 1,
  Linen: 0.9,
  Copper: 1.35,
  Bamboo: 0.7,
  Glass: 0.95,
  Wool: 1.1,
  Cotton: 0.75,
  Walnut: 1.5,
  Slate: 1.25,
};
const THINGS = {
  Table: 320,
  Chair: 95,
  Lamp: 70,
  Kettle: 42,
  Blanket: 60,
  Bowl: 18,
  Shelf: 140,
  Clock: 55,
  Vase: 28,
  Basket: 24,
  Mirror: 110,
  Tray: 21,
};

/** Demo users with items. */
const OWNERS = ['alice', 'bob'];
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

interface Tables {
  blog_entry: Columns<BlogEntry>;
  item: Columns<Item>;
  user: Columns<User>;
  product: Columns<Product>;
}

/**
 * Adds the demo data to a database without users. Throws CONFLICT if there are any, because the
 * passwords of the demo users are public.
 */
export async function seedDemo(em: EntityManager, bcryptCost: number, now: Date): Promise<void> {
  const hashes = await Promise.all(
    demoUsers.map(({ password }) => bcrypt.hash(password, bcryptCost)),
  );
  await em.transactional(async (tx) => {
    const database = tx.getKysely<Tables>();
    // Serializes concurrent calls, so that the second one sees the rows of the first.
    await tx.execute("select pg_advisory_xact_lock(hashtext('shopfront demo data'))");
    if ((await tx.count(User)) > 0) throw new DomainError('CONFLICT', 'The database has users');
    const users = [
      ...demoUsers.map(({ username, fullName, scopes, disabled }, index) => ({
        username,
        full_name: fullName,
        disabled,
        scopes,
        hashed_password: hashes[index] ?? null,
      })),
      ...[...Array(OTHER_USERS).keys()].map((index) => ({
        username: `customer${String(index + 1).padStart(3, '0')}`,
        full_name: `Customer ${index + 1}`,
      })),
    ].map((user) => ({ ...user, email: `${user.username}@shop.example` }));
    const added = await run(
      { em: tx },
      database.insertInto('user').values(users).returning(['pk', 'username']),
    );
    const products = demoProducts().map((product) => ({
      ...product,
      created_at: now,
      updated_at: now,
    }));
    const addProducts = database.insertInto('product').values(products);
    await run(
      { em: tx },
      addProducts.onConflict((conflict) => conflict.doNothing()),
    );
    const pks = new Map(added.map(({ pk, username }) => [username, pk]));
    const pkOf = (username: string) => pks.get(username) ?? 0;
    const items = OWNERS.flatMap((owner) =>
      ITEMS.map((item_id) => ({ owner_pk: pkOf(owner), item_id, created_at: now })),
    );
    await run({ em: tx }, database.insertInto('item').values(items));
    const entries = ENTRIES.map(({ author, ...entry }, index) => {
      const at = new Date(now.getTime() + index);
      return { ...entry, creator_pk: pkOf(author), created_at: at, updated_at: at };
    });
    await run({ em: tx }, database.insertInto('blog_entry').values(entries));
    const actor = { em: tx, now: () => now, requestId: 'seed', operator: osUserName() };
    await record(actor, 'demo.seeded');
  });
}

// Returns a product of each thing, material and kind.
function demoProducts(): { name: string; barcode: string; price: string }[] {
  const products = Object.entries(THINGS).flatMap(([thing, price]) =>
    Object.entries(MATERIALS).flatMap(([material, factor]) =>
      Object.entries(KINDS).map(([kind, kindFactor]) => ({
        name: `${kind} ${material} ${thing}`,
        price: (Math.round(price * factor * kindFactor) - 0.05).toFixed(2),
      })),
    ),
  );
  return products.map((product, index) => {
    const digits = `400638${String(index).padStart(6, '0')}`;
    return { ...product, barcode: digits + checkDigit(digits) };
  });
}
