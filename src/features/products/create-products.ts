import { Field, ObjectType } from 'type-graphql';
import { requireScope } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { badInput, DomainError, type ErrorCode } from '../../core/errors.ts';
import { shapeOf, writeRows } from '../../database/row-mapper.ts';
import { sql } from '../../database/sql.ts';
import { check } from '../../core/validation.ts';
import { Product } from './product.entity.ts';
import { COLUMNS, FIELDS, listsOf } from './product.columns.ts';
import { insertNew, insertWithAudit } from './insert-sql.ts';
import { barcodeTaken, newProduct, type NewProduct } from './product.rules.ts';

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
  const checked = drafts.map(validate);
  const unique = new Map<string, NewProduct>();
  for (const draft of checked)
    if (!(draft instanceof DomainError) && !unique.has(draft.barcode))
      unique.set(draft.barcode, draft);
  const added = await insert(ctx, [...unique.values()]);
  return checked.map((draft) => {
    if (draft instanceof DomainError) return rejected(draft);
    const product = unique.get(draft.barcode) === draft ? added.get(draft.barcode) : undefined;
    return product ? { product, error: null } : rejected(barcodeTaken());
  });
}

// A plain object: an Error instance would fail its field.
function rejected({ code, message, fields }: DomainError): CreateProductResult {
  return { product: null, error: { code, message, fields } };
}

function validate(draft: unknown): NewProduct | DomainError {
  try {
    return check(newProduct, draft);
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}

// Returns the added products by barcode. One statement, so no transaction is needed.
async function insert(
  ctx: Context,
  products: readonly NewProduct[],
): Promise<Map<string, Product>> {
  if (products.length === 0) return new Map();
  const shape = shapeOf(ctx, Product);
  const drafts = sql`
    select * from unnest(${listsOf(products)}) with ordinality as given (${COLUMNS}, place)`;
  const insertSql = sql`${insertNew(drafts, ctx.now())} on conflict (barcode) do nothing`;
  const rows = await writeRows(ctx, insertWithAudit(ctx, insertSql, shape.columns));
  return new Map(rows.map((row) => shape.entity(row)).map((product) => [product.barcode, product]));
}
