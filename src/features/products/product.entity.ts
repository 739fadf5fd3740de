import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';
import { Field, ID, ObjectType } from 'type-graphql';
import { Node } from '../../api/node.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { EAN13Scalar, PriceScalar } from './product.scalars.ts';
import { restrictedPrefixOf } from './gs1-prefixes.ts';

/** The check digit rule of ean13.ts in SQL. */
const BARCODE_RULE = `case when barcode ~ '^[0-9]{13}$' then (${[...Array(13).keys()]
  .map((index) => `${index % 2 ? 3 : 1} * substr(barcode, ${index + 1}, 1)::int`)
  .join(' + ')}) % 10 = 0 else false end`;

/** A product of the catalogue. */
@Entity({ tableName: 'product' })
@Check({
  name: 'product_name_check',
  expression: `char_length(name) >= 1 and char_length(name) <= 255 and name !~ '[[:cntrl:]]' and name = btrim(name)`,
})
@Check({ name: 'product_barcode_check', expression: BARCODE_RULE })
// `numeric` accepts NaN, which is above every number, and any number of digits: hence the scale.
@Check({
  name: 'product_price_check',
  expression: `price >= 0 and price <= 9999999999.99 and scale(price) <= 2`,
})
@Index({ name: 'product_name_key_pk_index', properties: ['nameKey', 'pk'] })
@Index({ name: 'product_words_index', properties: ['words'], type: 'gin' })
@Index({
  name: 'product_name_key_trigram_index',
  expression:
    'create index product_name_key_trigram_index on product using gin (name_key gin_trgm_ops)',
})
@Index({ name: 'product_price_pk_index', properties: ['price', 'pk'] })
@Index({ name: 'product_created_at_pk_index', properties: ['createdAt', 'pk'] })
@Index({ name: 'product_updated_at_pk_index', properties: ['updatedAt', 'pk'] })
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
    generated: 'search_fold(name) stored',
    hidden: true,
    lazy: true,
  })
  nameKey!: string;

  /** Words and symbols of the sort key. */
  @Property({
    columnType: 'tsvector',
    generated: 'search_vector(name) stored',
    hidden: true,
    lazy: true,
  })
  words!: string;

  @Property({ type: 'text', unique: true })
  @Field(() => EAN13Scalar, { description: 'The barcode, unique in the catalogue.' })
  barcode!: string;

  @Field(() => String, {
    nullable: true,
    description:
      'Why the barcode may identify something else elsewhere: its prefix is reserved, for example for use within a company or region. Null if the prefix is not reserved.',
  })
  get barcodeWarning(): string | null {
    return restrictedPrefixOf(this.barcode);
  }

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
