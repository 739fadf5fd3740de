import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

// How many products there are, by ranges of primary keys. Kept by triggers of the database alone, and read by pagination/row-counts.ts.

abstract class Tally {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** The number of the range, from 0. */
  @Property({ type: 'integer' })
  bucket!: number;

  @Property({ type: 'integer' })
  rows!: number;

  /** How many statements have written to the range. */
  @Property({ columnType: 'bigint', type: 'string' })
  writes!: string;
}

/** By ranges of 65,536 primary keys. */
@Entity({ tableName: 'product_tally' })
@Index({ name: 'product_tally_bucket_index', properties: ['bucket'] })
export class ProductTally extends Tally {}

/** By ranges of 256 primary keys. */
@Entity({ tableName: 'product_tally_fine' })
@Index({ name: 'product_tally_fine_bucket_index', properties: ['bucket'] })
export class ProductTallyFine extends Tally {}
