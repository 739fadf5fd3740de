import { decimal, exactly } from './fuzz.ts';
import type { Shop } from './shop.ts';

/** A product as a door shows it, with its numbers as exact decimals. */
export interface Shown {
  pk: string;
  name: string;
  barcode: string;
  price: string;
}

/** The products in the database, by pk, each number in one way to write it. */
export async function storedProducts(shop: Shop): Promise<Shown[]> {
  const products = await shop.sql('select pk, name, barcode, price::text from product order by pk');
  return products.map(({ pk, name, barcode, price }) => ({
    pk: decimal(String(pk)),
    name: String(name),
    barcode: String(barcode),
    price: decimal(String(price)),
  }));
}

/** The products as REST shows them. */
export async function listedProducts(shop: Shop): Promise<Shown[]> {
  return exactly((await shop.rest('GET', '/api/v1/shop/products')).text);
}

/** The products as GraphQL shows them. */
export async function productsInGraphql(shop: Shop): Promise<Shown[]> {
  const query =
    'query ($after: String) { products(first: 100, after: $after) { nodes { pk name barcode price } pageInfo { endCursor hasNextPage } } }';
  const found: Shown[] = [];
  let after: string | null = null;
  do {
    const answer = await shop.graphql(query, { after });
    const page = exactly(answer.text).data.products as { nodes: Shown[]; pageInfo: { endCursor: string; hasNextPage: boolean } };
    found.push(...page.nodes.map((product) => ({ ...product, pk: decimal(product.pk) })));
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null);
  return found;
}
