import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * What a word of the catalogue's names begins with before its first digit, folded, once or a few times: it tells a mistyped word from others. Kept by triggers
 * of the database alone. Words of products that are gone stay known.
 */
@Entity({ tableName: 'product_word' })
@Index({ name: 'product_word_word_index', properties: ['word'] })
export class ProductWord {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  @Property({ columnType: 'text', collation: 'C' })
  word!: string;
}
