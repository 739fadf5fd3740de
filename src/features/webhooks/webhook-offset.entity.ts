import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * Position up to which the change log has been fanned out: one row. Its lock serializes the
 * readers.
 */
@Entity({ tableName: 'webhook_offset' })
@Check({ name: 'webhook_offset_is_only_check', expression: `is_only` })
export class WebhookOffset {
  @PrimaryKey({ type: 'boolean', default: true })
  isOnly!: boolean;

  @Property({ columnType: 'xid8', type: 'string' })
  tx!: string;

  @Property({ columnType: 'bigint', type: 'string' })
  pk!: string;
}
