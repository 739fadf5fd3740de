import { decimal, parseExact } from './fuzz.ts';
import type { Shop } from './shop.ts';

/** A product as an API returns it, with numbers as exact decimals. */
interface ApiProduct {
  pk: string;
  name: string;
  barcode: string;
  price: string;
}

/** The products in the database, by pk, with numbers in normal form. */
export async function storedProducts(shop: Shop): Promise<ApiProduct[]> {
  const products = await shop.sql('select pk, name, barcode, price::text from product order by pk');
  return products.map(({ pk, name, barcode, price }) => ({
    pk: decimal(String(pk)),
    name: String(name),
    barcode: String(barcode),
    price: decimal(String(price)),
  }));
}

/** The products as the REST API returns them. */
export async function restProducts(shop: Shop): Promise<ApiProduct[]> {
  return parseExact((await shop.rest('GET', '/api/v1/shop/products')).text);
}

/** The products as the GraphQL API returns them. */
export async function graphqlProducts(shop: Shop): Promise<ApiProduct[]> {
  const query =
    'query ($after: String) { products(first: 100, after: $after) { nodes { pk name barcode price } pageInfo { endCursor hasNextPage } } }';
  const found: ApiProduct[] = [];
  let after: string | null = null;
  do {
    const answer = await shop.graphql(query, { after });
    const page = parseExact(answer.text).data.products as {
      nodes: ApiProduct[];
      pageInfo: { endCursor: string; hasNextPage: boolean };
    };
    found.push(...page.nodes.map((product) => ({ ...product, pk: decimal(product.pk) })));
    after = page.pageInfo.hasNextPage ? page.pageInfo.endCursor : null;
  } while (after !== null);
  return found;
}
