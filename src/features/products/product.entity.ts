import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ID, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { EAN13Scalar, PriceScalar } from './product.scalars.ts';

/** A product of the catalogue. */
@Entity({ tableName: 'product' })
@Check({
  name: 'product_barcode_check',
  expression: `char_length(barcode) = 13 and barcode !~ '[^0-9]'`,
})
@Check({
  name: 'product_price_check',
  expression: 'price >= 0 and price <= 9999999999.99 and scale(price) <= 2',
})
@Index({ properties: ['nameKey', 'pk'] })
@Index({ properties: ['price', 'pk'] })
@Index({ properties: ['createdAt', 'pk'] })
@Index({ properties: ['updatedAt', 'pk'] })
@Index({
  name: 'product_words_index',
  expression: 'create index product_words_index on product using gin (words)',
})
@Index({
  name: 'product_name_key_trigram_index',
  expression:
    'create index product_name_key_trigram_index on product using gin (name_key gin_trgm_ops)',
})
@ObjectType({ simpleResolvers: true, implements: Node, description: 'A product of the catalogue.' })
export class Product extends Node {
  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  @Field(() => ID, { description: 'The primary key, as in the paths of the REST API.' })
  pk!: number;

  @Property({ type: 'text' })
  @Field(() => String, { description: 'The name, one line of 1 to 255 characters.' })
  name!: string;

  /** Sort key of the order by name: case and accents folded. */
  @Property({
    columnType: 'text',
    collation: 'C',
    generated: '(search_fold(name)) stored',
    hidden: true,
    lazy: true,
  })
  nameKey!: string;

  /** Words and symbols of the sort key. */
  @Property({
    columnType: 'tsvector',
    generated: '(search_vector(name)) stored',
    hidden: true,
    lazy: true,
  })
  words!: string;

  @Property({ type: 'text', unique: true })
  @Field(() => EAN13Scalar, { description: 'The barcode, unique in the catalogue.' })
  barcode!: string;

  @Property({ columnType: 'numeric', type: 'string' })
  @Field(() => PriceScalar, { description: 'The price.' })
  price!: string;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the product was added.' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  @Field(() => DateTimeScalar, { description: 'When the product was last changed.' })
  updatedAt!: Date;

  protected get nodeKey(): number {
    return this.pk;
  }
}

/** Returns a read-only product from its JSON, where times are text. */
export function productFromJson(json: unknown): Product {
  const { createdAt, updatedAt, ...rest } = json as Product;
  return Object.assign(new Product(), rest, {
    createdAt: new Date(createdAt),
    updatedAt: new Date(updatedAt),
  });
}

/** Returns a read-only product from its row as JSON, as the change log stores it. */
export function productFromRow(row: Readonly<Record<string, unknown>>): Product {
  const entries = Object.entries(row).map(([column, value]) => [
    column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return productFromJson({ ...Object.fromEntries(entries), price: String(row['price']) });
}
