import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** The place up to which the log of changes has been read for webhooks: one row. Who holds it reads on, and nobody else does. */
@Entity({ tableName: 'webhook_place' })
@Check({ name: 'webhook_place_is_only_check', expression: `is_only` })
export class WebhookPlace {
  @PrimaryKey({ type: 'boolean', default: true })
  isOnly!: boolean;

  @Property({ columnType: 'xid8', type: 'string' })
  tx!: string;

  @Property({ columnType: 'bigint', type: 'string' })
  pk!: string;
}
