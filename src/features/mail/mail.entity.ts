import { Check, Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** A letter that somebody asked for, and that is not sent yet. What it will say is not known here: no token, and not whether there is an account. */
@Entity({ tableName: 'mail' })
@Check({ name: 'mail_kind_check', expression: `char_length(kind) <= 50` })
@Check({ name: 'mail_asked_check', expression: `char_length(asked) >= 1 and char_length(asked) <= 254` })
@Check({ name: 'mail_attempts_check', expression: `attempts >= 0` })
@Index({ name: 'mail_due_at_index', properties: ['dueAt'] })
export class Mail {
  /** Which feature's words these are (`letters` in src/features.ts). */
  @PrimaryKey({ type: 'text' })
  kind!: string;

  /** The address or name that somebody gave. Asked for twice, it is still one. */
  @PrimaryKey({ type: 'text' })
  asked!: string;

  @Property({ columnType: 'timestamptz(3)' })
  createdAt!: Date;

  /** When it is to be tried; while somebody tries, when others may. */
  @Property({ columnType: 'timestamptz(3)' })
  dueAt!: Date;

  @Property({ type: 'integer', default: 0 })
  attempts: number = 0;
}
