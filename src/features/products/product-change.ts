import { Field, ID, Int, ObjectType, registerEnumType } from 'type-graphql';
import { cursorOf, type Change, type ChangeKind } from '../change-log/change-log.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { Product, productFromJson } from './product.entity.ts';

export enum ProductChangeKind {
  CREATED = 'CREATED',
  CHANGED = 'CHANGED',
  DELETED = 'DELETED',
  MANY = 'MANY',
}

registerEnumType(ProductChangeKind, {
  name: 'ProductChangeKind',
  description: 'What has happened.',
  valuesConfig: {
    CREATED: { description: 'A product was added.' },
    CHANGED: { description: 'A product was changed.' },
    DELETED: { description: 'A product was deleted.' },
    MANY: { description: 'More than a thousand products were written at once, and are not told of each: read anew what you keep.' },
  },
});

const KINDS: Partial<Record<ChangeKind, ProductChangeKind>> = {
  'product.created': ProductChangeKind.CREATED,
  'product.changed': ProductChangeKind.CHANGED,
  'product.deleted': ProductChangeKind.DELETED,
  'products.changed': ProductChangeKind.MANY,
};

@ObjectType({ simpleResolvers: true, description: 'Something that has happened to products.' })
export class ProductChange {
  @Field(() => ProductChangeKind, { description: 'What has happened.' })
  kind!: ProductChangeKind;

  @Field(() => ID, { nullable: true, description: 'The primary key of the product; null for many.' })
  pk!: string | null;

  @Field(() => Product, {
    nullable: true,
    description: 'The product as this change has left it; null for one that was deleted, and for many.',
  })
  product!: Product | null;

  @Field(() => Int, { nullable: true, description: 'How many were written to, where many were and it is known.' })
  count!: number | null;

  @Field(() => DateTimeScalar, { description: 'When.' })
  at!: Date;

  @Field(() => String, { description: 'The place of this change among all, for `after`.' })
  cursor!: string;
}

const told = new WeakMap<Change, ProductChange>();

/** The change as clients are told of it, made once for all of them; undefined where it is none of products. */
export function productChangeOf(change: Change): ProductChange | undefined {
  const kind = KINDS[change.kind];
  if (!kind) return undefined;
  const known = told.get(change) ?? tell(change, kind);
  told.set(change, known);
  return known;
}

function tell(change: Change, kind: ProductChangeKind): ProductChange {
  const isMany = kind === ProductChangeKind.MANY;
  const count = change.state?.['count'];
  return {
    kind,
    pk: change.subject,
    // The trigger puts in all that a product is read with.
    product: isMany || kind === ProductChangeKind.DELETED ? null : productFromJson(change.state),
    count: isMany && typeof count === 'number' ? count : null,
    at: change.at,
    cursor: cursorOf(change),
  };
}
