import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/**
 * A requested mail that is not sent yet. The row holds no content: no token, and not whether an
 * account exists.
 */
@Entity({ tableName: 'mail' })
@Check({ name: 'mail_kind_check', expression: `char_length(kind) <= 50` })
@Check({
  name: 'mail_addressee_check',
  expression: `char_length(addressee) >= 1 and char_length(addressee) <= 254`,
})
@Check({ name: 'mail_attempts_check', expression: `attempts >= 0` })
@Index({ name: 'mail_due_at_index', properties: ['dueAt'] })
export class Mail {
  /** Selects the template (`mailTemplates` in src/features.ts). */
  @PrimaryKey({ type: 'text' })
  kind!: string;

  /** The mail address or username from the request. Repeated requests share one row. */
  @PrimaryKey({ type: 'text' })
  addressee!: string;

  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;

  /** Time of the next attempt; during an attempt, the end of the lease. */
  @Property({ columnType: 'timestamptz(3)' })
  dueAt!: Date;

  @Property({ type: 'integer', default: 0 })
  attempts: number = 0;
}
