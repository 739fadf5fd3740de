import { Entity, Index, PrimaryKey, Property } from '@mikro-orm/decorators/legacy';

/** How often logins have failed of late, by account and network or by network alone: the table of the limiter (throttle.ts). */
@Entity({ tableName: 'login_failure' })
@Index({ name: 'login_failure_expire_index', properties: ['expire'] })
export class LoginFailure {
  @PrimaryKey({ columnType: 'varchar(255)', type: 'string' })
  key!: string;

  @Property({ type: 'integer' })
  points!: number;

  /** Milliseconds since 1970. */
  @Property({ columnType: 'bigint', type: 'string', nullable: true })
  expire!: string | null;
}
