import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { Refused, Shop, WAYS } from './shop.js';

const USAGE = 64;
const LANTERN = { name: 'Legacy lantern', barcode: '4006381333931', price: 12.5 };

const [baseUrl, username] = process.argv.slice(2);
if (!baseUrl || !username) {
  console.error('usage: node main.js BASE_URL USERNAME, with the password in SHOP_PASSWORD or on standard input');
  process.exitCode = USAGE;
} else {
  const password = process.env.SHOP_PASSWORD ?? (await text(process.stdin)).replace(/\r?\n$/, '');
  try {
    await journey(new Shop(baseUrl), { username, password });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(`The shop refused: ${error.message}`);
    process.exitCode = 1;
  }
}

async function journey(shop, user) {
  await byEveryWay(shop, user);
  await readCatalogue(shop);
}

async function byEveryWay(shop, user) {
  for (const [name, way] of Object.entries(WAYS)) {
    console.log(`Signing in by ${name}`);
    await shop.signIn(way, user);
    try {
      await lookAround(shop);
    } finally {
      const { detail, data = detail } = await shop.signOut();
      console.log(`  ${data}`);
    }
  }
}

async function lookAround(shop) {
  const me = await shop.me();
  console.log(`  ${me.username} is ${me.full_name}`);
  const items = await shop.items();
  console.log(`  items: ${items.map(({ item_id }) => item_id).join(', ')}`);
  const entries = await shop.blog();
  console.log(`  blog: ${entries.length} entries, the newest by ${entries[0]?.creator.username ?? 'nobody'}`);
  await addLantern(shop);
}

// Sent twice, as after a timeout: the key tells that it is one product.
async function addLantern(shop) {
  const key = randomUUID();
  try {
    const { pk } = await shop.create(LANTERN, key);
    const again = await shop.create(LANTERN, key);
    console.log(`  added ${LANTERN.name} as ${pk}, and sent again it is ${again.pk}`);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.log(`  not added: ${error.message}`);
  }
}

async function readCatalogue(shop) {
  console.log('Reading the catalogue');
  let count = 0;
  let first;
  for await (const product of shop.products()) {
    first ??= product;
    count++;
  }
  console.log(`  at once: ${count} products`);
  console.log(`  by page: ${await sizes(shop.pages())}`);
  console.log(`  by limit and offset: ${await sizes(shop.parts(100))}`);
  if (!first) return;
  const { name, price } = await shop.product(first.pk);
  console.log(`  the first: ${name} for ${price.toFixed(2)}`);
}

async function sizes(lists) {
  let entries = 0;
  let parts = 0;
  for await (const list of lists) {
    entries += list.length;
    parts++;
  }
  return `${entries} products in ${parts} answers`;
}
