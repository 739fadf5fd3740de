import { Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Calls of a REST endpoint by one client as one user: number, first and last time. */
@Entity({ tableName: 'rest_call' })
export class RestCall {
  /** Method and path template of the endpoint. */
  @PrimaryKey({ type: 'text' })
  endpoint!: string;

  /** Name of the client: its `apollographql-client-name`, else its user agent. */
  @PrimaryKey({ type: 'text' })
  client!: string;

  /** Username of the caller; empty for an anonymous caller. */
  @PrimaryKey({ type: 'text' })
  subject!: string;

  @Property({ columnType: 'timestamptz(3)' })
  firstAt!: Date;

  @Property({ columnType: 'timestamptz(3)' })
  lastAt!: Date;

  @Property({ columnType: 'bigint', type: 'string' })
  calls!: string;
}
