import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** A stored batch of an unfinished import; a resumed import skips it (file-import.ts). */
@Entity({ tableName: 'product_import_batch' })
@Check({ name: 'product_import_batch_hash_check', expression: `octet_length(hash) = 32` })
@Index({ name: 'product_import_batch_imported_at_index', properties: ['importedAt'] })
export class ProductImportBatch {
  /** SHA-256 of the batch and all batches before it. */
  @PrimaryKey({ columnType: 'bytea', type: 'Buffer' })
  hash!: Buffer;

  @Property({ columnType: 'timestamptz(3)' })
  importedAt!: Date;
}
