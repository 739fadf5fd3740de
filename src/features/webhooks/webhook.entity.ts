import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { CHANGE_KINDS, type ChangeKind } from '../change-log/change-log.ts';

/** Somebody else's address that is told of what happens here. */
@Entity({ tableName: 'webhook' })
@Check({ name: 'webhook_url_check', expression: `char_length(url) <= 2000 and url ~ '^https?://'` })
@Check({
  name: 'webhook_description_check',
  expression: `char_length(description) >= 1 and char_length(description) <= 200 and description !~ '[[:cntrl:]]'`,
})
@Check({
  name: 'webhook_events_check',
  expression: `cardinality(events) >= 1 and events <@ array[${CHANGE_KINDS.map((kind) => `'${kind}'`).join(', ')}]::text[]`,
})
export class Webhook {
  @PrimaryKey({ type: 'integer', autoincrement: true })
  pk!: number;

  /** What it is known by to operators. */
  @Property({ columnType: 'uuid', type: 'string', unique: true })
  wid!: string;

  @Property({ type: 'text' })
  url!: string;

  @Property({ type: 'text', nullable: true })
  description!: string | null;

  @Property({ columnType: 'text[]' })
  events!: ChangeKind[];

  /** What its messages are signed with, so it has to be stored as it is. */
  @Property({ type: 'text', hidden: true, lazy: true })
  secret!: string;

  @Property({ type: 'text', nullable: true, hidden: true, lazy: true })
  previousSecret!: string | null;

  /** Until when messages are signed with the secret before as well. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  previousUntil!: Date | null;

  @Property({ type: 'boolean', default: true })
  isEnabled!: boolean;

  /** What had been committed when it was last enabled. It is told of what came later. */
  @Property({ columnType: 'pg_snapshot', type: 'string', defaultRaw: 'pg_current_snapshot()', lazy: true })
  since!: string;

  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  succeededAt!: Date | null;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  failedAt!: Date | null;
}
