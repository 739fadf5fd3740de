import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';
import { BigIntType, OptionalProps } from '@mikro-orm/postgresql';
import { CHANGE_KINDS, type ChangeKind } from '../change-log/change-log.ts';

/** External URL that receives events. */
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
  [OptionalProps]?: 'pk' | 'isEnabled';

  @PrimaryKey({ type: new BigIntType('number'), autoincrement: true })
  pk!: number;

  /** Id shown to operators. */
  @Property({ columnType: 'uuid', type: 'string', unique: true })
  webhookId!: string;

  @Property({ type: 'text' })
  url!: string;

  @Property({ type: 'text', nullable: true })
  description!: string | null;

  @Property({ columnType: 'text[]' })
  events!: ChangeKind[];

  /** Signing secret, stored in plain text because every message is signed with it. */
  @Property({ type: 'text', hidden: true, lazy: true })
  secret!: string;

  @Property({ type: 'text', nullable: true, hidden: true, lazy: true })
  previousSecret!: string | null;

  /** Time until which messages are also signed with the previous secret. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  previousUntil!: Date | null;

  @Property({ type: 'boolean', default: true })
  isEnabled!: boolean;

  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  succeededAt!: Date | null;

  @Property({ columnType: 'timestamptz(3)', nullable: true })
  failedAt!: Date | null;
}
