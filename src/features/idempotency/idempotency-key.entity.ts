import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Idempotency key of a write, with the stored response. */
@Entity({ tableName: 'idempotency_key' })
export class IdempotencyKey {
  /**
   * Scope of the key: `user:` and the primary key, or `anonymous:` and the network. Callers do not
   * share keys.
   */
  @PrimaryKey({ type: 'text' })
  caller!: string;

  @PrimaryKey({ type: 'text' })
  key!: string;

  /** SHA-256 of the operation and its input. */
  @Property({ columnType: 'bytea', type: 'Buffer' })
  fingerprint!: Buffer;

  /** Response of the write as JSON; null only inside the transaction of the write. */
  @Property({ columnType: 'jsonb', type: 'json', nullable: true })
  answer!: unknown;

  @Index()
  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;
}
