import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * Start of a word of the product names, up to the first digit, folded; used to recognize mistyped
 * words. May be stored more than once. Only database triggers write this table. Words of deleted
 * products remain.
 */
@Entity({ tableName: 'product_word' })
export class ProductWord {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  @Index()
  @Property({ columnType: 'text', collation: 'C' })
  word!: string;
}
