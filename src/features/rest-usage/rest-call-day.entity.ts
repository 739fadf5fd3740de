import { Check, Entity, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** Calls of a REST endpoint by one client on one day. */
@Entity({ tableName: 'rest_call_day' })
@Check({ name: 'rest_call_day_client_check', expression: `char_length(client) <= 255` })
@Check({ name: 'rest_call_day_calls_check', expression: `calls > 0` })
export class RestCallDay {
  /** The day in UTC. */
  @PrimaryKey({ columnType: 'date', type: 'string' })
  day!: string;

  /** As in `rest_call`. */
  @PrimaryKey({ type: 'text' })
  endpoint!: string;

  /** As in `rest_call`. */
  @PrimaryKey({ type: 'text' })
  client!: string;

  @Property({ columnType: 'bigint', type: 'string' })
  calls!: string;
}
