import {
  Check,
  Entity,
  Index,
  ManyToOne,
  PrimaryKey,
  Property,
} from '@mikro-orm/decorators/legacy';
import { Webhook } from './webhook.entity.ts';

/** Delivery of one event to one webhook. */
@Entity({ tableName: 'webhook_delivery' })
@Check({
  name: 'webhook_delivery_status_check',
  expression: `status ~ '^(pending|delivered|dead)$'`,
})
@Check({ name: 'webhook_delivery_times_check', expression: `num_nonnulls(due_at, ended_at) = 1` })
@Check({ name: 'webhook_delivery_attempts_check', expression: `attempts >= 0` })
@Index({ name: 'webhook_delivery_webhook_pk_due_at_index', properties: ['webhookPk', 'dueAt'] })
@Index({ name: 'webhook_delivery_status_ended_at_index', properties: ['status', 'endedAt'] })
export class WebhookDelivery {
  @PrimaryKey({ columnType: 'bigint', type: 'string', autoincrement: true })
  pk!: string;

  /** The `Webhook-Id` of the message, the same in each attempt. */
  @Property({ type: 'text', unique: true })
  messageId!: string;

  @ManyToOne(() => Webhook, {
    mapToPk: true,
    fieldName: 'webhook_pk',
    deleteRule: 'cascade',
    updateRule: 'no action',
  })
  webhookPk!: number;

  @Property({ type: 'text' })
  kind!: string;

  /** Time of the event. */
  @Property({ columnType: 'timestamptz(3)' })
  at!: Date;

  @Property({ type: 'text', nullable: true })
  subject!: string | null;

  @Property({ columnType: 'jsonb', type: 'json', nullable: true })
  state!: unknown;

  @Property({ type: 'text', default: 'pending' })
  status!: 'pending' | 'delivered' | 'dead';

  @Property({ type: 'integer', default: 0 })
  attempts!: number;

  /** Time of the next attempt of a pending delivery; during an attempt, the end of the lease. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  dueAt!: Date | null;

  /** Outcome of the last attempt: the response status, or why there was no response. */
  @Property({ type: 'text', nullable: true })
  reason!: string | null;

  /** Time at which the delivery succeeded or became dead. */
  @Property({ columnType: 'timestamptz(3)', nullable: true })
  endedAt!: Date | null;
}
