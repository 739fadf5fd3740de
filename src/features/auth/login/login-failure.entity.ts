import { Entity, Index } from '@mikro-orm/decorators/legacy';
import { LimiterRow } from '../../../database/rate-limiter.ts';

/** How often logins have failed of late, by account and network or by network alone: the table of the limiter (throttle.ts). */
@Entity({ tableName: 'login_failure' })
@Index({ name: 'login_failure_expire_index', properties: ['expire'] })
export class LoginFailure extends LimiterRow {}
