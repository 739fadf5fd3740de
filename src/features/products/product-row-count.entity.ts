import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType } from '@mikro-orm/postgresql';

// Number of products by range of primary keys. Only database triggers write these tables;
// pagination/row-counts.ts reads them.

abstract class RowCount {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** Index of the range, from 0. */
  @Property({ type: new BigIntType('number') })
  bucket!: number;

  @Property({ type: 'integer' })
  rows!: number;

  /** Number of statements that have written to the range. */
  @Property({ columnType: 'bigint', type: 'string' })
  writes!: string;
}

/** Ranges of 65,536 primary keys. */
@Entity({ tableName: 'product_row_count' })
@Index({ name: 'product_row_count_bucket_index', properties: ['bucket'] })
export class ProductRowCount extends RowCount {}

/** Ranges of 256 primary keys. */
@Entity({ tableName: 'product_row_count_fine' })
@Index({ name: 'product_row_count_fine_bucket_index', properties: ['bucket'] })
export class ProductRowCountFine extends RowCount {}
