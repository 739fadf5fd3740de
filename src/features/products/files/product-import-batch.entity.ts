import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** A batch of an import that has not come to its end: what is here is done, and need not be done again (product.import.ts). */
@Entity({ tableName: 'product_import_batch' })
@Check({ name: 'product_import_batch_hash_check', expression: `octet_length(hash) = 32` })
@Index({ name: 'product_import_batch_imported_at_index', properties: ['importedAt'] })
export class ProductImportBatch {
  /** SHA-256 of the batch, and of all that came before it. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  hash!: Buffer;

  @Property({ columnType: 'timestamptz(3)' })
  importedAt!: Date;
}
