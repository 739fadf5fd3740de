import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';

/**
 * Number of products in a range of primary keys. Only database triggers write this table;
 * pagination/row-counts.ts reads it.
 */
@Entity({ tableName: 'product_row_count' })
export class ProductRowCount {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** Index of the range, from 0. */
  @Index()
  @Property({ type: new BigIntType('number') })
  bucket!: number;

  @Property({ type: 'integer' })
  rows!: number;

  /** Number of statements that have written to the range. */
  @Property({ columnType: 'bigint', type: 'string' })
  writes!: string;
}
