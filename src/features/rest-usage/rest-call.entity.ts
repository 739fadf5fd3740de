import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** How often a client has called a REST row as a user, and when first and last. */
@Entity({ tableName: 'legacy_call' })
@Check({ name: 'legacy_call_client_check', expression: `char_length(client) <= 255` })
@Check({ name: 'legacy_call_calls_check', expression: `calls > 0 and first_at <= last_at` })
export class LegacyCall {
  /** Method and path as the row writes them. */
  @PrimaryKey({ type: 'text' })
  row!: string;

  /** The name of the client: its `apollographql-client-name`, else its user agent. */
  @PrimaryKey({ type: 'text' })
  client!: string;

  /** The username of the caller; empty where nobody was signed in. */
  @PrimaryKey({ type: 'text' })
  subject!: string;

  @Property({ columnType: 'timestamptz(3)' })
  firstAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  lastAt!: Date;

  @Property({ columnType: 'bigint', type: 'string' })
  calls!: string;
}
