import { sql } from 'kysely';
import { Field, ObjectType } from 'type-graphql';
import { recordAll } from '../audit/audit.log.ts';
import { requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError, type ErrorCode } from '../../core/errors.ts';
import { readRows, run, type Columns } from '../../database/kysely.ts';
import { checked } from '../../core/validation.ts';
import { Product } from './product.entity.ts';
import { FIELDS } from './product.columns.ts';
import { barcodeTaken, newProduct, type NewProduct } from './product.rules.ts';
import { creationOf } from './product.service.ts';

/** Maximum number of products in a batch. */
const MAX_BATCH = 100;

@ObjectType({ simpleResolvers: true, description: 'A rejected field of an input, and the reason.' })
export class ProductFieldError {
  @Field(() => String, {
    description: `The field: ${FIELDS.map((field) => `\`${field}\``).join(', ')}.`,
  })
  field!: string;

  @Field(() => String, { description: 'Why the field was rejected.' })
  message!: string;
}

@ObjectType({ simpleResolvers: true, description: 'Why a product of a batch was not added.' })
export class ProductError {
  @Field(() => String, {
    description:
      'As `extensions.code` of an error: `BAD_USER_INPUT`, or `CONFLICT` if another product has the barcode.',
  })
  code!: ErrorCode;

  @Field(() => String, { description: 'Why the product was rejected, for people.' })
  message!: string;

  @Field(() => [ProductFieldError], { description: 'The rejected fields.' })
  fields!: readonly ProductFieldError[];
}

@ObjectType({
  simpleResolvers: true,
  description: 'Result for a product of a batch: the product, or an error.',
})
export class CreateProductResult {
  @Field(() => Product, {
    nullable: true,
    description: 'The added product; null if it was rejected.',
  })
  product!: Product | null;

  @Field(() => ProductError, {
    nullable: true,
    description: 'Why the product was rejected; null if it was added.',
  })
  error!: ProductError | null;
}

/**
 * Adds products independently and returns a result for each, in order. Of two with the same barcode
 * the first is added. Needs `products:write`. Throws BAD_USER_INPUT for more than 100.
 */
export async function createAll(
  ctx: Context,
  drafts: readonly unknown[],
): Promise<CreateProductResult[]> {
  requireScope(ctx, 'products:write');
  if (drafts.length > MAX_BATCH)
    throw badInput('inputs', `must have at most ${MAX_BATCH} products`);
  const results = drafts.map((draft) => checked(newProduct, draft));
  const unique = new Map<string, NewProduct>();
  for (const draft of results)
    if (!(draft instanceof DomainError) && !unique.has(draft.barcode))
      unique.set(draft.barcode, draft);
  const added = await insert(ctx, [...unique.values()]);
  return results.map((draft) => {
    if (draft instanceof DomainError) return rejected(draft);
    const product = unique.get(draft.barcode) === draft ? added.get(draft.barcode) : undefined;
    return product ? { product, error: null } : rejected(barcodeTaken());
  });
}

// A plain object: an Error instance would fail its field.
function rejected({ code, message, fields }: DomainError): CreateProductResult {
  return { product: null, error: { code, message, fields } };
}

type Key = Pick<Product, 'pk'>;

// Returns the added products by barcode.
async function insert(ctx: Context, drafts: readonly NewProduct[]): Promise<Map<string, Product>> {
  if (drafts.length === 0) return new Map();
  return inTransaction(ctx, async (tx) => {
    const now = tx.now();
    const { length } = drafts;
    const keys = await readRows(
      tx,
      sql<Key>`select nextval('product_pk_seq') as pk from generate_series(1, ${length}::int)`,
    );
    const rows = drafts.map((draft, index) => {
      return { ...draft, ...keys[index], created_at: now, updated_at: now };
    });
    // Concurrent batches with the same barcodes would wait for each other if their orders differed.
    rows.sort((one, other) => (one.barcode < other.barcode ? -1 : 1));
    const added = await run(
      tx,
      tx.em
        .getKysely<{ product: Columns<Product> }>()
        .insertInto('product')
        .values(rows)
        .onConflict((taken) => taken.column('barcode').doNothing())
        .returning(['pk', ...FIELDS, 'created_at', 'updated_at']),
    );
    const products = added.map((row) => tx.em.map(Product, row)).toSorted((a, b) => a.pk - b.pk);
    await recordAll(tx, 'product.created', products.map(creationOf));
    return new Map(products.map((product) => [product.barcode, product]));
  });
}
