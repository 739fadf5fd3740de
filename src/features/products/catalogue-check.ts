import type { Context } from '../../request/context.ts';
import { readRows } from '../../database/row-mapper.ts';
import { identifier, join, sql } from '../../database/sql.ts';
import { FIELDS } from './product.columns.ts';
import { newProduct } from './product.rules.ts';
import { restrictedPrefixOf } from './gs1-prefixes.ts';

const BATCH = 1_000;
const AS_TEXT = join(FIELDS.map((field) => sql`${identifier(field)}::text`));

/** A problem of a stored product. An error breaks a rule of the catalogue; a warning does not. */
export interface Finding {
  severity: 'error' | 'warning';
  pk: number;
  message: string;
}

interface StoredProduct {
  pk: number;
  nameKey: string;
  fields: Readonly<Record<string, unknown>>;
}

/**
 * Checks all stored products, by name. Yields violations of the rules for new products, restricted
 * barcodes, and names that differ only in case and accents. Reads in batches, so that memory does
 * not grow with the catalogue. Returns the number of products.
 */
export async function* checkCatalogue(ctx: Context): AsyncGenerator<Finding, number> {
  let count = 0;
  let namesake: StoredProduct | undefined;
  for await (const product of allByName(ctx)) {
    count++;
    yield* findingsOn(product);
    if (namesake?.nameKey === product.nameKey)
      yield {
        severity: 'warning',
        pk: product.pk,
        message: `name: same as product ${namesake.pk}`,
      };
    else namesake = product;
  }
  return count;
}

async function* allByName(ctx: Context): AsyncGenerator<StoredProduct> {
  for (let key = '', pk = 0; ;) {
    const rows = await readRows(
      ctx,
      sql`
        select pk, name_key, ${AS_TEXT} from product
        where (name_key, pk) > (${key}::text, ${pk}::bigint) order by name_key, pk limit ${BATCH}`,
    );
    const batch = rows.map(([rowPk, nameKey, ...values]): StoredProduct => ({
      pk: Number(rowPk),
      nameKey: String(nameKey),
      fields: Object.fromEntries(FIELDS.map((field, index) => [field, values[index]])),
    }));
    yield* batch;
    const last = batch.at(-1);
    if (!last || batch.length < BATCH) return;
    ({ nameKey: key, pk } = last);
  }
}

function* findingsOn({ pk, fields }: StoredProduct): Generator<Finding> {
  for (const { path, message } of newProduct.safeParse(fields).error?.issues ?? []) {
    yield { severity: 'error', pk, message: `${path.join('.')}: ${message}` };
  }
  const barcode = String(fields['barcode']);
  const warning = restrictedPrefixOf(barcode);
  if (warning !== null)
    yield { severity: 'warning', pk, message: `barcode: ${barcode}. ${warning}` };
}
