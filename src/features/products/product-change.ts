import { Field, ID, Int, ObjectType, registerEnumType } from 'type-graphql';
import { cursorOf, type Change, type ChangeKind } from '../change-log/change-log.ts';
import * as changeLog from '../change-log/subscribe.ts';
import type { Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { Product, productFromRow } from './product.entity.ts';

const MAX_PKS = 100;

export enum ProductChangeKind {
  CREATED = 'CREATED',
  CHANGED = 'CHANGED',
  DELETED = 'DELETED',
  BULK = 'BULK',
}

registerEnumType(ProductChangeKind, {
  name: 'ProductChangeKind',
  description: 'Kind of a product change.',
  valuesConfig: {
    CREATED: { description: 'A product was added.' },
    CHANGED: { description: 'A product was changed.' },
    DELETED: { description: 'A product was deleted.' },
    BULK: {
      description:
        'More than 1,000 products were written at once, without an event for each. Reload cached products.',
    },
  },
});

const KINDS: Partial<Record<ChangeKind, ProductChangeKind>> = {
  'product.created': ProductChangeKind.CREATED,
  'product.changed': ProductChangeKind.CHANGED,
  'product.deleted': ProductChangeKind.DELETED,
  'products.changed': ProductChangeKind.BULK,
};

@ObjectType({ simpleResolvers: true, description: 'A change of one product or of many.' })
export class ProductChange {
  @Field(() => ProductChangeKind, { description: 'Kind of the change.' })
  kind!: ProductChangeKind;

  @Field(() => ID, {
    nullable: true,
    description: 'The primary key of the product; null for `BULK`.',
  })
  pk!: string | null;

  @Field(() => Product, {
    nullable: true,
    description: 'The product after the change; null for `DELETED` and `BULK`.',
  })
  product!: Product | null;

  @Field(() => Int, {
    nullable: true,
    description: 'Number of products written by a `BULK` change, if known; otherwise null.',
  })
  count!: number | null;

  @Field(() => DateTimeScalar, { description: 'Time of the change.' })
  at!: Date;

  @Field(() => String, { description: 'Cursor of the change, for `after`.' })
  cursor!: string;
}

/** Filter of product changes; without a field, all changes. */
export interface ProductChangesInput {
  /** Only changes of these products, and bulk changes. */
  pks?: readonly string[] | null;
  kinds?: readonly ProductChangeKind[] | null;
  /** Only changes after this cursor; without one, from now on. */
  after?: string | null | undefined;
}

/** Subscribes to product changes. Throws BAD_USER_INPUT and CURSOR_EXPIRED. */
export async function subscribe(
  ctx: Context,
  { pks, kinds, after }: ProductChangesInput,
): Promise<AsyncGenerator<ProductChange, void>> {
  if (pks && pks.length > MAX_PKS)
    throw badInput('pks', `must have at most ${MAX_PKS} primary keys`);
  return filterChanges(
    await changeLog.subscribe(ctx, after),
    pks && new Set(pks),
    kinds && new Set(kinds),
  );
}

async function* filterChanges(
  changes: AsyncIterable<Change>,
  pks: ReadonlySet<string> | null | undefined,
  kinds: ReadonlySet<ProductChangeKind> | null | undefined,
): AsyncGenerator<ProductChange, void> {
  for await (const change of changes) {
    // A bulk change has no subject and may include any product.
    if (pks && change.subject !== null && !pks.has(change.subject)) continue;
    const productChange = productChangeOf(change);
    if (productChange && (!kinds || kinds.has(productChange.kind))) yield productChange;
  }
}

const cache = new WeakMap<Change, ProductChange>();

/** Returns the change in GraphQL form, shared by all clients; undefined for other kinds. */
function productChangeOf(change: Change): ProductChange | undefined {
  const kind = KINDS[change.kind];
  if (!kind) return undefined;
  const productChange = cache.get(change) ?? toProductChange(change, kind);
  cache.set(change, productChange);
  return productChange;
}

function toProductChange(change: Change, kind: ProductChangeKind): ProductChange {
  const isBulk = kind === ProductChangeKind.BULK;
  const count = change.state?.['count'];
  return {
    kind,
    pk: change.subject,
    product:
      isBulk || kind === ProductChangeKind.DELETED ? null : productFromRow(change.state ?? {}),
    count: isBulk && typeof count === 'number' ? count : null,
    at: change.at,
    cursor: cursorOf(change),
  };
}
