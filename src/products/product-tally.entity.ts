import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** How many products there are, by ranges of primary keys. Kept by triggers of the database alone, and read by kit/tally.ts. */
@Entity({ tableName: 'product_tally' })
@Index({ name: 'product_tally_level_bucket_index', properties: ['level', 'bucket'] })
export class ProductTally {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** 1 for ranges of 256 primary keys, 2 for ranges of 65,536. */
  @Property({ columnType: 'smallint', type: 'number' })
  level!: number;

  /** The number of the range, from 0. */
  @Property({ type: 'integer' })
  bucket!: number;

  @Property({ type: 'integer' })
  rows!: number;

  /** How many statements have written to the range. */
  @Property({ columnType: 'bigint', type: 'string' })
  writes!: string;
}
