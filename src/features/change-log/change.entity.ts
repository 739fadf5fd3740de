import { Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * An entry of the change log, written by a trigger in the transaction of the change. Only
 * change-log.ts reads and deletes rows.
 */
@Entity({ tableName: 'change' })
export class ChangeRow {
  /** Transaction of the change. */
  @PrimaryKey({ columnType: 'xid8', type: 'string', defaultRaw: 'pg_current_xact_id()' })
  tx!: string;

  @PrimaryKey({ columnType: 'bigserial', type: 'string', autoincrement: true })
  pk!: string;

  /** Start time of that transaction. */
  @Property({ columnType: 'timestamptz(3)', defaultRaw: 'now()' })
  at!: Date;

  @Property({ type: 'text' })
  kind!: string;

  /** Primary key of the product, or `sid` of the session. */
  @Property({ type: 'text', nullable: true })
  subject!: string | null;

  /** State after the change, or before the deletion. */
  @Property({ columnType: 'jsonb', type: 'json', nullable: true })
  state!: unknown;
}
