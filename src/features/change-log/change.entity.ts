import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * One entry of the log of changes: something that happened, noted by a trigger in the transaction that did it. Rows are read by change.log.ts and
 * deleted by its sweep; nothing else touches them.
 */
@Entity({ tableName: 'change' })
@Check({ name: 'change_kind_check', expression: `kind ~ '^[a-z]+\\.[a-z]+$'` })
export class ChangeRow {
  /** The transaction that did it. */
  @PrimaryKey({ columnType: 'xid8', type: 'string', defaultRaw: 'pg_current_xact_id()' })
  tx!: string;

  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** When that transaction began. */
  @Property({ columnType: 'timestamptz(3)', defaultRaw: 'now()' })
  at!: Date;

  @Property({ type: 'text' })
  kind!: string;

  /** What it happened to: the primary key of a product, the `sid` of a session. */
  @Property({ type: 'text', nullable: true })
  subject!: string | null;

  /** What became of it, or what it was before it was deleted. */
  @Property({ columnType: 'jsonb', type: 'json', nullable: true })
  state!: unknown;
}
