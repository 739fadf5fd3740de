import { Field, ObjectType } from 'type-graphql';
import { requireScope } from '../../request/access.ts';
import type { Context } from '../../request/context.ts';
import { badInput, DomainError, type ErrorCode } from '../../core/errors.ts';
import { shapeOf, writeRows } from '../../database/row-mapper.ts';
import { sql } from '../../database/sql.ts';
import { check } from '../../core/validation.ts';
import { Product } from './product.entity.ts';
import { insertNew, insertNoted } from './insert-sql.ts';
import { barcodeTaken, newProduct, type NewProduct } from './product.rules.ts';

/** How many products a batch has at most. */
const MAX_BATCH = 100;

@ObjectType({ simpleResolvers: true, description: 'A field of an input, and why it is refused.' })
export class ProductFieldError {
  @Field(() => String, { description: 'The field: `name`, `barcode` or `price`.' })
  field!: string;

  @Field(() => String, { description: 'What is wrong with it.' })
  message!: string;
}

@ObjectType({ simpleResolvers: true, description: 'Why a product of a batch was not added.' })
export class ProductError {
  @Field(() => String, {
    description: 'As `extensions.code` of an error: `BAD_USER_INPUT`, or `CONFLICT` where another product has the barcode.',
  })
  code!: ErrorCode;

  @Field(() => String, { description: 'What is wrong, for people.' })
  message!: string;

  @Field(() => [ProductFieldError], { description: 'The fields that are refused.' })
  fields!: readonly ProductFieldError[];
}

@ObjectType({ simpleResolvers: true, description: 'What became of a product of a batch: it was added, or refused.' })
export class CreateProductResult {
  @Field(() => Product, { nullable: true, description: 'The product; null where it was refused.' })
  product!: Product | null;

  @Field(() => ProductError, { nullable: true, description: 'Why it was refused; null where it was added.' })
  error!: ProductError | null;
}

/**
 * Adds products, each for itself, and answers what became of each, in their order. Of two with one barcode the first is added. Needs `products:write`.
 * Throws BAD_USER_INPUT for more than a hundred.
 */
export async function createAll(ctx: Context, drafts: readonly unknown[]): Promise<CreateProductResult[]> {
  requireScope(ctx, 'products:write');
  if (drafts.length > MAX_BATCH) throw badInput('inputs', `must be at most ${MAX_BATCH}`);
  const checked = drafts.map(checkedOf);
  const wanted = new Map<string, NewProduct>();
  for (const draft of checked) if (!(draft instanceof DomainError) && !wanted.has(draft.barcode)) wanted.set(draft.barcode, draft);
  const made = await insert(ctx, [...wanted.values()]);
  return checked.map((draft) => {
    if (draft instanceof DomainError) return refused(draft);
    const product = wanted.get(draft.barcode) === draft ? made.get(draft.barcode) : undefined;
    return product ? { product, error: null } : refused(barcodeTaken());
  });
}

// As facts: an error itself would fail its field.
function refused({ code, message, fields }: DomainError): CreateProductResult {
  return { product: null, error: { code, message, fields } };
}

function checkedOf(draft: unknown): NewProduct | DomainError {
  try {
    return check(newProduct, draft);
  } catch (error) {
    if (error instanceof DomainError) return error;
    throw error;
  }
}

// By barcode, those that were added. One statement, which needs no transaction around it.
async function insert(ctx: Context, products: readonly NewProduct[]): Promise<Map<string, Product>> {
  if (products.length === 0) return new Map();
  const shape = shapeOf(ctx, Product);
  const [names, barcodes, prices] = (['name', 'barcode', 'price'] as const).map((name) => products.map((product) => product[name]));
  const drafts = sql`
    select * from unnest(${names}::text[], ${barcodes}::text[], ${prices}::numeric[]) with ordinality as given (name, barcode, price, place)`;
  const insertion = sql`${insertNew(drafts, ctx.now())} on conflict (barcode) do nothing`;
  const rows = await writeRows(ctx, insertNoted(ctx, insertion, shape.columns));
  return new Map(rows.map((row) => shape.entity(row)).map((product) => [product.barcode, product]));
}
