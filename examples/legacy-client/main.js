import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { LOGINS, RequestError, Shop } from './shop.js';

const USAGE = 64;
const LANTERN = { name: 'Legacy lantern', barcode: '4006381333931', price: 12.5 };

const [baseUrl, username] = process.argv.slice(2);
if (!baseUrl || !username) {
  console.error(
    'usage: node main.js BASE_URL USERNAME, with the password in SHOP_PASSWORD or on standard input',
  );
  process.exitCode = USAGE;
} else {
  const password = process.env.SHOP_PASSWORD ?? (await text(process.stdin)).replace(/\r?\n$/, '');
  try {
    await runAll(new Shop(baseUrl), { username, password });
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    console.error(`Request failed: ${error.message}`);
    process.exitCode = 1;
  }
}

async function runAll(shop, user) {
  await useEveryLogin(shop, user);
  await readCatalogue(shop);
}

async function useEveryLogin(shop, user) {
  for (const [name, login] of Object.entries(LOGINS)) {
    console.log(`Signing in by ${name}`);
    await shop.signIn(login, user);
    try {
      await readAndCreate(shop);
    } finally {
      const { detail, data = detail } = await shop.signOut();
      console.log(`  ${data}`);
    }
  }
}

async function readAndCreate(shop) {
  const me = await shop.me();
  console.log(`  ${me.username} is ${me.full_name}`);
  const items = await shop.items();
  console.log(`  items: ${items.map(({ item_id }) => item_id).join(', ')}`);
  const entries = await shop.blog();
  console.log(
    `  blog: ${entries.length} entries, the newest by ${entries[0]?.creator.username ?? '-'}`,
  );
  await createLantern(shop);
}

// Sends the request twice, as after a timeout. The same key creates one product.
async function createLantern(shop) {
  const key = randomUUID();
  try {
    const { pk } = await shop.create(LANTERN, key);
    const retried = await shop.create(LANTERN, key);
    console.log(`  created ${LANTERN.name}: ${pk}, after a retry: ${retried.pk}`);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    console.log(`  not created: ${error.message}`);
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
  console.log(`  by limit and offset: ${await sizes(shop.offsetPages(100))}`);
  if (!first) return;
  const { name, price } = await shop.product(first.pk);
  console.log(`  the first: ${name} for ${price.toFixed(2)}`);
}

async function sizes(lists) {
  let entries = 0;
  let pages = 0;
  for await (const list of lists) {
    entries += list.length;
    pages++;
  }
  return `${entries} products in ${pages} responses`;
}
